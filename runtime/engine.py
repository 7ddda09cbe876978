"""The engine: a model, its tokenizer if it has one, and warm conversations.

    engine = Engine.load("demo")
    for token in engine.generate(ids, SamplingParams(temperature=0)):
        print(token.text, end="")
    engine.last_turn.prefilled

Ids in, ids out; text is the encoder's business. One caller at a time.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from dsv4chat.encoding import EncodingError, Tokenizer
from dsv4chat.runtime.cache import KVCache
from dsv4chat.runtime.cache_folder import DISK_BYTES, CacheFolder
from dsv4chat.runtime.config import ModelConfig
from dsv4chat.runtime.conversations import (
    MEMORY_BYTES,
    ConversationFigures,
    Conversations,
    Resumed,
    SaveFigures,
)
from dsv4chat.runtime.errors import TokenizerMissingError
from dsv4chat.runtime.fingerprint import fingerprint
from dsv4chat.runtime.generation import PrefillProgress, Token, TurnReport, TurnRequest, run_turn
from dsv4chat.runtime.model import Model
from dsv4chat.runtime.opening import load_model, source_of
from dsv4chat.runtime.placement import choose_device, choose_dtype, choose_kv_dtype
from dsv4chat.runtime.prompt_ids import at_least, checked_boundaries, checked_ids, chunk_sizes
from dsv4chat.runtime.protocol import SamplingParams
from dsv4chat.runtime.sampler import check_params, with_seed
from dsv4chat.runtime.session import Session

DEFAULT_CONTEXT = 32_768

LoadProgress = Callable[[int, int, int, int], None]


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What was loaded, and how. weight_bytes: as stored in the checkpoint."""

    model: str
    path: Path
    parameters: int
    weight_bytes: int
    device: str
    dtype: str
    kv_dtype: str
    max_context: int
    load_seconds: float


class Engine:
    """See the module's example. Made by `Engine.load`."""

    def __init__(
        self,
        model: Model,
        info: EngineInfo,
        tokenizer: Tokenizer | None,
        no_tokenizer: str = "",
        *,
        cache_memory: int | None = None,
        cache_folder: str | Path | None = None,
        cache_disk: int | None = None,
    ) -> None:
        self.model = model
        self.info = info
        self.tokenizer = tokenizer
        self.last_turn = TurnReport()
        self._no_tokenizer = no_tokenizer
        cache = KVCache(self.config, info.kv_dtype, info.max_context, model.device)
        folder = None
        if cache_folder is not None and cache_disk != 0:
            made_by = fingerprint(
                info.path,
                info.kv_dtype,
                info.dtype,
                model.device.type,
                f"{info.parameters} {info.weight_bytes}",  # tells random weights, which have no folder, apart
            )
            disk = DISK_BYTES if cache_disk is None else cache_disk
            folder = CacheFolder(Path(cache_folder).expanduser(), made_by, info.model, cache.ratios, disk)
        memory = MEMORY_BYTES if cache_memory is None else cache_memory
        self.conversations = Conversations(model, cache, folder, memory)

    @classmethod
    def load(
        cls,
        model: str | Path = "demo",
        device: str = "auto",
        dtype: str = "auto",
        kv_dtype: str = "auto",
        max_context: int | None = None,
        progress: LoadProgress | None = None,
        cache_memory: int | None = None,
        cache_folder: str | Path | None = None,
        cache_disk: int | None = None,
        kernels: str = "auto",
        layers: int | None = None,
        mix: str | None = None,
        say: Callable[[str], None] | None = None,
    ) -> "Engine":
        """Load a checkpoint folder of any spelling and format, "demo", or random weights ("random:flash").

        device: auto | cpu | cuda. dtype (activations and unquantised weights): auto | float32 | bfloat16;
        auto is float32 on a CPU. kv_dtype: auto | float32 | bfloat16 | fp8; auto is fp8, 4-bit index keys.
        max_context: the most ids a conversation may have; by default the model's own limit, at most 32,768.
        progress: called with (bytes done, bytes in all, tensors done, tensors in all).
        cache_memory: bytes that conversations may take in host memory while they are not in use; 2 GiB.
        cache_folder: where what does not fit there goes, and what is saved; by default it is forgotten.
        cache_disk: bytes that the folder may take, for all models together; 8 GiB. 0: nothing is saved.

        kernels: of the decode step on CUDA: auto | torch | cute.
        layers, mix: of random weights: only the first layers; "nvidia" or "nvfp4".
        say: hears in sentences what else takes time or cannot be had, like kernels that are built.

        Raises ConfigError, CheckpointError (something is wrong with the files), EngineError (a value that is
        not in these lists, no such device).
        """
        started = time.perf_counter()
        place = choose_device(device)
        precision = choose_dtype(dtype, place)
        storage = choose_kv_dtype(kv_dtype)
        for name, value, least in (
            ("max_context", max_context, 1),
            ("cache_memory", cache_memory, 0),
            ("cache_disk", cache_disk, 0),
        ):
            if value is not None:
                at_least(least, value, name)
        source, folder = source_of(model, place, layers, mix)
        loaded = load_model(source, place, precision, progress, kernels, say)
        tokenizer, problem = _tokenizer(folder)
        info = EngineInfo(
            model=str(model),
            path=folder,
            parameters=loaded.parameters,
            weight_bytes=loaded.stored_bytes,
            device=str(place),
            dtype=str(precision).removeprefix("torch."),
            kv_dtype=storage,
            max_context=max_context or min(loaded.config.max_position, DEFAULT_CONTEXT),
            load_seconds=time.perf_counter() - started,
        )
        return cls(
            loaded,
            info,
            tokenizer,
            problem,
            cache_memory=cache_memory,
            cache_folder=cache_folder,
            cache_disk=cache_disk,
        )

    @property
    def config(self) -> ModelConfig:
        """The model's configuration."""
        return self.model.config

    @property
    def stop_ids(self) -> frozenset[int]:
        """The ids that end a turn: the tokenizer's (end token, an opened user turn), else the end token."""
        return self.tokenizer.stop_ids if self.tokenizer else frozenset({self.config.eos_id})

    def require_tokenizer(self) -> Tokenizer:
        """The tokenizer. Raises TokenizerMissingError if the model has none that can be used."""
        if self.tokenizer is None:
            raise TokenizerMissingError(self._no_tokenizer)
        return self.tokenizer

    def logits(self, ids: Sequence[int] | Tensor, chunk: Iterable[int] | int | None = None) -> Tensor:
        """The logits after every id: float32 (len(ids), vocab) on the CPU, from an empty cache.

        chunk: None feeds everything at once, a list of sizes in those pieces, a number in pieces of it.
        Warm conversations are left alone. Raises EngineError for an id outside the vocabulary or sizes that
        do not add up, ContextOverflowError when there are more ids than the context holds.
        """
        fed = self._checked(ids)
        cache = KVCache(self.config, self.info.kv_dtype, self.info.max_context, self.model.device)
        rows, position = [], 0
        for size in chunk_sizes(len(fed), chunk):
            piece = torch.tensor(fed[position : position + size], dtype=torch.int64, device=self.model.device)
            rows.append(self.model.forward(piece, cache, "all").logits.float().cpu())
            position += size
        return torch.cat(rows)

    def generate(
        self,
        ids: Sequence[int] | Tensor,
        params: SamplingParams | None = None,
        *,
        conversation: str = "default",
        boundaries: Sequence[int] = (),
        alternatives: int = 0,
        should_stop: Callable[[], bool] | None = None,
        on_prefill: PrefillProgress | None = None,
    ) -> Iterator[Token]:
        """Continue `ids`, the turn's whole prompt, reusing what the conversation's cache shares with it.

        boundaries: positions in `ids` the conversation may return to. should_stop: asked between chunks and
        tokens. on_prefill: called with (ids fed, ids to feed, ids reused). `last_turn` reports afterwards.

        The arguments are checked at once: SamplingError, EngineError (an id outside the vocabulary, no ids, a
        boundary outside the prompt), ContextOverflowError. Prompt and answer together have at most
        `info.max_context` ids.
        """
        prompt = self._checked(ids)
        params = params or SamplingParams()
        check_params(params)
        room = self.info.max_context - len(prompt)
        request = TurnRequest(
            ids=prompt,
            params=with_seed(params),
            limit=room if params.max_tokens is None else min(room, params.max_tokens),
            stop_ids=self.stop_ids,
            tokenizer=self.tokenizer,
            boundaries=checked_boundaries(boundaries, len(prompt)),
            alternatives=at_least(0, alternatives, "alternatives"),
        )
        return self._turn(conversation, request, should_stop or _never, on_prefill or _ignore)

    def session(self, conversation: str = "default") -> Session:
        """A conversation's session; made if need be, from its saved files if it has some."""
        return self.conversations.session(conversation)

    def reusable(self, ids: Sequence[int] | Tensor, conversation: str = "default") -> int:
        """How many ids of a turn's prompt would not have to be fed. Errors as for `generate`."""
        return self.session(conversation).reusable(self._checked(ids))

    def save(self, conversation: str = "default") -> SaveFigures:
        """Write to the cache folder what is new in a conversation. Raises SavedCacheError."""
        return self.conversations.save(conversation)

    def resume(self, conversation: str = "default") -> Resumed:
        """Bring a conversation from the cache folder to where it was when it was saved, ready to go on.

        `generate` does so by itself; this is for doing it ahead. Never fails: what cannot be read is told.
        """
        return self.conversations.resume(conversation)

    def drop(self, conversation: str) -> None:
        """Forget a conversation's cache, in memory and on disk."""
        self.conversations.drop(conversation)

    def stats(self) -> list[ConversationFigures]:
        """Where the caches of the conversations used so far are, and their bytes; the last used one first."""
        return self.conversations.figures()

    def _turn(
        self,
        conversation: str,
        request: TurnRequest,
        should_stop: Callable[[], bool],
        on_prefill: PrefillProgress,
    ) -> Iterator[Token]:
        report = self.last_turn = TurnReport()
        session = self.session(conversation)
        try:
            yield from run_turn(session, request, report, should_stop, on_prefill)
        finally:
            self.conversations.settle()
            report.room = self.info.max_context - session.position
            report.notices += session.take_notices()

    def _checked(self, ids: Sequence[int] | Tensor) -> list[int]:
        return checked_ids(ids, self.config.vocab_size, self.info.max_context)


def _never() -> bool:
    return False


def _ignore(done: int, total: int, reused: int) -> None:
    pass


def _tokenizer(folder: Path) -> tuple[Tokenizer | None, str]:
    """The folder's tokenizer, or None and the sentence that says why."""
    try:
        return Tokenizer.from_folder(folder), ""
    except EncodingError as error:
        return None, str(error)
