"""`dsv4chat bench turns`: what a turn costs with a warm cache, after a restart, and without a cache."""

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dsv4chat.runtime.bench_turns import TurnsBenchmark

MODES = ("chat", "thinking", "thinking with tools")


@click.command()
@click.option(
    "--model", default="demo", metavar="DIR|demo", show_default=True, help="A model folder, or demo."
)
@click.option("--mode", "modes", type=click.Choice(MODES), multiple=True, help="Only this (default: all).")
@click.option("--turns", type=click.IntRange(min=3), default=20, show_default=True, help="Short questions.")
@click.option("--questions", type=click.IntRange(min=3), default=10, show_default=True, help="On a document.")
@click.option(
    "--document", type=click.IntRange(min=1), default=3000, show_default=True, help="Tokens of the document."
)
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", help="Where to run.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with every turn.")
def turns(
    model: str,
    modes: tuple[str, ...],
    turns: int,
    questions: int,
    document: int,
    device: str,
    as_json: bool,
) -> None:
    """Time turns of two conversations with a warm cache, an empty one, and one read back from disk.

    Short questions, and a long document with questions; in chat mode, thinking, and thinking with a tool.
    """
    from dsv4chat.runtime.threads import decide_threads

    decide_threads()
    from dsv4chat.runtime.bench_turns import turns_benchmark
    from dsv4chat.runtime.errors import EngineError

    try:
        result = turns_benchmark(
            model,
            modes=modes or MODES,
            turns=turns,
            questions=questions,
            document=document,
            device=device,
            progress=None if as_json else lambda stage: click.echo(f"{stage} ...", err=True),
        )
    except EngineError as error:
        click.echo(f"dsv4chat bench: {error}", err=True)
        sys.exit(1)
    if as_json:
        click.echo(json.dumps(asdict(result)))
    else:
        _print(result)


def _print(result: "TurnsBenchmark") -> None:
    click.echo(
        f"{result.model} on {result.device}, cache {result.kv_dtype}; times to the first token, medians"
    )
    click.echo(
        f"{'conversation':28}{'mode':21}{'fed':>5}{'of':>7}{'warm ms':>9}{'cold ms':>9}{'ratio':>7}"
        f"{'restart ms':>12}{'ratio':>7}{'MB':>6}"
    )
    for cost in result.conversations:
        click.echo(
            f"{cost.name:28}{cost.mode:21}{cost.prefilled:5.0f}{cost.turns[-1].prompt:7}{cost.warm_ms:9.1f}"
            f"{cost.cold_ms:9.0f}{cost.ratio:7.1f}{cost.restart_ms:12.1f}{cost.restart_ratio:7.1f}"
            f"{cost.saved_bytes / 1e6:6.1f}"
        )
