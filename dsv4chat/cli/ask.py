"""`dsv4chat ask`: one question, one streamed answer."""

import asyncio
import contextlib
import os
import signal
import stat
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dsv4chat.cli.lines import decoded
from dsv4chat.cli.options import model_options, sampling_options

if TYPE_CHECKING:
    from dsv4chat.encoding import Message
    from dsv4chat.settings import LoadedSettings

EXIT_OK, EXIT_ERROR, EXIT_INTERRUPTED = 0, 1, 130

_EPILOG = """\b
Exit codes:
  0    answered (also when cut off by --max-tokens)
  1    an error; the reason is on standard error
  2    wrong usage
  130  interrupted by Ctrl+C; what was said so far has been printed
"""


@dataclass(frozen=True)
class Question:
    """What was asked, and how. model, sampling: the options that were given."""

    text: str
    system: str | None
    thinking: bool
    effort: str | None
    profile: str | None
    model: dict[str, Any]
    sampling: dict[str, Any]
    tools: bool = False
    yes: bool = False


@click.command(epilog=_EPILOG)
@click.argument("prompt", required=False)
@click.option("--think/--no-think", "thinking", default=True, help="Whether it thinks first (default: yes).")
@click.option(
    "--effort",
    type=click.Choice(["low", "high", "max"]),
    help="How hard it thinks; no effect without thinking.",
)
@click.option("--system", metavar="TEXT", help="The system message.")
@click.option("--tools", is_flag=True, help="Let it use tools: calculator, clock, those of the settings.")
@click.option("--yes", is_flag=True, help="Run tools without asking.")
@click.option("--hide-thinking", is_flag=True, help="Do not print the thinking.")
@click.option("--stats", is_flag=True, help="Print speed and prompt reuse afterwards, on standard error.")
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON object a line: prefill, token, tool, done, error."
)
@sampling_options
@model_options
def ask(
    prompt: str | None,
    thinking: bool,
    effort: str | None,
    system: str | None,
    tools: bool,
    yes: bool,
    hide_thinking: bool,
    stats: bool,
    as_json: bool,
    profile: str | None,
    **options: Any,
) -> None:
    """Ask PROMPT and print the answer as it is generated.

    Text on standard input is appended to PROMPT, or is the prompt. The answer goes to standard output, the
    thinking to standard error. Options of sampling win over [sampling] of the settings file, that over what
    the model folder names.
    """
    # A stream that the caller closed is None.
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115 - for the rest of the program
    from dsv4chat.cli.ask_output import JsonOutput, Output, TextOutput

    output: Output = (
        JsonOutput() if as_json else TextOutput(show_thinking=not hide_thinking, stats=stats, tools=tools)
    )
    names = ("model", "max_context", "device", "dtype", "kv_dtype", "kernels")
    model = {name: options.pop(name) for name in names}

    def answer() -> int:
        text = _with_input(prompt)
        if not text:
            raise click.UsageError("There is nothing to ask: give a PROMPT, or pipe text in.")
        _check(model["model"] or "demo", output)
        question = Question(text, system, thinking, effort, profile, model, options, tools, yes)
        return asyncio.run(_Asking(question, output).run())

    sys.exit(_guarded(answer, output))


def _check(model: str, output: Any) -> None:
    """What can be told before anything is started."""
    from dsv4chat.model_check import check_model
    from dsv4chat.paths import no_log_notice

    check_model(model)
    notice = no_log_notice()
    if notice:
        output.notice(notice)


def _guarded(work: Callable[[], int], output: Any) -> int:
    """The exit code of `work`. A reader that went away (`| head`) is no error and nothing to talk about."""
    try:
        return _with_sentences(work, output)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The interpreter flushes standard output once more at its end; let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except OSError as error:
        click.echo(f"Error: the answer cannot be written: {error.strerror}.", err=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_ERROR


def _with_sentences(work: Callable[[], int], output: Any) -> int:
    """The exit code of `work`; what goes wrong in a way that has a name is told as its sentence."""
    from dsv4chat.encoding import EncodingError
    from dsv4chat.engine_errors import EngineDied, EngineFailed
    from dsv4chat.model_check import UnusableModelError

    try:
        return work()
    except EncodingError as error:
        output.error("EncodingError", str(error))
    except (EngineFailed, UnusableModelError) as error:
        output.error(error.kind, str(error))
    except EngineDied as error:
        last = "".join(f"\n  {line}" for line in error.last_lines[-5:])
        output.error("EngineDied", f"{error}{' It ends with:' + last if last else ''}")
    return EXIT_ERROR


class _Asking:
    """One question on its way: an engine, a turn, and Ctrl+C."""

    def __init__(self, question: Question, output: Any) -> None:
        self._question = question
        self._output = output
        self._turn: Any = None
        self._tools: Any = None
        self._task: asyncio.Task[Any] | None = None
        self._interrupted = False

    async def run(self) -> int:
        from dsv4chat.engine_process import EngineProcess

        self._task = asyncio.current_task()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._interrupt)
        engine = EngineProcess()
        try:
            await self._answer(engine)
        except asyncio.CancelledError:
            if not self._interrupted:
                raise
        finally:
            await engine.close()
        return EXIT_INTERRUPTED if self._interrupted else EXIT_OK

    async def _answer(self, engine: Any) -> None:
        from dsv4chat.encoding import Conversation, Message, Tokenizer, detect_profile
        from dsv4chat.runtime.protocol import Load, Ready
        from dsv4chat.sampling_defaults import model_sampling, override
        from dsv4chat.turns import Turn

        question = self._question
        settings = asyncio.create_task(asyncio.to_thread(_settings))
        await engine.start()
        folder = Path()
        async for progress in engine.load(Load(**{k: v for k, v in question.model.items() if v is not None})):
            if isinstance(progress, Ready):
                folder, self._output.context = Path(progress.path), progress.max_context
            else:
                self._output.loading(progress)
        choice = detect_profile(folder, question.profile)
        if choice.notice:
            self._output.notice(choice.notice)
        tokenizer = Tokenizer.from_folder(folder)
        system = () if question.system is None else (Message("system", question.system),)
        conversation = Conversation(
            (*system, Message("user", question.text)),
            thinking=question.thinking,
            effort=question.effort if question.thinking else None,
        )
        loaded = await settings
        if loaded.notice:
            self._output.notice(loaded.notice)
        usual = override(model_sampling(folder), loaded.settings.sampling.given())
        sampling = override(usual, question.sampling)

        async def say(asked: Conversation) -> Message | None:
            return await self._say(Turn(engine, tokenizer, choice.profile, asked, sampling=sampling))

        if question.tools:
            from dsv4chat.cli.ask_tools import AskTools

            self._tools = AskTools(self._output, loaded.settings.tools, yes=question.yes)
            await self._tools.answer(conversation, say)
        else:
            await say(conversation)

    async def _say(self, turn: Any) -> "Message | None":
        """One answer; its message, None when it did not come to its own end."""
        from dsv4chat.turns import TurnFinished

        self._turn = turn
        end: Message | None = None
        try:
            async with contextlib.aclosing(turn.events()) as events:
                async for event in events:
                    self._output.event(event)
                    if isinstance(event, TurnFinished) and event.reason == "stop":
                        end = event.message
        except BaseException:
            self._output.rest(turn.rest)
            raise
        return end

    def _interrupt(self) -> None:
        """Ctrl+C: end the turn after this token; a second one, or one before the turn, ends it at once."""
        if self._turn is not None and not self._interrupted:
            self._turn.stop()
            if self._tools is not None:
                self._tools.stop()
        elif self._task is not None:
            self._task.cancel()
        self._interrupted = True


def _settings() -> "LoadedSettings":
    """The settings. Their library takes a while to import, in which the engine loads."""
    from dsv4chat.settings import load_settings

    return load_settings()


def _with_input(prompt: str | None) -> str:
    """The prompt and what is on standard input, separated by a blank line."""
    piped = _read_input(wait_quietly=prompt is None).strip("\n")
    return "\n\n".join(part for part in (prompt, piped) if part)


def _read_input(*, wait_quietly: bool) -> str:
    """All of standard input, "" if that is a terminal, closed, or a device.

    A pipe that nobody writes to would look like a hang when a prompt was given, so that is said in time.
    EncodingError if it is not UTF-8.
    """
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):
        return ""
    if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)):
        return ""
    notice = threading.Timer(2.0, _say_waiting)
    notice.daemon = True
    with contextlib.ExitStack() as stack:
        if not wait_quietly:
            notice.start()
            stack.callback(notice.cancel)
        raw = sys.stdin.buffer.read()
    return decoded(raw)


def _say_waiting() -> None:
    click.echo("Waiting for the end of standard input (use </dev/null if there is none) ...", err=True)
