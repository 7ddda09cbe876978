"""Titles of conversations: the model's, asked for by its own `title` task, or the first words of a message.

The task's token follows a finished turn, so the model has read everything already when it is asked at once:

    title = await make_title(engine, tokenizer, profile, conversation, conversation_id="7")
    title = title or fallback_title(first_message)
"""

import asyncio
import re
import unicodedata
from collections.abc import Sequence
from contextlib import aclosing

from dsv4chat.encoding import Conversation, EncodingError, Profile, Tokenizer
from dsv4chat.engine_errors import EngineFailed
from dsv4chat.runtime.protocol import SamplingParams
from dsv4chat.turns import TokenSource, Turn, TurnFinished

LONGEST = 60  # characters of a title
TOKENS = 40  # a model that has not ended its title by then is not writing one
_READ = 4000  # characters looked at for a title
_JOINERS = "\u200c\u200d"
_HEAD = re.compile(r"\A(?:[#>*_`\"'“”‘’«»\s-]|title\s*:)+", re.IGNORECASE)
_TAIL = "*_`\"'“”‘’«» .,;:-"
_WORD = re.compile(r"[^\W_\u0e00-\U0010ffff]+|[^\W_]")  # from Thai on, scripts are read by the character
_COMMON = frozenset(
    "a about all am an and any are as at be been but by can chat could did do does for from get give go "  # noqa: SIM905
    "had has have he her here his how i if in into is it its just know let like make me my need new no "
    "not of on one or our out please she should show so some tell than that the their them then there "
    "these they this those to told up us use want was we were what when where which who why will with "
    "would you your".split()
)


def title_turn(
    engine: TokenSource,
    tokenizer: Tokenizer,
    profile: Profile,
    conversation: Conversation,
    *,
    conversation_id: str = "default",
) -> Turn:
    """The turn that asks for a title of `conversation`, which ends with a finished answer.

    Greedy and short. EncodingError if there is no such answer.
    """
    last = conversation.messages[-1] if conversation.messages else None
    if last is None or last.role != "assistant" or last.prefix:
        raise EncodingError("A title can be asked for after a finished answer only.")
    return Turn(
        engine,
        tokenizer,
        profile,
        conversation,
        conversation_id=conversation_id,
        sampling=SamplingParams(temperature=0.0, max_tokens=TOKENS),
        task="title",
    )


async def make_title(
    engine: TokenSource,
    tokenizer: Tokenizer,
    profile: Profile,
    conversation: Conversation,
    *,
    conversation_id: str = "default",
) -> str | None:
    """The model's title for `conversation`; None if it wrote none that is about it, or could not.

    Raises EngineDied. Cancelled, it stops the engine.
    """
    reply = None
    try:
        # In a thread: the prompt of a long conversation takes a while.
        turn = await asyncio.to_thread(
            title_turn, engine, tokenizer, profile, conversation, conversation_id=conversation_id
        )
        async with aclosing(turn.events()) as events:
            async for event in events:
                if isinstance(event, TurnFinished) and event.reason == "stop":
                    reply = event.message.content
    except (EngineFailed, EncodingError):
        return None
    title = None if reply is None else clean_title(reply)
    said = [message.content for message in conversation.messages if message.role == "user"]
    return title if title is not None and is_about(title, said) else None


def is_about(title: str, said: Sequence[str]) -> bool:
    """Whether a title can be one for what a person said, the first message first.

    A small model gives what it does not understand the title of something else, or the beginning of the
    message, cut off anywhere. So some word that means something must be the person's, and where the
    message goes on the last word must mean something.
    """
    words = _words(title)
    first = _words(said[0]) if said else []
    if len(words) < len(first) and words == first[: len(words)] and words[-1] in _COMMON:
        return False
    theirs = {word for text in said for word in _words(text)} - _COMMON
    return any(_same(word, other) for word in set(words) - _COMMON for other in theirs)


def clean_title(reply: str) -> str | None:
    """A model's reply as one line of at most `LONGEST` characters; None if no word is left of it.

    Control characters, marks that reorder text, Markdown and quotes around it are taken away.
    """
    lines = (_HEAD.sub("", _harmless(line)).rstrip(_TAIL) for line in reply[:_READ].splitlines())
    line = next((line for line in lines if _has_word(line)), None)
    return None if line is None else _short(line)


def fallback_title(text: str) -> str:
    """A title from the first words of a message: one line, cut at a word; "" if there is no word in it."""
    line = _harmless(text[:_READ])
    line = line.lstrip("#>*`- ") if _has_word(line) else ""
    return _short(line)


def _harmless(text: str) -> str:
    """One line without characters that a terminal or a reader could be led astray by."""
    kept = (
        character
        if character in _JOINERS or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn")
        else " "
        if unicodedata.category(character) == "Cc"
        else ""
        for character in text
    )
    return " ".join("".join(kept).split())


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text[:_READ]).casefold())


def _same(word: str, other: str) -> bool:
    """Whether they are one word, or one is the other with an ending."""
    short, long = sorted((word, other), key=len)
    return short == long or (len(short) >= 4 and long.startswith(short))


def _has_word(text: str) -> bool:
    return any(character.isalnum() for character in text)


def _short(line: str) -> str:
    if len(line) <= LONGEST:
        return line
    cut = LONGEST - 1
    # Not inside a character that is written with several code points.
    while cut > 1 and (unicodedata.combining(line[cut]) or _joins(line[cut]) or _joins(line[cut - 1])):
        cut -= 1
    words = line[:cut].rsplit(" ", 1)[0] if line[cut] != " " else line[:cut]
    return (words if len(words) > LONGEST // 2 else line[:cut]).rstrip(_TAIL) + "…"


def _joins(character: str) -> bool:
    return character in _JOINERS or "\ufe00" <= character <= "\ufe0f"
