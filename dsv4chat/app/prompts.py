"""From the messages of a conversation to the prompt of the next turn. Knows no widget and no SQL."""

from collections.abc import Sequence
from dataclasses import replace

from dsv4chat.encoding import Conversation, Message, Profile, Tokenizer, render
from dsv4chat.store import ConversationSettings, MessageRecord


def to_conversation(
    path: Sequence[MessageRecord],
    settings: ConversationSettings,
    tokenizer: str,
    *,
    resumed: bool = False,
) -> Conversation:
    """The conversation as the encoder knows it. `tokenizer`: the fingerprint of the one in use.

    resumed: the last message is an unfinished answer that is to be continued.

    Answers keep the ids they were sampled with, unless another tokenizer made them. A question that got no
    word of an answer because the engine failed is left out together with that answer: asked again it would
    only fail again. What stands before `settings.start` is left out.
    """
    path = path[first_of(path, settings.start) :]
    messages: list[Message] = []
    if settings.system:
        messages.append(Message("system", settings.system))
    for record in path:
        if record.role != "assistant":
            messages.append(Message(record.role, record.content, tool_call_id=record.tool_call_id))
        elif record.content or record.ids or record.reasoning:
            messages.append(_answer(record, tokenizer))
        elif record.state == "failed" and messages and messages[-1].role == "user":
            messages.pop()
    if resumed:
        messages[-1] = replace(messages[-1], prefix=True)
    return Conversation(
        tuple(messages),
        tuple(settings.tools),
        settings.thinking,
        settings.effort if settings.thinking else None,
    )


def first_of(path: Sequence[MessageRecord], start: int | None) -> int:
    """Where on the path the prompt begins: at the message `start`; at 0 if that is on another branch."""
    return next((index for index, record in enumerate(path) if record.id == start), 0)


def _answer(record: MessageRecord, tokenizer: str) -> Message:
    same = record.generation is not None and record.generation.tokenizer == tokenizer
    return Message(
        "assistant",
        record.content,
        reasoning=record.reasoning,
        tool_calls=record.tool_calls,
        ids=record.ids if same and record.ids else None,
    )


def next_ids(
    path: Sequence[MessageRecord],
    settings: ConversationSettings,
    tokenizer: Tokenizer,
    fingerprint: str,
    profile: Profile,
) -> list[int]:
    """The prompt of a next turn with an empty message, in ids."""
    conversation = to_conversation(path, settings, fingerprint)
    asked = replace(conversation, messages=(*conversation.messages, Message("user", "")))
    return tokenizer.encode(render(asked, profile)).ids
