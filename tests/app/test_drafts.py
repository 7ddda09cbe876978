"""Unsent text outlives quitting, being killed and looking at other conversations; sent text does not."""

from pathlib import Path

import pytest
from textual.events import Paste
from textual.pilot import Pilot

from dsv4chat.app.app import ChatApp
from dsv4chat.app.drafts import Drafts
from dsv4chat.app.widgets.composer import Composer
from dsv4chat.app.widgets.waiting_messages import WaitingMessages
from dsv4chat.store import ConversationSettings, Repository, open_history
from tests.support.app_parts import Parts, wait_until
from tests.support.chat import THOUGHT, answered, chat, one, say, tokens_shown
from tests.support.fake_engine import Script
from tests.support.host import hosted

MIDDLE = "a line of it\n" * 300


def text(app: ChatApp) -> str:
    return one(app, Composer).whole_text


def kept(folder: Path) -> dict[int | None, str]:
    """All drafts, read by a second program."""
    history = open_history(folder).repository
    rows = history.connection.execute("SELECT conversation_id, text FROM draft").fetchall()
    history.close()
    return {row["conversation_id"]: row["text"] for row in rows}


async def two_conversations(app: ChatApp, pilot: Pilot[None]) -> tuple[int, int]:
    """Their numbers; the second one is open."""
    numbers: list[int] = []
    for question in ("one", "two"):
        if numbers:
            await pilot.press("ctrl+n")
            await wait_until(pilot, lambda: app.session is not None and app.session.record is None)
        await say(pilot, question)
        await answered(pilot, app)
        assert app.session is not None
        assert app.session.record is not None
        numbers.append(app.session.record.id)
    return numbers[0], numbers[1]


async def test_what_was_typed_and_pasted_is_there_after_quitting(tmp_path: Path) -> None:
    async with chat(Parts(tmp_path)) as (app, pilot):
        await pilot.press(*"half ")
        app.chat.query_one(Composer).post_message(Paste(MIDDLE))
        await wait_until(pilot, lambda: "[pasted text" in one(app, Composer).text)
        await pilot.press(*" a question")
        await pilot.press("ctrl+q")
    assert kept(tmp_path) == {None: f"half {MIDDLE} a question"}
    async with chat(Parts(tmp_path)) as (app, pilot):
        await wait_until(pilot, lambda: text(app) == f"half {MIDDLE} a question")
        await pilot.press("!")
        assert text(app) == f"half {MIDDLE} a question!"


async def test_it_is_written_about_a_second_after_the_last_key_and_not_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    save_draft = Repository.save_draft

    def watched(self: Repository, conversation: int | None, text: str) -> None:
        written.append(text)
        save_draft(self, conversation, text)

    monkeypatch.setattr(Repository, "save_draft", watched)
    async with chat(Parts(tmp_path)) as (app, pilot):
        await pilot.press(*"sixteen letters.")
        await wait_until(pilot, lambda: kept(tmp_path) == {None: "sixteen letters."})
        count = len(written)
        assert count < 8
        await pilot.pause(1.5)
        assert len(written) == count  # nothing new, nothing written
        await pilot.press("ctrl+c")
        await wait_until(pilot, lambda: not kept(tmp_path))
        assert text(app) == ""


async def test_each_conversation_has_its_own(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT] * 2))
    async with chat(parts) as (app, pilot):
        first, second = await two_conversations(app, pilot)
        assert app.session is not None
        await pilot.press(*"for two")
        app.session.open_conversation(first)
        await wait_until(pilot, lambda: app.session.record.id == first and not text(app))  # type: ignore[union-attr]
        await pilot.press(*"for one")
        await pilot.press("ctrl+n")
        await pilot.press(*"for none")
        await wait_until(pilot, lambda: app.session.record is None and text(app) == "for none")  # type: ignore[union-attr]
        app.session.open_conversation(second)
        await wait_until(pilot, lambda: text(app) == "for two")
        app.session.open_conversation(first)
        await wait_until(pilot, lambda: text(app) == "for one")
        await pilot.press("ctrl+n")
        await wait_until(pilot, lambda: text(app) == "for none")
        await pilot.press("ctrl+q")
    assert kept(tmp_path) == {first: "for one", second: "for two", None: "for none"}


async def test_what_is_typed_after_the_key_for_another_conversation_is_for_that_one(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT] * 3))
    async with chat(parts) as (app, pilot):
        first, second = await two_conversations(app, pilot)
        assert app.session is not None
        await app.session.store.run(lambda history: history.save_draft(first, "earlier"))
        await pilot.press(*"here")
        app.session.open_conversation(first)
        one(app, Composer).insert("there")
        await wait_until(pilot, lambda: text(app) == "earlier\n\nthere")
        app.session.open_conversation(second)
        await wait_until(pilot, lambda: text(app) == "here")


async def test_sending_removes_it_also_where_that_makes_the_conversation(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT] * 2))
    async with chat(parts) as (app, pilot):
        await pilot.press(*"question")
        await wait_until(pilot, lambda: kept(tmp_path) == {None: "question"})
        await pilot.press("enter")
        await answered(pilot, app)
        await wait_until(pilot, lambda: not kept(tmp_path))
        await pilot.press(*"another")
        await wait_until(pilot, lambda: list(kept(tmp_path).values()) == ["another"])
        assert None not in kept(tmp_path)
        await pilot.press("enter")
        await answered(pilot, app, 2)
        await wait_until(pilot, lambda: not kept(tmp_path))


async def test_a_message_that_waits_to_be_sent_is_kept_until_it_is(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT, THOUGHT]))
    parts.allow = 10
    async with chat(parts) as (app, pilot):
        await say(pilot, "first")
        await wait_until(pilot, lambda: tokens_shown(app) == 10)
        await say(pilot, "second")
        await wait_until(pilot, lambda: len(one(app, WaitingMessages)) == 1)
        await pilot.press(*"third")
        await wait_until(pilot, lambda: list(kept(tmp_path).values()) == ["second\n\nthird"])
        parts.engine.let(None)
        await answered(pilot, app, 2)
        await wait_until(pilot, lambda: list(kept(tmp_path).values()) == ["third"])


async def test_a_message_that_is_being_edited_is_no_draft_but_what_was_being_written_is(
    tmp_path: Path,
) -> None:
    parts = Parts(tmp_path, Script([THOUGHT]))
    async with chat(parts) as (app, pilot):
        await say(pilot, "question")
        await answered(pilot, app)
        await pilot.press(*"mine")
        composer = one(app, Composer)
        assert app.session is not None
        composer.begin_edit(app.session.path[0].id, "question")
        await pilot.press(*" edited")
        assert composer.text == "question edited"
        await pilot.pause(1.5)
        assert list(kept(tmp_path).values()) == ["mine"]
        await pilot.press("ctrl+q")
    assert list(kept(tmp_path).values()) == ["mine"]
    async with chat(Parts(tmp_path)) as (app, pilot):
        await wait_until(pilot, lambda: text(app) == "mine")


async def test_a_question_sent_before_the_draft_was_read_takes_what_follows_along(tmp_path: Path) -> None:
    session = Parts(tmp_path).session()
    await session.open_history()
    number = (await session.store.run(lambda history: history.create_conversation(ConversationSettings()))).id
    await session.store.run(lambda history: history.save_draft(None, "for a new one"))
    async with hosted(lambda: Composer(id="composer")) as (host, pilot):
        composer = host.query_one(Composer)
        drafts = Drafts(session, composer, WaitingMessages())
        drafts.show(None)
        drafts.sent(number)
        await pilot.pause(0.2)
        composer.insert("mine")
        drafts.save()
        await session.close()
    assert kept(tmp_path) == {number: "mine", None: "for a new one"}


async def test_a_question_sent_while_another_conversation_is_asked_for_takes_nothing_along(
    tmp_path: Path,
) -> None:
    session = Parts(tmp_path).session()
    await session.open_history()
    numbers = [
        (await session.store.run(lambda history: history.create_conversation(ConversationSettings()))).id
        for _ in range(2)
    ]
    async with hosted(lambda: Composer(id="composer")) as (host, pilot):
        composer = host.query_one(Composer)
        drafts = Drafts(session, composer, WaitingMessages())
        drafts.show(None)
        await pilot.pause(0.2)
        drafts.leave()
        composer.insert("for the second")
        drafts.sent(numbers[0])
        drafts.show(numbers[1])
        await pilot.pause(0.2)
        drafts.save()
        await session.close()
    assert kept(tmp_path) == {numbers[1]: "for the second"}


async def test_a_conversation_that_cannot_be_opened_leaves_everything_as_it_was(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT]))
    async with chat(parts) as (app, pilot):
        await say(pilot, "question")
        await answered(pilot, app)
        await pilot.press(*"mine")
        assert app.session is not None
        app.session.open_conversation(12345)
        assert text(app) == ""
        await wait_until(pilot, lambda: text(app) == "mine")


async def test_a_conversation_another_program_removed_does_not_spoil_the_history(tmp_path: Path) -> None:
    history = open_history(tmp_path).repository
    talk = history.create_conversation(ConversationSettings()).id
    history.add_message(talk, None, "user", "question")
    async with chat(Parts(tmp_path)) as (app, pilot):
        assert app.session is not None
        assert app.session.record is not None
        history.purge(talk)
        history.close()
        await pilot.press(*"mine")
        await pilot.press("ctrl+n")
        await pilot.press(*"new")
        await wait_until(pilot, lambda: kept(tmp_path) == {None: "new"})
        assert app.session.store.persistent
