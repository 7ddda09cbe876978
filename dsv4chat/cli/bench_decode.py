"""`dsv4chat bench decode`, `bench kernels`, `bench load`: how fast a model runs and loads here, and why."""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dsv4chat.runtime.bench_decode import StepBenchmark
    from dsv4chat.runtime.benchmark import DecodeBenchmark

RANDOM = "random:"
_EPILOG = """\b
Exit codes:
  0  done
  1  it cannot be measured; the reason is on standard error
  2  wrong usage
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--model",
    default="demo",
    metavar="DIR|demo|random:NAME",
    show_default=True,
    help="A model folder, demo, or random weights of a geometry (the same as --geometry).",
)
@click.option(
    "--geometry",
    type=click.Choice(["demo", "flash", "pro"]),
    help="Time one step at this model's real sizes, on random weights.",
)
@click.option("--layers", type=click.IntRange(min=1), default=8, show_default=True, help="Its first layers.")
@click.option(
    "--context", type=click.IntRange(min=16), default=4096, show_default=True, help="Tokens in the cache."
)
@click.option(
    "--mix",
    type=click.Choice(["nvidia", "nvfp4"]),
    default="nvidia",
    show_default=True,
    help="Formats: NVIDIA's (experts NVFP4, the rest FP8), or everything NVFP4.",
)
@click.option(
    "--kernels",
    type=click.Choice(["auto", "torch", "cute"]),
    default="auto",
    show_default=True,
    help="What the step runs on.",
)
@click.option("--tokens", type=click.IntRange(min=1), help="Tokens to decode (default 128; with sizes 64).")
@click.option(
    "--prompt", type=click.IntRange(min=1), default=256, show_default=True, help="Random ids fed before them."
)
@click.option(
    "--against",
    type=click.Choice(["transformers"]),
    help="Also time this engine, in the same run; on a GPU after ours is freed.",
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
def decode(model: str, geometry: str | None, as_json: bool, **options: Any) -> None:
    """Time decoding, one token at a time: medians.

    With a model: greedy decoding, the sampler left out. With --geometry: one step at a model's real sizes
    with everything in it, against the bytes it reads and the bandwidth measured beside it.
    """
    from dsv4chat.runtime.threads import decide_threads

    decide_threads()
    from dsv4chat.runtime.errors import EngineError

    if model.startswith(RANDOM):
        geometry = geometry or model.removeprefix(RANDOM)
    say = None if as_json else _say
    try:
        result = _step(geometry, options, say) if geometry else _decode(model, options, say)
    except EngineError as error:
        click.echo(f"dsv4chat bench: {error}", err=True)
        sys.exit(1)
    if as_json:
        click.echo(json.dumps(asdict(result)))


def _say(stage: str) -> None:
    click.echo(f"{stage} ...", err=True)


def _decode(model: str, options: dict[str, Any], say: Callable[[str], None] | None) -> "DecodeBenchmark":
    from dsv4chat.assets import demo_path
    from dsv4chat.runtime.benchmark import decode_benchmark
    from dsv4chat.runtime.checkpoint import Checkpoint

    result = decode_benchmark(
        Checkpoint.open(demo_path() if model == "demo" else model),
        tokens=options["tokens"] or 128,
        prompt=options["prompt"],
        against=options["against"] is not None,
        device=options["device"],
        dtype=options["dtype"],
        kv_dtype=options["kv_dtype"],
        progress=say,
    )
    if say is not None:
        _print(result)
    return result


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


def _step(geometry: str, options: dict[str, Any], say: Callable[[str], None] | None) -> "StepBenchmark":
    from dsv4chat.runtime.bench_decode import bench_decode

    names = ("layers", "context", "mix", "kernels", "device", "dtype", "kv_dtype")
    result = bench_decode(
        geometry,
        tokens=options["tokens"] or 64,
        against=options["against"] is not None,
        say=say,
        **{name: options[name] for name in names},
    )
    if say is not None:
        _print_step(result)
    return result


def _print_step(result: "StepBenchmark") -> None:
    terabyte = 1e12
    click.echo(
        f"{result.geometry}, {result.layers} layers, {result.mix}, {result.context:,} tokens of context, on "
        f"{result.device}; {result.kernels}, activations {result.dtype}, cache {result.kv_dtype}"
    )
    click.echo(f"read bandwidth {result.bandwidth / terabyte:.2f} TB/s, {result.launches} launches a step")
    rows = (
        ("a token", result.token, result.bytes, result.floor),
        ("a layer", result.layer, result.layer_bytes, result.layer_floor),
        ("head, sampling", result.head, result.head_bytes, 1000 * result.head_bytes / result.bandwidth),
    )
    click.echo(f"{'':16}{'ms':>9}{'MB':>10}{'floor ms':>10}{'of floor':>10}")
    for name, milliseconds, size, floor in rows:
        click.echo(f"{name:16}{milliseconds:9.4f}{size / 1e6:10.1f}{floor:10.4f}{floor / milliseconds:10.1%}")
    click.echo(
        f"|X|, log-probability, alternatives and record: {1 - result.bare / result.token:.1%} of a token "
        f"({result.bare:.4f} ms without)"
    )
    if result.operations:
        click.echo(f"\n{'operation, all layers':36}{'ms':>9}{'MB':>10}{'TB/s':>7}")
    for one in result.operations:
        rate = f"{one.bytes / one.milliseconds / 1e9:7.2f}" if one.bytes else ""
        click.echo(f"{one.operation:36}{one.milliseconds:9.4f}{one.bytes / 1e6:10.1f}{rate}")
    if result.against is not None and result.ratio is not None:
        theirs = result.against
        click.echo(
            f"\ntransformers, {theirs.layers} layers in bfloat16 after {theirs.prompt} tokens: "
            f"{theirs.layer:.3f} ms a layer; ours is {result.ratio:.1f} times as fast"
        )


@click.command(epilog=_EPILOG)
@click.option("--geometry", type=click.Choice(["flash", "pro"]), default="flash", show_default=True)
@click.option("--rows", type=click.IntRange(1, 8), default=1, show_default=True, help="Rows of activations.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def kernels(geometry: str, rows: int, as_json: bool) -> None:
    """Time every kernel at a model's real sizes against the memory's bandwidth."""
    from dsv4chat.runtime.bench_kernels import bench_kernels
    from dsv4chat.runtime.errors import EngineError

    try:
        result = bench_kernels(geometry, rows, None if as_json else _say)
    except EngineError as error:
        click.echo(f"dsv4chat bench: {error}", err=True)
        sys.exit(1)
    if as_json:
        click.echo(json.dumps(asdict(result)))
        return
    click.echo(f"{result.device}, read bandwidth {result.bandwidth / 1e12:.2f} TB/s, {rows} row(s)")
    click.echo(f"{'operation':40}{'kernel':22}{'MB':>8}{'us':>9}{'TB/s':>7}{'of it':>7}")
    for one in result.kernels:
        rate = one.bytes / one.microseconds / 1e6
        click.echo(
            f"{one.operation:40}{one.kernel:22}{one.bytes / 1e6:8.1f}{one.microseconds:9.2f}{rate:7.2f}"
            f"{rate * 1e12 / result.bandwidth:7.0%}"
        )


@click.command(epilog=_EPILOG)
@click.option("--model", default="demo", metavar="DIR|demo|random:NAME", show_default=True)
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", help="Where to.")
@click.option(
    "--dtype", type=click.Choice(["auto", "float32", "bfloat16"]), default="auto", help="Type of the weights."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def load(model: str, device: str, dtype: str, as_json: bool) -> None:
    """Time a checkpoint's way from its files to the device."""
    from dsv4chat.runtime.bench_load import bench_load
    from dsv4chat.runtime.errors import EngineError

    try:
        result = bench_load(model, device, dtype)
    except EngineError as error:
        click.echo(f"dsv4chat bench: {error}", err=True)
        sys.exit(1)
    if as_json:
        click.echo(json.dumps(asdict(result)))
        return
    click.echo(
        f"{result.tensors:,} tensors, {result.bytes / 1e9:.2f} GB to {result.device} in "
        f"{result.seconds:.1f} s: {result.rate / 1e9:.2f} GB/s"
    )
