"""The person's own editor for a message: the program gives it the terminal and takes the text back."""

import asyncio
import os
import shlex
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from textual.app import App, SuspendNotSupported

_USUAL = ("nano", "vi")


class EditorError(Exception):
    """The text was not edited; the message says why and what to do."""


def editor_command() -> list[str]:
    """$VISUAL, else $EDITOR, else an editor that is there. EditorError if there is none."""
    for variable in ("VISUAL", "EDITOR"):
        text = os.environ.get(variable, "").strip()
        if text:
            try:
                return shlex.split(text)
            except ValueError as error:
                raise EditorError(f"${variable} cannot be read as a command ({error}).") from None
    for name in _USUAL:
        found = shutil.which(name)
        if found:
            return [found]
    raise EditorError("There is no editor: set $VISUAL or $EDITOR to the one you like.")


async def edit(app: App[None], text: str) -> str:
    """`text` as the person leaves it in the editor. EditorError; then the text is as it was.

    The program goes on behind the editor: an answer is written further, only nothing is drawn.
    """
    command = editor_command()
    try:
        handle, name = tempfile.mkstemp(prefix="message-", suffix=".md")
    except OSError as error:
        raise EditorError(f"There is no place for the text ({error.strerror or error}).") from None
    path = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        code = await _run(app, [*command, str(path)])
        if code:
            raise EditorError(f"{command[0]} ended with code {code}; the message is as it was.")
        edited = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        raise EditorError(
            f"There is no program {command[0]}; set $VISUAL or $EDITOR to one that is there."
        ) from None
    except OSError as error:
        raise EditorError(f"{command[0]} cannot be run ({error.strerror or error}).") from None
    except SuspendNotSupported:
        raise EditorError("This terminal cannot be handed to an editor.") from None
    finally:
        path.unlink(missing_ok=True)
    # Editors end the last line; a message does not.
    return edited[:-1] if edited.endswith("\n") and not text.endswith("\n") else edited


async def _run(app: App[None], command: list[str]) -> int:
    # In a batch nothing is drawn, so the editor has the screen for itself.
    with app.batch_update(), app.suspend():
        process = await asyncio.create_subprocess_exec(*command)
        with _interrupts_for_the_editor():
            return await process.wait()


@contextmanager
def _interrupts_for_the_editor() -> Iterator[None]:
    """Ctrl+C in the editor reaches this program too, and is not meant for it."""
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
