"""`dsv4chat compare`: the runtime and `transformers` on the same weights, layer by layer."""

import json
import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dsv4chat.runtime.compare_checkpoint import Report

_EPILOG = """\b
Exit codes:
  0  every logit is within the tolerance, or rounding explains why not
  1  the model or the ids cannot be used; the reason is on standard error
  2  wrong usage
  3  a difference over the tolerance
"""


def _ids(context: click.Context, parameter: click.Parameter, value: str | None) -> list[int] | None:
    if value is None:
        return None
    try:
        return [int(part) for part in value.replace(",", " ").split()]
    except ValueError:
        raise click.BadParameter("must be numbers with commas between, like 0,671,83.") from None


@click.command(epilog=_EPILOG)
@click.option("--model", required=True, metavar="DIR|demo", help="A model folder, or demo.")
@click.option("--against", type=click.Choice(["transformers"]), default="transformers", show_default=True)
@click.option("--prompt", metavar="TEXT", help="Text to feed, as it is (needs the model's tokenizer).")
@click.option("--ids", callback=_ids, metavar="0,671,83", help="Token ids to feed.")
@click.option(
    "--length", type=click.IntRange(min=1), default=300, show_default=True, help="Else: this many random ids."
)
@click.option("--chunk", type=click.IntRange(min=1), metavar="TOKENS", help="Feed in pieces of this size.")
@click.option(
    "--kv-dtype",
    type=click.Choice(["float32", "bfloat16", "fp8"]),
    default="float32",
    show_default=True,
    help="How the runtime's cache stores keys and values; other than float32 it rounds.",
)
@click.option(
    "--tolerance", type=click.FloatRange(min=0), default=1e-4, show_default=True, help="Of the logits."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def compare(
    model: str,
    against: str,
    prompt: str | None,
    ids: list[int] | None,
    length: int,
    chunk: int | None,
    kv_dtype: str,
    tolerance: float,
    as_json: bool,
) -> None:
    """Compare the runtime with transformers on a checkpoint of any spelling and format.

    Both run in float32 from the same dequantised weights. Shown are the streams after each layer, relative to
    their size, the logits of a prefill and of a decode, and the first layer over the tolerance.
    """
    if prompt is not None and ids is not None:
        raise click.UsageError("Give --prompt or --ids, not both.")
    from dsv4chat.runtime.threads import decide_threads

    decide_threads()
    from dsv4chat.assets import demo_path
    from dsv4chat.encoding import EncodingError, Tokenizer
    from dsv4chat.runtime.checkpoint import Checkpoint
    from dsv4chat.runtime.compare_checkpoint import compare_checkpoint
    from dsv4chat.runtime.errors import EngineError

    try:
        folder = demo_path() if model == "demo" else model
        checkpoint = Checkpoint.open(folder)
        if prompt is not None:
            ids = Tokenizer.from_folder(checkpoint.folder).encode_text(prompt)
        report = compare_checkpoint(
            checkpoint,
            ids,
            length=length,
            chunk=chunk,
            kv_dtype=kv_dtype,
            tolerance=tolerance,
            progress=None if as_json else lambda stage: click.echo(f"{stage} ...", err=True),
        )
    except (EngineError, EncodingError) as error:
        click.echo(f"dsv4chat compare: {error}", err=True)
        sys.exit(1)
    if as_json:
        click.echo(json.dumps(report.as_json()))
    else:
        _print(report)
    sys.exit(0 if report.passed else 3)


def _print(report: "Report") -> None:
    prefill, tolerance = report.prefill, report.tolerance
    click.echo("layer  kind    difference   |X|       relative")
    for layer in prefill.layers:
        mark = "  over" if not layer.relative <= tolerance else ""
        click.echo(
            f"{layer.layer:5}  {layer.kind:6}  {layer.difference:.2e}   {layer.largest:<8.4g}  "
            f"{layer.relative:.2e}  at token {layer.token}{mark}"
        )
    for turned in prefill.turned:
        click.echo(
            f"layer {turned.layer}, token {turned.token}: other {turned.what} chosen; "
            f"margin {turned.margin:.2e}, rounding {turned.bound:.2e}"
        )
    click.echo(
        f"logits, prefill of {prefill.compared} tokens: {prefill.logits:.2e} at {prefill.logits_token}"
    )
    click.echo(f"logits, second half token by token:  {report.decode:.2e} at {report.decode_token}")
    first = prefill.first_over(tolerance)
    if first is not None:
        click.echo(f"first layer over {tolerance:g}: {first}")
    click.echo(f"{'within' if report.passed else 'NOT within'} the tolerance of {tolerance:g}")
