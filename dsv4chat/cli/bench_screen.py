"""`dsv4chat bench screen`: how well the screen keeps up with a fast model while one types."""

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dsv4chat.screen_bench.driver import Figures

_EPILOG = """\b
In a terminal of 120x40, on pace if the last word is drawn at most 5 % late.
Exit codes:
  0  done
  1  the app could not be measured; the reason is on standard error
  2  wrong usage
"""


@click.command(epilog=_EPILOG)
@click.option("--kind", "kinds", multiple=True, type=click.Choice(["prose", "fence", "list", "table"]))
@click.option(
    "--history",
    "histories",
    multiple=True,
    type=click.IntRange(min=0),
    help="Messages in the conversation before; 0 and 2000 if not given.",
)
@click.option("--tokens", type=click.IntRange(min=50), default=2000, show_default=True)
@click.option(
    "--rate", type=click.FloatRange(min=1), default=200.0, show_default=True, help="Tokens a second."
)
@click.option("--plain/--no-plain", default=True, help="Also feed Textual's MarkdownStream, without history.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def screen(
    kinds: tuple[str, ...],
    histories: tuple[int, ...],
    tokens: int,
    rate: float,
    plain: bool,
    as_json: bool,
) -> None:
    """Feed the app prose, one fence, one list and one table; measure its pace and how it answers to keys."""
    from dsv4chat.screen_bench.driver import BenchmarkError, measure

    runs = [("chat", kind, history) for history in histories or (0, 2000) for kind in kinds or _all_kinds()]
    if plain:
        runs += [("plain", kind, 0) for kind in kinds or _all_kinds()]
    if not as_json:
        click.echo(f"{tokens} tokens at {rate:g} a second; lag from a key to its echo in ms")
        click.echo(
            f"{'program':8} {'answer':7} {'history':>7} {'late':>7} {'p50':>6} {'p99':>6} {'max':>6} "
            f"{'keys':>5} {'cpu':>5} {'opened':>7}"
        )
    for program, kind, history in runs:
        try:
            figures = measure(program, kind, tokens=tokens, rate=rate, history=history)
        except BenchmarkError as error:
            click.echo(f"dsv4chat bench: {error}", err=True)
            sys.exit(1)
        click.echo(json.dumps(asdict(figures)) if as_json else _line(figures))


def _line(figures: "Figures") -> str:
    opened = f"{1000 * figures.opened:.0f}" if figures.opened else "–"
    return (
        f"{figures.program:8} {figures.kind:7} {figures.history:7} {100 * figures.late:6.1f}% "
        f"{1000 * figures.lag_p50:6.0f} {1000 * figures.lag_p99:6.0f} {1000 * figures.lag_max:6.0f} "
        f"{figures.keys:5} {100 * figures.processor:4.0f}% {opened:>7}"
    )


def _all_kinds() -> tuple[str, ...]:
    from dsv4chat.screen_bench.texts import KINDS

    return KINDS
