"""Pastes, the external editor, the keys of leaving, and what a copy claims."""

import stat
from pathlib import Path

import pytest
from textual.app import App
from textual.events import Paste

from dsv4chat.app import external_editor
from dsv4chat.app.clipboard import Copied
from dsv4chat.app.code_blocks import CodeBlock, code_blocks
from dsv4chat.app.external_editor import EditorError, editor_command
from dsv4chat.app.screens.quit_screen import QuitScreen
from dsv4chat.app.widgets.composer import Composer
from dsv4chat.app.widgets.pastes import Pastes
from tests.support.app_parts import Parts, screen_text, wait_until
from tests.support.chat import THOUGHT, answered, chat, one, say, tokens_shown
from tests.support.fake_engine import Script

# -- pastes --------------------------------------------------------------------------------------------


async def test_a_large_paste_is_one_line_in_the_input_and_whole_in_the_message(tmp_path: Path) -> None:
    """Probe 24: a paste of 1 MB."""
    text = "".join(f"line {number:07}\n" for number in range(80_000))
    assert len(text) > 1_000_000
    parts = Parts(tmp_path, Script(["x</think>Long."]))
    async with chat(parts) as (app, pilot):
        composer = one(app, Composer)
        composer.insert("Look: ")
        composer.post_message(Paste(text.replace("\n", "\r")))
        await wait_until(pilot, lambda: "pasted text 1" in screen_text(app))
        assert composer.text == f"Look: [pasted text 1: {len(text):,} characters, 80,001 lines]"
        assert composer.size.height <= 2
        composer.insert(" What is it?")
        await pilot.press("enter")
        await answered(pilot, app)
        assert app.session is not None
        assert app.session.path[0].content == f"Look: {text} What is it?"
        assert composer.text == ""
        await pilot.press("up")
        await wait_until(pilot, lambda: "pasted text" in composer.text)
        assert composer.whole_text == f"Look: {text} What is it?"


async def test_a_small_paste_is_text(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path)) as (app, pilot):
        composer = one(app, Composer)
        composer.insert("ab")
        composer.move_cursor((0, 1))
        composer.post_message(Paste("1\r\n2\r3"))
        await wait_until(pilot, lambda: composer.text == "a1\n2\n3b")
        await pilot.press("x")
        await wait_until(pilot, lambda: composer.text == "a1\n2\n3xb")


async def test_a_paste_takes_the_place_of_what_is_selected(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path)) as (app, pilot):
        composer = one(app, Composer)
        composer.insert("all of this")
        composer.select_all()
        composer.post_message(Paste("new"))
        await wait_until(pilot, lambda: composer.text == "new")


def test_several_pastes_are_told_apart_and_expanded_in_place() -> None:
    pastes = Pastes()
    long, many = "a" * 3000, "b\n" * 100
    first, second = pastes.fold(long), pastes.fold(many)
    assert first == "[pasted text 1: 3,000 characters, 1 line]"
    assert second == "[pasted text 2: 200 characters, 101 lines]"
    assert pastes.expand(f"x {second} y {first} {first}") == f"x {many} y {long} {long}"
    assert pastes.fold("short") == "short"
    assert pastes.expand("[pasted text 9: 1 character]") == "[pasted text 9: 1 character]"


# -- the editor ----------------------------------------------------------------------------------------


def script(folder: Path, text: str) -> Path:
    path = folder / "editor"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def suspending(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test's terminal is none, so nothing has to be suspended."""
    from contextlib import nullcontext

    monkeypatch.setattr(App, "suspend", lambda self: nullcontext())


@pytest.mark.usefixtures("suspending")
async def test_the_editor_gets_the_message_and_gives_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = script(
        tmp_path, 'cp "$2" "$1"; ls -l "$2" | cut -c1-10 >> "$1"; echo "edited: $(cat "$2")" > "$2"'
    )
    seen = tmp_path / "seen with space"
    monkeypatch.setenv("VISUAL", f"{editor} '{seen}'")
    async with chat(Parts(tmp_path / "data")) as (app, pilot):
        composer = one(app, Composer)
        composer.insert("my message")
        await pilot.press("f6")
        await wait_until(pilot, lambda: composer.text == "edited: my message")
        assert seen.read_text() == "my message-rw-------\n"
        assert composer.has_focus


@pytest.mark.usefixtures("suspending")
@pytest.mark.parametrize(
    ("visual", "words"),
    [
        ("no-such-editor", "There is no program no-such-editor"),
        ("false", "false ended with code 1; the message is as it was"),
        ("'open quote", "$VISUAL cannot be read as a command"),
        ("/", "/ cannot be run"),
    ],
)
async def test_an_editor_that_fails_is_told_and_the_message_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visual: str, words: str
) -> None:
    monkeypatch.setenv("VISUAL", visual)
    async with chat(Parts(tmp_path)) as (app, pilot):
        composer = one(app, Composer)
        composer.insert("my message")
        await pilot.press("f6")
        await wait_until(pilot, lambda: any(words in notice.message for notice in app._notifications))
        assert composer.text == "my message"


async def test_a_terminal_that_cannot_be_handed_over_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", "true")
    async with chat(Parts(tmp_path)) as (app, pilot):
        await pilot.press("f6")
        await wait_until(
            pilot, lambda: any("cannot be handed" in notice.message for notice in app._notifications)
        )


@pytest.mark.usefixtures("suspending")
async def test_an_answer_goes_on_behind_the_editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "VISUAL", str(script(tmp_path, f'while [ ! -e "{tmp_path}/done" ]; do sleep 0.05; done'))
    )
    parts = Parts(tmp_path / "data", Script([THOUGHT]))
    parts.allow = 5
    async with chat(parts) as (app, pilot):
        await say(pilot, "Capital?")
        await wait_until(pilot, lambda: tokens_shown(app) == 5)
        await pilot.press("f6")
        parts.engine.let(None)
        await wait_until(pilot, lambda: app.session and not app.session.busy)
        (tmp_path / "done").touch()
        await answered(pilot, app)
        await wait_until(pilot, lambda: "The capital is Paris." in screen_text(app))


def test_visual_comes_before_editor_and_both_before_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", " ")
    monkeypatch.setenv("EDITOR", "emacs -nw")
    assert editor_command() == ["emacs", "-nw"]
    monkeypatch.setenv("VISUAL", "code --wait")
    assert editor_command() == ["code", "--wait"]
    monkeypatch.delenv("VISUAL")
    monkeypatch.delenv("EDITOR")
    monkeypatch.setattr(external_editor, "_USUAL", ("no-such-editor",))
    with pytest.raises(EditorError, match=r"set \$VISUAL or \$EDITOR"):
        editor_command()


# -- Esc, Ctrl+C, Ctrl+D (probe 26) ----------------------------------------------------------------------


async def test_ctrl_c_copies_then_stops_then_clears_then_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[str] = []

    def copy(text: str) -> Copied:
        taken.append(text)
        return Copied(False, "Asked the terminal to copy.")

    monkeypatch.setattr("dsv4chat.app.clipboard.copy", copy)
    parts = Parts(tmp_path, Script([THOUGHT]))
    parts.allow = 20
    async with chat(parts) as (app, pilot):
        await say(pilot, "Capital?")
        await wait_until(pilot, lambda: tokens_shown(app) == 20)
        composer = one(app, Composer)
        composer.insert("a draft")
        composer.select_all()
        await pilot.press("ctrl+c")
        await wait_until(pilot, lambda: taken == ["a draft"])
        await wait_until(
            pilot, lambda: any("Asked the terminal" in notice.message for notice in app._notifications)
        )
        assert app.session is not None
        assert app.session.busy
        composer.move_cursor(composer.document.end)
        await pilot.press("ctrl+c")
        await answered(pilot, app)
        assert app.session.path[-1].state == "stopped"
        assert composer.text == "a draft"
        await pilot.press("ctrl+c")
        await wait_until(pilot, lambda: composer.text == "")
        await pilot.press("ctrl+c")
        await wait_until(pilot, lambda: isinstance(app.screen, QuitScreen))
        await pilot.press("escape")
        await wait_until(pilot, lambda: app.screen is app.chat)


async def test_ctrl_d_deletes_and_asks_about_quitting_only_when_the_input_is_empty(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path)) as (app, pilot):
        composer = one(app, Composer)
        composer.insert("ab")
        composer.move_cursor((0, 0))
        await pilot.press("ctrl+d")
        await wait_until(pilot, lambda: composer.text == "b")
        await pilot.press("end", "ctrl+d")
        await pilot.pause()
        assert composer.text == "b"
        assert app.screen is app.chat
        composer.clear()
        await pilot.press("ctrl+d")
        await wait_until(pilot, lambda: isinstance(app.screen, QuitScreen))
        await pilot.press("y")
        await wait_until(pilot, lambda: not app.is_running)


# -- code blocks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("markdown", "blocks"),
    [
        ("no code", []),
        ("```python title=x\na\n\nb\n```", [CodeBlock("python", "a\n\nb")]),
        ("~~~\n```\n~~~", [CodeBlock("", "```")]),
        ("    indented\n    code", [CodeBlock("", "indented\ncode")]),
        ("- item\n  ```c\n  x;\n  ```\n\n```sh\nopen", [CodeBlock("c", "x;"), CodeBlock("sh", "open")]),
        ("```\n\n```", [CodeBlock("", "")]),
    ],
)
def test_code_blocks_are_found_as_commonmark_has_them(markdown: str, blocks: list[CodeBlock]) -> None:
    assert code_blocks(markdown) == blocks
