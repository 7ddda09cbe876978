"""Options that several commands share."""

import math
from collections.abc import Callable
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])

_LARGEST = 2**63 - 1  # what a message to the engine can carry


class FiniteRange(click.FloatRange):
    """A range of numbers. Click's own lets `nan` pass, which no comparison refuses, and `inf`."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a number that can be used.", param, ctx)
        return number


class CountRange(click.IntRange):
    """Whole numbers of at least `min` that a message to the engine can carry."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if number > _LARGEST:
            self.fail(f"{value} is more than any model can use.", param, ctx)
        return number


_MODEL = (
    click.option("--model", metavar="DIR|demo", help="A model folder, or demo, which comes along (default)."),
    click.option(
        "--profile",
        type=click.Choice(["preview", "current"]),
        help="The prompt profile, when what the model says of itself is wrong or missing.",
    ),
    click.option(
        "--max-context",
        type=CountRange(min=1),
        metavar="TOKENS",
        help="The most tokens a conversation may have.",
    ),
    click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), help="Where the model runs."),
    click.option(
        "--dtype",
        type=click.Choice(["auto", "float32", "bfloat16"]),
        help="Precision of activations and of weights that are not quantised.",
    ),
    click.option(
        "--kv-dtype",
        type=click.Choice(["auto", "float32", "bfloat16", "fp8"]),
        help="How the cache stores keys and values.",
    ),
    click.option(
        "--kernels",
        type=click.Choice(["auto", "torch", "cute"]),
        help="What decoding on a GPU runs on: PyTorch or the kernels.",
    ),
)

_SAMPLING = (
    click.option("--temperature", type=FiniteRange(min=0), help="0 takes the most probable token."),
    click.option("--top-p", type=FiniteRange(0, 1, min_open=True), help="Keep the likeliest, to this sum."),
    click.option("--top-k", type=CountRange(min=0), help="Keep this many of the most probable (0: all)."),
    click.option("--min-p", type=FiniteRange(0, 1), help="Drop what is below this part of the first."),
    click.option("--repetition-penalty", type=FiniteRange(min=0, min_open=True), help="Above 1: less."),
    click.option("--seed", type=click.IntRange(0, 2**64 - 1), help="Repeats an answer (default: random)."),
    click.option("--max-tokens", type=CountRange(min=0), metavar="TOKENS", help="The longest answer."),
)


def model_options(function: Function) -> Function:
    """--model, --profile, --max-context, --device, --dtype, --kv-dtype, --kernels; None where not given."""
    return _apply(function, _MODEL)


def sampling_options(function: Function) -> Function:
    """--temperature and so on, and --max-tokens; None where not given. Names are those of SamplingParams."""
    return _apply(function, _SAMPLING)


def _apply(function: Function, options: tuple[Callable[[Function], Function], ...]) -> Function:
    for option in reversed(options):
        function = option(function)
    return function
