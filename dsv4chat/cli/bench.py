"""`dsv4chat bench`: how fast the program is on this machine."""

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from dsv4chat.cli.bench_store import store

if TYPE_CHECKING:
    from dsv4chat.runtime.benchmark import DecodeBenchmark

_EPILOG = """\b
Exit codes:
  0  done
  1  the model cannot be used; the reason is on standard error
  2  wrong usage
"""


@click.group()
def bench() -> None:
    """Measure the program on this machine."""


bench.add_command(store)


@bench.command(epilog=_EPILOG)
@click.option(
    "--model", default="demo", metavar="DIR|demo", show_default=True, help="A model folder, or demo."
)
@click.option(
    "--tokens", type=click.IntRange(min=1), default=128, show_default=True, help="Tokens to decode."
)
@click.option(
    "--prompt", type=click.IntRange(min=1), default=256, show_default=True, help="Random ids fed before them."
)
@click.option(
    "--against",
    type=click.Choice(["transformers"]),
    help="Also time this engine, in the same run on the same weights.",
)
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", help="Where to run.")
@click.option(
    "--dtype", type=click.Choice(["auto", "float32", "bfloat16"]), default="auto", help="Type of the weights."
)
@click.option(
    "--kv-dtype",
    type=click.Choice(["auto", "float32", "bfloat16", "fp8"]),
    default="auto",
    help="How the cache stores keys and values.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def decode(
    model: str,
    tokens: int,
    prompt: int,
    against: str | None,
    device: str,
    dtype: str,
    kv_dtype: str,
    as_json: bool,
) -> None:
    """Time greedy decoding, one token at a time: the median of all tokens, sampling left out."""
    from dsv4chat.runtime.threads import decide_threads

    decide_threads()
    from dsv4chat.assets import demo_path
    from dsv4chat.runtime.benchmark import decode_benchmark
    from dsv4chat.runtime.checkpoint import Checkpoint
    from dsv4chat.runtime.errors import EngineError

    try:
        result = decode_benchmark(
            Checkpoint.open(demo_path() if model == "demo" else model),
            tokens=tokens,
            prompt=prompt,
            against=against is not None,
            device=device,
            dtype=dtype,
            kv_dtype=kv_dtype,
            progress=None if as_json else lambda stage: click.echo(f"{stage} ...", err=True),
        )
    except EngineError as error:
        click.echo(f"dsv4chat bench: {error}", err=True)
        sys.exit(1)
    if as_json:
        click.echo(json.dumps(asdict(result)))
    else:
        _print(result)


def _print(result: "DecodeBenchmark") -> None:
    click.echo(
        f"{result.tokens} tokens after {result.prompt} on {result.device}, {result.threads} threads, "
        f"weights {result.dtype}, cache {result.kv_dtype}"
    )
    for name, speed in (("dsv4chat", result.ours), ("transformers", result.against)):
        if speed is not None:
            click.echo(
                f"{name:13} {speed.decode_ms:7.2f} ms a token   {speed.decode:7.1f} tokens/s   "
                f"prefill {speed.prefill:6.0f} tokens/s"
            )
    if result.ratio is not None:
        click.echo(f"ratio         {result.ratio:7.2f}")
