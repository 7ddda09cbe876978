"""Where an unfinished answer stands that a completion continues."""

from dsv4chat.encoding.conversation import Message
from dsv4chat.encoding.tokenizer import Tokenizer


def left_thinking(prefix: Message, tokenizer: Tokenizer | None) -> bool:
    """Whether the message is past its reasoning: it says something, or its ids close the reasoning."""
    if prefix.content or prefix.tool_calls:
        return True
    return tokenizer is not None and tokenizer.think_end_id in (prefix.ids or ())
