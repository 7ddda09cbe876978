"""Conversations to the bytes of a file."""

from collections.abc import Iterable, Iterator

import msgspec

from dsv4chat.exchange.conversation import WholeConversation
from dsv4chat.exchange.json_format import to_form
from dsv4chat.exchange.markdown import to_markdown


def write_json(conversations: Iterable[WholeConversation], *, many: bool) -> Iterator[bytes]:
    """One object, or with `many` a list of them, a conversation at a time."""
    yield b"[\n" if many else b""
    for number, whole in enumerate(conversations):
        yield (b",\n" if number else b"") + msgspec.json.encode(to_form(whole))
    yield b"\n]\n" if many else b"\n"


def write_markdown(whole: WholeConversation) -> bytes:
    """The branch that is shown."""
    return to_markdown(whole).encode("utf-8")
