"""`dsv4chat doctor`: whether a model can run here, and what to do if not."""

import json
import sys
from dataclasses import asdict
from typing import Any

import click

_EPILOG = """\b
Exit codes:
  0  nothing stands in the way
  1  something does; what to do is printed
  2  wrong usage
"""
_SIGNS = {"good": "  ok", "note": "note", "problem": "FAIL"}


@click.command(epilog=_EPILOG)
@click.option("--model", default="demo", metavar="DIR|demo", show_default=True, help="The model to look at.")
@click.option("--gpus", type=click.IntRange(min=1), help="How many GPUs to plan for (default: those here).")
@click.option(
    "--max-context", type=click.IntRange(min=1), metavar="TOKENS", help="The context to plan memory for."
)
@click.option(
    "--kv-dtype",
    type=click.Choice(["auto", "float32", "bfloat16", "fp8"]),
    default="auto",
    help="How the cache stores keys and values.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def doctor(as_json: bool, **options: Any) -> None:
    """Look at the GPUs, the kernels, the model's files and the memory they need, without loading anything."""
    from dsv4chat.runtime.doctor import examine

    found = examine(**options)
    if as_json:
        click.echo(json.dumps({**asdict(found), "healthy": found.healthy}))
    else:
        for finding in found.findings:
            click.echo(f"{_SIGNS[finding.level]}  {finding.subject:9} {finding.text}")
    sys.exit(0 if found.healthy else 1)
