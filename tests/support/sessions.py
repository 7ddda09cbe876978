"""Sessions over a scripted engine, without a screen."""

from dsv4chat.app.session import ChatSession
from dsv4chat.encoding import Conversation, Message, render
from tests.support.app_parts import Parts, wait_for

THOUGHT = "Let me see.</think>Paris."


async def ready(parts: Parts) -> ChatSession:
    session = parts.session()
    await session.open_history()
    session.start_engine()
    await wait_for(lambda: session.link.state in ("ready", "down"))
    return session


async def ask(session: ChatSession, text: str) -> None:
    assert session.submit(text)
    await wait_for(lambda: not session.busy)


def prompt_ids(
    parts: Parts, *messages: Message, thinking: bool = True, effort: str | None = None
) -> list[int]:
    conversation = Conversation(tuple(messages), thinking=thinking, effort=effort)
    return parts.tokenizer.encode(render(conversation, parts.text.profile)).ids
