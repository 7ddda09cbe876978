"""`dsv4chat bench store`: how fast the history is when it has grown."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dsv4chat.store_benchmark import StoreBenchmark


@click.command()
@click.option("--conversations", type=click.IntRange(min=2), default=5_000, show_default=True)
@click.option("--messages", type=click.IntRange(min=4), default=100_000, show_default=True, help="In all.")
@click.option(
    "--long",
    type=click.IntRange(min=2),
    default=2_000,
    show_default=True,
    help="Messages of the longest one.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def store(conversations: int, messages: int, long: int, as_json: bool) -> None:
    """Time the history: listing, opening a long conversation, searching.

    Builds a history of made-up text in a temporary folder first, which takes about a minute.
    """
    if messages - long < 2 * (conversations - 1):
        raise click.UsageError("Each conversation needs two messages: give more --messages, or fewer others.")
    from dsv4chat.store_benchmark import store_benchmark

    result = store_benchmark(
        conversations,
        messages,
        long,
        progress=(lambda stage: None) if as_json else lambda stage: click.echo(f"{stage} ...", err=True),
    )
    if as_json:
        click.echo(json.dumps(asdict(result)))
    else:
        _print(result)


def _print(result: "StoreBenchmark") -> None:
    click.echo(
        f"{result.conversations} conversations, {result.messages} messages, {result.megabytes:.0f} MB, "
        f"written in {result.build_seconds:.0f} s"
    )
    click.echo(f"{'':46}{'times':>6}{'median ms':>11}{'max ms':>9}{'max CPU ms':>12}")
    for timing in result.timings:
        click.echo(
            f"{timing.what:46}{timing.times:6}{timing.median_ms:11.2f}{timing.max_ms:9.2f}"
            f"{timing.max_cpu_ms:12.2f}"
        )
