"""What keys and mouse do to messages in the whole app: select, edit, answer again, branches, delete, undo."""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from dsv4chat.app.app import ChatApp
from dsv4chat.app.screens.conversation_screen import ConversationScreen
from dsv4chat.app.widgets.assistant_message import AssistantMessage
from dsv4chat.app.widgets.composer import Composer
from dsv4chat.app.widgets.title_bar import TitleBar
from dsv4chat.app.widgets.transcript import Transcript
from dsv4chat.app.widgets.user_message import UserMessage
from tests.support.app_parts import Parts, screen_text, wait_until
from tests.support.chat import THOUGHT, answered, chat, one, say, tokens_shown
from tests.support.fake_engine import Script

TWO = ["a</think>Answer one.", "b</think>Answer two.", "c</think>Answer three."]


async def two_turns(pilot: Pilot[None], app: ChatApp) -> Transcript:
    await say(pilot, "question one")
    await answered(pilot, app)
    await say(pilot, "question two")
    await answered(pilot, app, 2)
    transcript = one(app, Transcript)
    transcript.focus()
    await pilot.pause()
    return transcript


def selected(transcript: Transcript) -> str:
    record = transcript.selected_record
    return record.content if record is not None else ""


async def test_up_and_down_walk_over_the_messages(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path, Script(list(TWO)))) as (app, pilot):
        transcript = await two_turns(pilot, app)
        seen = [selected(transcript)]
        for key in ("up", "up", "up", "up", "down"):
            await pilot.press(key)
            seen.append(selected(transcript))
        assert seen == [
            "Answer two.",
            "question two",
            "Answer one.",
            "question one",
            "question one",
            "Answer one.",
        ]
        assert len(app.chat.query(".-selected")) == 1
        await pilot.press("escape")
        assert one(app, Composer).has_focus


async def test_a_message_higher_than_the_view_is_walked_through_before_the_next(tmp_path: Path) -> None:
    high = "b</think>" + "".join(f"Line {number}.\n\n" for number in range(60)) + "The end."
    async with chat(Parts(tmp_path, Script([TWO[0], high]))) as (app, pilot):
        transcript = await two_turns(pilot, app)
        end = transcript.max_scroll_y
        await wait_until(pilot, lambda: transcript.scroll_y == end > 60)
        await pilot.press("up")
        await wait_until(pilot, lambda: transcript.scroll_y == end - 3)
        assert selected(transcript).startswith("Line 0.")
        for _ in range(int(end)):
            await pilot.press("up")
            if selected(transcript) == "question two":
                break
        assert selected(transcript) == "question two"
        await pilot.press("down")
        await wait_until(pilot, lambda: "Line 0." in screen_text(app))
        assert selected(transcript).startswith("Line 0.")
        assert "The end." not in screen_text(app)


async def test_a_message_without_branches_says_so_and_keys_copy_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, taken = tmp_path / "xclip", tmp_path / "taken"
    program.write_text(f"#!/bin/sh\ncat >> {taken}\necho >> {taken}\n")
    program.chmod(0o700)
    for name in ("WAYLAND_DISPLAY", "SSH_CONNECTION", "SSH_TTY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("DISPLAY", ":0")
    async with chat(Parts(tmp_path, Script(list(TWO)))) as (app, pilot):
        await two_turns(pilot, app)
        await pilot.press("left")
        assert "There is no other branch at this message." in [one.message for one in app._notifications]
        await pilot.press("y")
        await wait_until(pilot, lambda: taken.exists() and taken.read_text() == "Answer two.\n")
        await pilot.press("up", "y")
        await wait_until(pilot, lambda: taken.read_text() == "Answer two.\nquestion two\n")


async def test_an_empty_conversation_has_no_message_to_select(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path)) as (app, pilot):
        transcript = one(app, Transcript)
        transcript.focus()
        await pilot.press("up", "down", "e", "t", "i", "d")
        assert transcript.selected_record is None
        assert app.screen is app.chat


async def test_a_message_is_edited_and_the_first_version_is_a_branch_away(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path, Script(list(TWO)))) as (app, pilot):
        await two_turns(pilot, app)
        await pilot.press("up", "e")
        composer = one(app, Composer)
        await wait_until(pilot, lambda: composer.text == "question two")
        assert composer.has_focus
        await pilot.press("end", *" again", "enter")
        await wait_until(pilot, lambda: "Answer three." in screen_text(app))
        await answered(pilot, app, 2)
        shown = screen_text(app)
        assert "question two again" in shown
        assert "Answer two." not in shown
        assert "‹ 2/2 ›" in shown
        assert composer.text == ""
        one(app, Transcript).focus()
        await pilot.press("up", "left")
        await wait_until(pilot, lambda: "‹ 1/2 ›" in screen_text(app))
        shown = screen_text(app)
        assert "Answer two." in shown
        assert "question two again" not in shown
        await pilot.press("right")
        await wait_until(pilot, lambda: "Answer three." in screen_text(app))


async def test_leaving_an_edit_brings_the_draft_back_and_changes_nothing(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(list(TWO)))
    async with chat(parts) as (app, pilot):
        await two_turns(pilot, app)
        composer = one(app, Composer)
        composer.insert("a draft")
        await pilot.press("up", "up", "e")
        await wait_until(pilot, lambda: composer.text == "question one")
        await pilot.press("escape")
        await wait_until(pilot, lambda: composer.text == "a draft")
        assert len(parts.engine.asked) == 2


async def test_the_edit_of_a_message_that_is_deleted_meanwhile_becomes_a_message(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(list(TWO)))
    async with chat(parts) as (app, pilot):
        await two_turns(pilot, app)
        composer = one(app, Composer)
        composer.insert("a draft")
        await pilot.press("up", "e")
        await wait_until(pilot, lambda: composer.text == "question two")
        await pilot.press("end", *" anew")
        one(app, Transcript).focus()
        await pilot.press("d")
        await wait_until(pilot, lambda: "Answer two." not in screen_text(app))
        composer.focus()
        await pilot.press("enter")
        await wait_until(pilot, lambda: "is not here any more" in screen_text(app))
        assert composer.text == "question two anew\n\na draft"
        assert composer.editing is None
        await pilot.press("enter")
        await answered(pilot, app, 2)
        assert "question two anew" in screen_text(app)


async def test_the_arrows_of_the_mark_are_for_the_mouse(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path, Script(list(TWO)))) as (app, pilot):
        await say(pilot, "question")
        await answered(pilot, app)
        one(app, Transcript).focus()
        await pilot.press("r")
        await wait_until(pilot, lambda: "Answer two." in screen_text(app))
        await answered(pilot, app)
        rows = screen_text(app).split("\n")
        row = next(number for number, line in enumerate(rows) if "‹ 2/2 ›" in line)
        column = rows[row].index("‹")
        await pilot.click(offset=(column, row))
        await wait_until(pilot, lambda: "Answer one." in screen_text(app) and "‹ 1/2 ›" in screen_text(app))
        await pilot.click(offset=(column, row))  # there is none before the first one
        await pilot.click(offset=(column + 6, row))
        await wait_until(pilot, lambda: "Answer two." in screen_text(app) and "‹ 2/2 ›" in screen_text(app))


async def test_a_click_selects_a_message(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path, Script(list(TWO)))) as (app, pilot):
        transcript = await two_turns(pilot, app)
        await pilot.click(UserMessage)
        assert selected(transcript) == "question one"
        await pilot.click(AssistantMessage, offset=(5, 2))
        assert selected(transcript) == "Answer one."


async def test_a_stopped_answer_goes_on_in_its_place(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT, " It lies on the Seine."]))
    parts.allow = 26
    async with chat(parts) as (app, pilot):
        await say(pilot, "Capital?")
        await wait_until(pilot, lambda: tokens_shown(app) == 26)
        await pilot.press("escape")
        await answered(pilot, app)
        before = screen_text(app)
        assert "stopped" in before
        parts.engine.let(None)
        one(app, Transcript).focus()
        await pilot.press("c")
        await wait_until(pilot, lambda: "on the Seine." in screen_text(app))
        await answered(pilot, app)
        shown = screen_text(app)
        assert "The capital" in shown
        assert "stopped" not in shown
        assert len(app.chat.query(AssistantMessage)) == 1
        assert "▸ Thought · 0.1 s · 12 tokens" in shown


async def test_deleted_messages_come_back(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path, Script(list(TWO)))) as (app, pilot):
        await two_turns(pilot, app)
        await pilot.press("up", "d")
        await wait_until(pilot, lambda: "question two" not in screen_text(app))
        assert "Answer one." in screen_text(app)
        await pilot.press("u")
        await wait_until(pilot, lambda: "Answer two." in screen_text(app))


async def test_one_answers_thinking_is_unfolded_by_a_key(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path, Script(["first thought</think>A", "other thought</think>B"]))) as (
        app,
        pilot,
    ):
        await two_turns(pilot, app)
        await pilot.press("t")
        await wait_until(pilot, lambda: "other thought" in screen_text(app))
        assert "first thought" not in screen_text(app)
        await pilot.press("t")
        await wait_until(pilot, lambda: "other thought" not in screen_text(app))


async def test_title_system_prompt_and_sampling_belong_to_the_conversation(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script(list(TWO)))
    async with chat(parts) as (app, pilot):
        await say(pilot, "question one")
        await answered(pilot, app)
        await pilot.press("f2")
        await wait_until(pilot, lambda: isinstance(app.screen, ConversationScreen))
        screen = app.screen
        screen.query_one("#title").value = "My own title"  # type: ignore[attr-defined]
        screen.query_one("#system").text = "Be brief."  # type: ignore[attr-defined]
        screen.query_one("#temperature").value = "much"  # type: ignore[attr-defined]
        await pilot.press("ctrl+s")
        await wait_until(pilot, lambda: "temperature must be a number" in screen_text(app))
        screen.query_one("#temperature").value = "-1"  # type: ignore[attr-defined]
        await pilot.press("ctrl+s")
        await wait_until(pilot, lambda: "temperature: " in screen_text(app))
        screen.query_one("#temperature").value = "0.25"  # type: ignore[attr-defined]
        screen.query_one("#top_k").value = "5"  # type: ignore[attr-defined]
        await pilot.press("ctrl+s")
        await wait_until(pilot, lambda: app.screen is app.chat)
        await wait_until(pilot, lambda: one(app, TitleBar).title == "My own title")
        await say(pilot, "question two")
        await answered(pilot, app, 2)
        assert (parts.engine.sampling[1].temperature, parts.engine.sampling[1].top_k) == (0.25, 5)
        assert (parts.engine.sampling[0].temperature, parts.engine.sampling[0].top_k) == (1.0, 0)
        assert "Be brief." in parts.tokenizer.decode(parts.engine.asked[1])
        await pilot.press("ctrl+n")
        await wait_until(pilot, lambda: "Answer two." not in screen_text(app))
        await say(pilot, "elsewhere")
        await answered(pilot, app, 1)
        assert parts.engine.sampling[-1].temperature == 1.0
        assert "Be brief." not in parts.tokenizer.decode(parts.engine.asked[-1])
    async with chat(Parts(tmp_path)) as (app, pilot):
        assert app.session is not None
        assert app.session.settings.system == ""
        summaries = await app.session.summaries()
        assert "My own title" in [summary.title for summary in summaries]
