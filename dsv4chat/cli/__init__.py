"""The command line: `dsv4chat` opens the app, `dsv4chat COMMAND` does one thing.

A command's module is imported when the command is called (or its help asked for), so that the app's first
paint waits for none of them. Each module `dsv4chat/cli/NAME.py` defines the click command `NAME`.
"""

import importlib
import sys
from typing import Any

import click

from dsv4chat import __version__
from dsv4chat.cli.options import FiniteRange, model_options

COMMANDS = {
    "ask": "Ask one question and print the streamed answer.",
    "bench": "Measure the runtime on this machine.",
    "cache": "List and clear the saved caches of conversations.",
    "compare": "Compare the runtime with transformers, layer by layer.",
    "doctor": "Tell whether a model can run here, and what to do if not.",
    "eval": "Run the held-out questions through a model.",
    "history": "List, search, show, export and import conversations.",
    "kernels": "Build, list and check the GPU kernels.",
    "parse": "Parse a raw completion into a message.",
    "prompt": "Show the exact prompt of a request.",
}


class LazyGroup(click.Group):
    """A group that knows its commands' names and imports one only when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"dsv4chat.cli.{cmd_name}")
        # `eval` is a builtin's name; its function is called `eval_`.
        command: click.Command = getattr(module, cmd_name, None) or getattr(module, f"{cmd_name}_")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group(
    cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="dsv4chat")
@model_options
@click.option(
    "--cache-memory",
    type=FiniteRange(min=0),
    metavar="GB",
    help="Main memory for the caches of conversations that are not open (default: 2).",
)
def main(**options: Any) -> None:
    """Chat with a DeepSeek-V4 model in the terminal. Without a command: open the app."""
    context = click.get_current_context()
    given = {name: value for name, value in options.items() if value is not None}
    if context.invoked_subcommand is not None:
        if given:
            flag = "--" + next(iter(given)).replace("_", "-")
            raise click.UsageError(
                f"{flag} before a command is for the app; put it after: "
                f"dsv4chat {context.invoked_subcommand} {flag} ..."
            )
        if sys.stdout is None:  # the caller closed it; the app draws on standard error
            raise click.ClickException("Standard output is closed, so there is nowhere to print.")
        return
    from dsv4chat.app import run
    from dsv4chat.model_check import UnusableModelError, check_model

    try:
        check_model(given.get("model", "demo"))
    except UnusableModelError as error:
        raise click.ClickException(str(error)) from None
    context.exit(run(**given))
