"""`dsv4chat eval`: the held-out questions through a model, one figure a category."""

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from dsv4chat.cli.options import model_options

if TYPE_CHECKING:
    from dsv4chat.runtime.evaluation_report import Report

_EPILOG = """\b
Exit codes:
  0  done, and every category reached its target
  1  the model or the questions cannot be used; the reason is on standard error
  2  wrong usage
  3  done, but a category missed its target
"""


@click.command(name="eval", epilog=_EPILOG)
@click.option(
    "--quick", is_flag=True, help="A few questions of each category, in three minutes on two cores."
)
@click.option(
    "--category", "only", multiple=True, metavar="NAME", help="Only this category; may be repeated."
)
@click.option("--json", "as_json", is_flag=True, help="Print the whole report as one JSON object.")
@model_options
def eval_(quick: bool, only: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Ask the model questions that its training data does not contain, and judge the answers by rules.

    Capitals in new wordings, sums of pairs never added, names recalled after 500 tokens, tool calls,
    repetition in long texts, and open questions to which the honest answer is that it does not know.
    """
    from dsv4chat.runtime.threads import decide_threads

    decide_threads()
    from dsv4chat.encoding import EncodingError, detect_profile
    from dsv4chat.runtime import Engine
    from dsv4chat.runtime.errors import EngineError
    from dsv4chat.runtime.evaluation import evaluate

    override = options.pop("profile")
    given = {name: value for name, value in options.items() if value is not None}
    try:
        engine = Engine.load(given.pop("model", "demo"), **given)
        profile = detect_profile(engine.info.path, override).profile
        report = evaluate(
            engine, quick=quick, only=only, profile=profile, progress=None if as_json else _show_progress
        )
    except (EngineError, EncodingError) as error:
        click.echo(f"dsv4chat eval: {error}", err=True)
        sys.exit(1)
    if as_json:
        click.echo(json.dumps(report.as_json(), ensure_ascii=False))
    else:
        _print(report)
    sys.exit(0 if report.reached else 3)


def _show_progress(category: str, done: int, total: int) -> None:
    """One line that is overwritten, on a terminal only."""
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[K{done}/{total} {category}", nl=False, err=True)


def _print(report: "Report") -> None:
    if sys.stderr.isatty():
        click.echo("\r\x1b[K", nl=False, err=True)
    for name, category in report.categories.items():
        mark = "ok  " if category.reached else "MISS"
        target = f"target {category.target:.0%}" if category.target else "no target"
        leaked = f", {category.leaked} with a value of the fact tables" if category.leaked else ""
        click.echo(
            f"{mark} {name:<22} {category.right:>3}/{category.asked:<3} = {category.rate:6.1%} "
            f"({target}){leaked}  {category.seconds:.0f} s, {category.tokens} tokens"
        )
    for name, category in report.categories.items():
        for failure in category.failures:
            click.echo(f"\n{name} {failure.id}: {failure.why}\n  asked: {failure.question}")
            if failure.reasoning:
                click.echo(f"  thought: {failure.reasoning}")
            click.echo(f"  answered: {failure.answer[:400]}")
    click.echo(f"\n{report.model}: {report.seconds:.0f} s")
