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
    only fail again.
    """
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


def _answer(record: MessageRecord, tokenizer: str) -> Message:
    same = record.generation is not None and record.generation.tokenizer == tokenizer
    return Message(
        "assistant",
        record.content,
        reasoning=record.reasoning,
        tool_calls=record.tool_calls,
        ids=record.ids if same and record.ids else None,
    )


def read_again(
    path: Sequence[MessageRecord],
    before: ConversationSettings,
    after: ConversationSettings,
    fed: Sequence[int],
    tokenizer: Tokenizer,
    fingerprint: str,
    profile: Profile,
) -> int:
    """How many ids the next turn prefills anew because of a change of settings, 0 if it makes no difference.

    fed: the ids the engine has in its cache. What the next message itself costs is not counted.
    """
    reused = []
    lengths = []
    for settings in (before, after):
        conversation = to_conversation(path, settings, fingerprint)
        asked = Conversation(
            (*conversation.messages, Message("user", "")),
            conversation.tools,
            conversation.thinking,
            conversation.effort,
        )
        ids = tokenizer.encode(render(asked, profile)).ids
        reused.append(_common(ids, fed))
        lengths.append(len(ids))
    return lengths[1] - reused[1] if reused[1] < reused[0] else 0


def _common(left: Sequence[int], right: Sequence[int]) -> int:
    for index, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return index
    return min(len(left), len(right))
