"""Titles of conversations: first the first words, then the model's own, never over the person's."""

from pathlib import Path

from dsv4chat.app.events import TitleChanged
from dsv4chat.encoding import Conversation, Message, render
from tests.support.app_parts import Parts, wait_for
from tests.support.fake_engine import Script, written_out
from tests.support.sessions import THOUGHT, ask, ready


async def test_after_the_first_turn_the_model_gives_the_title(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT, THOUGHT], title="**Capital of France**"))
    session = await ready(parts)
    await ask(session, "Tell me what the capital is")
    await wait_for(lambda: session.title == "Capital of France")
    assert [event.title for event in session.events if isinstance(event, TitleChanged)] == [
        "Tell me what the capital is",
        "Capital of France",
    ]
    asked = Conversation(
        (
            Message("user", "Tell me what the capital is"),
            Message(
                "assistant",
                "Paris.",
                reasoning="Let me see.",
                ids=tuple(written_out(parts.tokenizer, THOUGHT)),
            ),
        )
    )
    expected = parts.tokenizer.encode(render(asked, parts.text.profile, task="title")).ids
    assert parts.engine.titles_asked == [expected]
    await ask(session, "Sure?")
    assert len(parts.engine.titles_asked) == 1
    await session.close()
    later = await ready(Parts(tmp_path))
    assert later.title == "Capital of France"
    await later.close()


async def test_a_model_without_a_title_leaves_the_first_words(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT], title=""))
    session = await ready(parts)
    await ask(session, "Capital?")
    await wait_for(lambda: parts.engine.titles_asked and not session._tasks)
    assert session.title == "Capital?"
    await session.close()


async def test_a_title_of_the_person_stays(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT, THOUGHT], title="The model's"))
    parts.allow = 3
    session = await ready(parts)
    session.submit("Capital?")
    await wait_for(lambda: parts.engine.asked)
    session.rename("Mine")
    await wait_for(lambda: session.title == "Mine")
    parts.engine.let(None)
    await wait_for(lambda: not session.busy and not session._tasks)
    assert session.title == "Mine"
    assert parts.engine.titles_asked == []
    await session.close()


async def test_the_next_message_does_not_wait_for_a_title(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Script([THOUGHT, "b</think>B"], title="word " * 500))
    session = await ready(parts)
    await ask(session, "Capital?")
    await ask(session, "And now?")
    assert session.path[-1].content == "B"
    assert session.title == "Capital?"
    await session.close()
