"""Decoding of one conversation, from the host's side: launch a step, read the record of the one before.

    decoding.begin(ids, params, stops)        # all but the last of `ids` are in the cache
    decoding.launch()                         # feeds the last one, chooses a token
    while ...:
        decoding.launch()                     # feeds the token the host has not seen yet
        record = decoding.read()

On CUDA a step is one graph, captured once for each context bucket and form of the sampler. Graphs hold the
addresses of everything they touch, so the cache's rows are grown between steps only, and a graph whose rows
have moved is captured again.
"""

from collections.abc import Collection, Sequence
from typing import Any, Protocol

import torch

from dsv4chat.runtime.cache import KVCache
from dsv4chat.runtime.errors import EngineError
from dsv4chat.runtime.gpu.record import Record, Records
from dsv4chat.runtime.gpu.sampler import Kind, kind_of
from dsv4chat.runtime.gpu.sections import Sections
from dsv4chat.runtime.gpu.state import StepState
from dsv4chat.runtime.gpu.step import DecodeStep
from dsv4chat.runtime.protocol import SamplingParams

SMALLEST_BUCKET = 4096


def bucket_for(tokens: int, max_context: int) -> int:
    """The bucket of a context of `tokens`: a power of two from SMALLEST_BUCKET on, at most `max_context`."""
    bucket = SMALLEST_BUCKET
    while bucket < tokens:
        bucket *= 2
    return min(bucket, max_context)


class User(Protocol):
    """A turn whose steps these are."""

    def hand_over(self, record: Record) -> None:
        """Another turn begins; this is the record that was not read yet."""


class Decoding:
    """Steps on one cache. user: whose steps they are now."""

    def __init__(self, step: DecodeStep, cache: KVCache) -> None:
        config = step.model.config
        self.step, self.cache = step, cache
        self.user: User | None = None
        self.vocab_limit: int | None = None
        self.state = StepState(config.vocab_size, cache.max_context, cache.device)
        self.records = Records(config.num_layers, cache.device)
        self.kind: Kind = "greedy"
        self._graphs: dict[tuple[int, Kind, int | None], torch.cuda.CUDAGraph] = {}
        self._held = 0  # tokens the cache's rows have room for
        self._places: list[int] = []  # where the graphs expect them
        self._launched = self._read = 0
        self._ended: dict[int, torch.cuda.Event] = {}
        self._pool: Any = None  # memory that all graphs share: only one runs at a time

    def begin(
        self,
        ids: Sequence[int],
        params: SamplingParams,
        stops: Collection[int],
        vocab_limit: int | None = None,
        user: User | None = None,
        number: int = 0,
    ) -> None:
        """A turn begins or goes on.

        ids: all of it so far, all but the last fed. params: checked, with a seed. stops: ids that end the
        turn. vocab_limit: ids from here on are never chosen. number: of its next step.
        """
        if self.cache.position != len(ids) - 1:
            raise EngineError(f"{len(ids) - 1} ids should be in the cache, not {self.cache.position}.")
        if self.user is not None and self.pending:
            self.user.hand_over(self.read())
        with torch.inference_mode():
            self.state.begin(ids, params, stops, number)
        self.kind, self.vocab_limit, self.user = kind_of(params), vocab_limit, user
        self._ended.clear()
        self._launched = self._read = number

    @property
    def pending(self) -> int:
        """Steps launched and not read."""
        return self._launched - self._read

    def launch(self, position: int) -> None:
        """Start the next step, which feeds the token at `position`, without waiting for anything."""
        bucket = bucket_for(position + 1, self.cache.max_context)
        self.hold(bucket)
        with torch.inference_mode():
            self.state.refill(self._launched)
        if self.cache.device.type == "cuda":
            self._graph(bucket).replay()
            event = torch.cuda.current_stream(self.cache.device).record_event()
            self._ended[self._launched] = event
        else:
            self._run(bucket)
        self._launched += 1

    def read(self) -> Record:
        """The record of the oldest step that was not read yet; waits until it has ended."""
        event = self._ended.pop(self._read, None)
        if event is not None:
            event.synchronize()
        record = self.records.read(self._read)
        self._read += 1
        return record

    def capture(
        self, bucket: int, sections: Sections | None = None, keep: bool = False
    ) -> torch.cuda.CUDAGraph:
        """A graph of the step. Running it once before, which capturing needs, leaves everything as it is: a
        step that is not alive writes only what the next one writes again. keep: the graph can be looked into.
        """
        device = self.cache.device
        stream: torch.cuda.Stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        with torch.inference_mode():
            alive = self.state.alive.clone()
            self.state.alive.zero_()
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            self._run(bucket)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph(keep_graph=keep)
        self._pool = self._pool or torch.cuda.graph_pool_handle()
        with torch.cuda.graph(graph, pool=self._pool, stream=stream):
            self._run(bucket, sections)
        with torch.inference_mode():
            self.state.alive.copy_(alive)
        return graph

    def _run(self, bucket: int, sections: Sections | None = None) -> None:
        self.step.run(self.cache, self.state, self.records, bucket, self.kind, self.vocab_limit, sections)

    def _graph(self, bucket: int) -> torch.cuda.CUDAGraph:
        key = (bucket, self.kind, self.vocab_limit)
        if key not in self._graphs:
            self._graphs[key] = self.capture(bucket)
        return self._graphs[key]

    def hold(self, tokens: int) -> None:
        """Make room for a context of `tokens`, and forget graphs whose rows are elsewhere now."""
        every = [
            (rows, layer.ratio)
            for layer in self.cache.layers
            for rows in (layer.blocks, layer.keys)
            if rows is not None
        ]
        if tokens > self._held:
            for rows, ratio in every:
                rows.hold(-(-tokens // ratio))
            self._held = tokens
        # A long prompt, or another conversation's rows, may have moved them as well.
        places = [rows.stored.data_ptr() for rows, _ in every]
        if places != self._places:
            self._graphs.clear()
            self._places = places
