"""Messages between the app and the runtime's child process: typed, versioned, without torch or numpy.

A connection carries frames: a 4-byte little-endian length, then that many bytes of MessagePack. The child
speaks first (`Hello`); a `Hello.version` other than `PROTOCOL_VERSION` ends the conversation with a sentence.
Times are milliseconds, sizes bytes, probabilities natural logarithms. Messages about the caches of
conversations are in runtime/protocol_conversations.py.
"""

from typing import Any

import msgspec

from dsv4chat.runtime.protocol_conversations import CacheAnswer, CacheRequest, Message

PROTOCOL_VERSION = 1
MAX_FRAME_BYTES = 64 * 1024 * 1024


class SamplingParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to choose the next token. The defaults are neutral: the model's own distribution.

    Order: repetition penalty (logit > 0 divided, else multiplied) over the distinct ids of the last
    `penalty_window` tokens, prompt included; temperature; top-k; top-p; min-p; one draw from a counter-based
    generator of (seed, step). Temperature 0 is argmax, lowest id on ties.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    penalty_window: int = 256
    seed: int | None = None
    max_tokens: int | None = None
    ignore_eos: bool = False


# ---- app -> child ------------------------------------------------------------------------------------


class Load(Message, frozen=True, kw_only=True):
    """Load a model: a folder, or "demo". Answered by `Loading`* then `Ready`, or by `Failed`.

    cache_memory: bytes that conversations may take in host memory while they are not in use. cache_folder:
    where caches of conversations are saved, None: nowhere. cache_disk: bytes that folder may take. None
    elsewhere: the engine's own default.
    """

    model: str = "demo"
    device: str = "auto"
    dtype: str = "auto"
    kv_dtype: str = "auto"
    max_context: int | None = None
    cache_memory: int | None = None
    cache_folder: str | None = None
    cache_disk: int | None = None
    kernels: str = "auto"


class Generate(Message, frozen=True, kw_only=True):
    """Continue `ids`, the turn's whole prompt. Answered by `Prefill`*, `Token`*, `Finished` or `Failed`.

    turn: the caller's number for this request, repeated in every answer to it.
    conversation: whose cache to use.
    boundaries: positions in `ids` where the conversation may return to (ends of rendered messages, right
        after each `<｜Assistant｜>`); the engine keeps a checkpoint of its small state there.
    alternatives: how many of the most probable tokens to report with each token.
    """

    turn: int
    conversation: str
    ids: list[int]
    sampling: SamplingParams = SamplingParams()
    boundaries: list[int] = msgspec.field(default_factory=list)
    alternatives: int = 0


class Stop(Message, frozen=True, kw_only=True):
    """End the running turn after the current token; its `Finished` has reason "stopped"."""

    turn: int


class Drop(Message, frozen=True, kw_only=True):
    """Forget a conversation's cache."""

    conversation: str


class Ping(Message, frozen=True, kw_only=True):
    """Answered by `Pong`, also while a turn is running."""

    number: int


class Shutdown(Message, frozen=True, kw_only=True):
    """End the child."""


# ---- child -> app ------------------------------------------------------------------------------------


class Hello(Message, frozen=True, kw_only=True):
    """First frame of a child."""

    version: int
    pid: int


class Loading(Message, frozen=True, kw_only=True):
    """Progress of a load. `seconds_left` is None until it can be estimated."""

    stage: str
    bytes_done: int = 0
    bytes_total: int = 0
    tensors_done: int = 0
    tensors_total: int = 0
    seconds_left: float | None = None


class Ready(Message, frozen=True, kw_only=True):
    """The model is loaded. `layer_kinds`: "window", "csa" or "hca", one a layer."""

    model: str
    path: str
    layers: int
    layer_kinds: list[str]
    hidden_size: int
    vocab_size: int
    parameters: int
    weight_bytes: int
    device: str
    dtype: str
    kv_dtype: str
    max_context: int
    has_tokenizer: bool
    load_seconds: float


class Prefill(Message, frozen=True, kw_only=True):
    """Progress of a prefill: `done` of `total` ids fed, after `reused` ids found in the cache."""

    turn: int
    done: int
    total: int
    reused: int


class Alternative(msgspec.Struct, frozen=True, array_like=True):
    """One of the most probable tokens at a step."""

    id: int
    text: str
    logprob: float


class Token(Message, frozen=True, kw_only=True):
    """One generated token (never the stop token).

    text: the piece of text this token completes ("" inside an unfinished character, or without a tokenizer).
    residual: |X|, the largest absolute element of the residual stream after each layer, one a layer, in the
        step that chose this token.
    milliseconds: of the decode step that chose it (the first token's too: the prefill is not in it).
    """

    turn: int
    id: int
    text: str
    logprob: float
    milliseconds: float
    residual: list[float]
    alternatives: list[Alternative] = msgspec.field(default_factory=list)


class Finished(Message, frozen=True, kw_only=True):
    """End of a turn. reason: "stop" (end token), "length" (max_tokens or context), "stopped" (on request).

    ttft_ms, first_decode_ms: None when the turn ended before its first token was sampled.
    stop_id: the sampled stop token (not fed, not yielded), or None.
    tail: text held back at the end (an unfinished character), to be shown.
    restored: where what was reused had been: "memory", "disk" or "none".
    room: ids that still fit into the context. notices: sentences about saved caches that could not be used.
    """

    turn: int
    reason: str
    prefilled: int
    reused: int
    tokens: int
    ttft_ms: float | None
    prefill_ms: float
    first_decode_ms: float | None
    tokens_per_second: float
    stop_id: int | None = None
    tail: str = ""
    restored: str = "none"
    room: int | None = None
    notices: list[str] = msgspec.field(default_factory=list)


class Failed(Message, frozen=True, kw_only=True):
    """A request could not be done. kind: the error's class name; message: a sentence for a person.

    turn, number: of the request, if it had one.
    """

    kind: str
    message: str
    turn: int | None = None
    number: int | None = None


class Pong(Message, frozen=True, kw_only=True):
    """Answer to `Ping`. busy_ms: since the request in work last showed a sign of life; None without one."""

    number: int
    busy_ms: float | None = None


Request = Load | Generate | Stop | Drop | CacheRequest | Ping | Shutdown
Reply = Hello | Loading | Ready | Prefill | Token | Finished | Failed | Pong | CacheAnswer

_encoder = msgspec.msgpack.Encoder()
_request_decoder = msgspec.msgpack.Decoder(Request)
_reply_decoder = msgspec.msgpack.Decoder(Reply)


def frame(message: Request | Reply) -> bytes:
    """The bytes that carry one message."""
    body = _encoder.encode(message)
    return len(body).to_bytes(4, "little") + body


def read_request(body: bytes) -> Request:
    """A message from the app. Raises msgspec.DecodeError on anything else."""
    return _request_decoder.decode(body)


def read_reply(body: bytes) -> Reply:
    """A message from the child. Raises msgspec.DecodeError on anything else."""
    return _reply_decoder.decode(body)


def describe(message: Message) -> dict[str, Any]:
    """A message as plain data, for logs."""
    result: dict[str, Any] = msgspec.to_builtins(message)
    return result
