"""OpenAI-style `messages` as conversations: a request body, or the bare list of messages."""

from collections.abc import Mapping
from typing import Any

from dsv4chat.encoding import EncodingError, Message, conversation_from_request
from dsv4chat.exchange.conversation import ExchangeError, WholeConversation
from dsv4chat.store import ConversationRecord, ConversationSettings, MessageRecord
from dsv4chat.titles import fallback_title

_SAMPLING = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "seed", "max_tokens")


def from_messages(body: Mapping[str, Any], now: float) -> WholeConversation:
    """The conversation of a chat-completion body: `messages`, and `tools`, `title`, `temperature` ... if any.

    System messages become the conversation's system prompt. now: its time if it has none (`created`).
    Raises ExchangeError.
    """
    try:
        conversation = conversation_from_request(body)
    except EncodingError as error:
        raise ExchangeError(str(error)) from None
    created = _time(body.get("created", body.get("create_time")), now)
    messages: list[MessageRecord] = []
    for message in conversation.messages:
        if message.role == "latest_reminder":
            raise ExchangeError("A conversation of the history holds no latest_reminder; take it out.")
        if message.role != "system":
            messages.append(_record(message, len(messages) + 1, created))
    first = next((message.content for message in messages if message.role == "user"), "")
    given = body.get("title")
    title = given.strip() if isinstance(given, str) else ""
    record = ConversationRecord(
        id=0,
        title=title or fallback_title(first),
        title_by="person" if title else "text",
        created=created,
        updated=created + len(messages),
        active_leaf=messages[-1].id if messages else None,
        settings=ConversationSettings(
            system="\n\n".join(m.content for m in conversation.messages if m.role == "system" and m.content),
            thinking=conversation.thinking,
            effort=conversation.effort,
            sampling={name: body[name] for name in _SAMPLING if _is_number(body.get(name))},
            tools=list(conversation.tools),
        ),
    )
    return WholeConversation(record, messages)


def _record(message: Message, number: int, created: float) -> MessageRecord:
    return MessageRecord(
        id=number,
        conversation=0,
        parent=number - 1 or None,
        role=message.role,
        content=message.content,
        created=created + number,
        updated=created + number,
        state="stopped" if message.prefix else "complete",
        reasoning=message.reasoning,
        tool_call_id=message.tool_call_id,
        tool_calls=message.tool_calls,
        approvals=(None,) * len(message.tool_calls),
        thinking=message.reasoning is not None if message.role == "assistant" else None,
    )


def _time(value: Any, now: float) -> float:
    return float(value) if _is_number(value) and 0 <= value < 1e11 else now


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
