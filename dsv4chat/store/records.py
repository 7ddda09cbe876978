"""What the history hands out and takes in: plain records, no SQL. Times are seconds since 1970."""

from dataclasses import dataclass, field

from dsv4chat.encoding import ToolCall


@dataclass(frozen=True)
class ConversationSettings:
    """What belongs to a conversation rather than to a turn. `sampling` and `tools` are plain JSON data.

    start: the message the prompt begins with where it is on the path, None for the first one; what is above
    it is left out.
    """

    system: str = ""
    thinking: bool = True
    effort: str | None = None
    sampling: dict[str, object] = field(default_factory=dict)
    tools: list[dict[str, object]] = field(default_factory=list)
    start: int | None = None


@dataclass(frozen=True)
class ConversationRecord:
    """One conversation. `title_by`: "none" (no title), "text" (the first words), "model", "person"."""

    id: int
    title: str
    title_by: str
    created: float
    updated: float
    active_leaf: int | None
    settings: ConversationSettings


@dataclass(frozen=True)
class ConversationSummary:
    """A line of the list of conversations: messages of all branches are counted."""

    id: int
    title: str
    updated: float
    messages: int
    preview: str


@dataclass(frozen=True)
class GenerationRecord:
    """How an answer was made. `tokenizer` is its fingerprint: kept ids may be reused only under the same one.

    The figures from `prompt_tokens` on are None until the turn has got that far.
    """

    model: str
    tokenizer: str
    profile: str
    layers: int = 0
    sampling: dict[str, object] = field(default_factory=dict)
    prompt_tokens: int | None = None
    reused: int | None = None
    prefilled: int | None = None
    tokens: int | None = None
    ttft_ms: float | None = None
    prefill_ms: float | None = None
    first_decode_ms: float | None = None
    reasoning_tokens: int | None = None
    reasoning_ms: float | None = None
    tokens_per_second: float | None = None
    stop_id: int | None = None


@dataclass(frozen=True)
class MessageRecord:
    """One message. state: complete, writing (being generated now), stopped (by the person), interrupted (the
    program ended), length (limit reached), failed (the engine; `error` says why).

    ids: the sampled token ids of an answer, in order. generation: how it was made, None for other roles.
    approvals: what the person said to each of `tool_calls`: once, always, never, None (not asked).
    """

    id: int
    conversation: int
    parent: int | None
    role: str
    content: str
    created: float
    state: str = "complete"
    reasoning: str | None = None
    error: str | None = None
    tool_call_id: str | None = None
    thinking: bool | None = None
    effort: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    ids: tuple[int, ...] = ()
    generation: GenerationRecord | None = None
    updated: float = 0.0
    approvals: tuple[str | None, ...] = ()


@dataclass(frozen=True)
class Branch:
    """Where a message stands among the branches at its place: `ids`, oldest first, itself at `index`."""

    index: int
    ids: tuple[int, ...]


@dataclass(frozen=True)
class Deleted:
    """What `delete_message` hid, and what it takes to bring it back. messages: how many were hidden."""

    conversation: int
    message: int
    messages: int
    leaf_before: int | None
    stamp: float


@dataclass(frozen=True)
class Prompt:
    """A message a person once sent."""

    message: int
    text: str


@dataclass(frozen=True)
class Found:
    """A message found by search.

    excerpt: one line of the text around the first word found, cut with "…". marks: where the words stand in
    it, as (start, end). where: "content" or "reasoning".
    """

    conversation: int
    message: int
    title: str
    role: str
    created: float
    excerpt: str
    marks: tuple[tuple[int, int], ...] = ()
    where: str = "content"
