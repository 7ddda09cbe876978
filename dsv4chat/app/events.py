"""What happens in a chat, as the screen gets to know it: plain values, in order, through one queue.

The events of a running turn (`TurnStarted`, `TurnPrefill`, `TurnToken`, `TurnFinished` of `dsv4chat.turns`)
go through the same queue, between `TurnAdded` and `AnswerEnded`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from dsv4chat.app.tool_events import ToolNews
from dsv4chat.encoding import Event as ParserEvent
from dsv4chat.runtime.protocol import Loading, Ready
from dsv4chat.runtime.protocol_conversations import ConversationCache
from dsv4chat.store import Branch, ConversationRecord, MessageRecord
from dsv4chat.turns import TurnEvent

Severity = Literal["information", "warning", "error"]


@dataclass(frozen=True, slots=True)
class EngineStarting:
    """The engine's process is being started."""


@dataclass(frozen=True, slots=True)
class EngineLoading:
    """The model is being loaded."""

    progress: Loading


@dataclass(frozen=True, slots=True)
class EngineReady:
    """The model is loaded and the tokenizer is read. `profile`: of the prompts."""

    ready: Ready
    profile: str


@dataclass(frozen=True, slots=True)
class EngineDown:
    """There is no engine: it could not start, could not load, or died. `sentence` is for a person."""

    sentence: str
    log: Path
    last_lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineHangs:
    """The engine is there and does not get on; `sentence` says how. It may still recover."""

    sentence: str


@dataclass(frozen=True, slots=True)
class EngineRecovered:
    """The engine that hung gets on again."""


@dataclass(frozen=True, slots=True)
class TurnStopping:
    """The running turn has been asked to end; it will after its current token."""


@dataclass(frozen=True, slots=True)
class TurnStopped:
    """The turn that was asked to end has ended, with or without a last answer."""


@dataclass(frozen=True, slots=True)
class ConversationShown:
    """Another conversation is open now; `record` is None for a new one that has no message yet.

    branches: of each message of the path that has others beside it. seen: the message to look at, None: the
    last one.
    """

    record: ConversationRecord | None
    path: tuple[MessageRecord, ...]
    branches: Mapping[int, Branch] = field(default_factory=dict)
    seen: int | None = None


@dataclass(frozen=True, slots=True)
class PromptsRead:
    """What the person sent in earlier runs of the program, the oldest first."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PathChanged:
    """The open conversation shows another path now: messages were cut off, or another branch is shown."""

    path: tuple[MessageRecord, ...]
    branches: Mapping[int, Branch] = field(default_factory=dict)
    seen: int | None = None


@dataclass(frozen=True, slots=True)
class TitleChanged:
    """The open conversation has another title."""

    title: str


@dataclass(frozen=True, slots=True)
class TurnAdded:
    """A question was written to the history and an empty answer begun; `user` is None for another answer.

    branches: of the whole path, as they are with the two.
    """

    user: MessageRecord | None
    answer: MessageRecord
    branches: Mapping[int, Branch] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AnswerResumed:
    """The last answer, which was unfinished, is being continued; `answer` holds what it says so far."""

    answer: MessageRecord


@dataclass(frozen=True, slots=True)
class AnswerEnded:
    """The end of a turn, whatever ended it.

    answer: as it stands in the history. rest: text the parser had held back, if no `TurnFinished` brought it.
    """

    answer: MessageRecord
    rest: tuple[ParserEvent, ...] = ()


@dataclass(frozen=True, slots=True)
class ModeChanged:
    """Thinking or effort is set differently from the next turn on."""

    thinking: bool
    effort: str | None


@dataclass(frozen=True, slots=True)
class CachesMeasured:
    """Where the engine keeps what conversations were fed, the last used one first."""

    caches: tuple[ConversationCache, ...]


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence for the person."""

    sentence: str
    severity: Severity = "information"


@dataclass(frozen=True, slots=True)
class HistoryInMemory:
    """Nothing is written to the disk any more."""

    sentence: str


ChatEvent = (
    EngineStarting
    | EngineLoading
    | EngineReady
    | EngineDown
    | EngineHangs
    | EngineRecovered
    | TurnStopping
    | TurnStopped
    | ConversationShown
    | PathChanged
    | PromptsRead
    | TitleChanged
    | TurnAdded
    | AnswerResumed
    | TurnEvent
    | AnswerEnded
    | ModeChanged
    | CachesMeasured
    | Notice
    | HistoryInMemory
    | ToolNews
)
