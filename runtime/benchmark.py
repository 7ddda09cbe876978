"""How fast the runtime decodes on this machine, and how much faster than `transformers` on the same weights.

Both sides continue the same random prompt greedily by their own choice. They take turns in short blocks of
tokens, so that whatever else the machine does meets both alike; medians leave out what it meets seldom.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from dsv4chat.runtime.cache import KVCache
from dsv4chat.runtime.errors import EngineError
from dsv4chat.runtime.gpu.decoding import Decoding
from dsv4chat.runtime.gpu.step import DecodeStep
from dsv4chat.runtime.loading import WeightSource
from dsv4chat.runtime.opening import load_model
from dsv4chat.runtime.placement import choose_device, choose_dtype, choose_kv_dtype
from dsv4chat.runtime.protocol import SamplingParams
from dsv4chat.runtime.reference import Reference

BLOCK = 16  # tokens one side decodes before the other has its turn
WARM_UP = 8


@dataclass(frozen=True)
class Speed:
    """decode_ms: median of one token; decode: the same as tokens a second; prefill: tokens a second."""

    decode_ms: float
    decode: float
    prefill: float


@dataclass(frozen=True)
class DecodeBenchmark:
    """ours: the runtime; against: `transformers`, or None if it was not asked for; ratio: ours / against."""

    tokens: int
    prompt: int
    device: str
    dtype: str
    kv_dtype: str
    threads: int
    ours: Speed
    against: Speed | None
    ratio: float | None


class _Side:
    """One engine that takes its turn. feed: takes ids (n,) after those before, gives the next id (1,)."""

    def __init__(
        self, feed: Callable[[Tensor], Tensor], prompt: Tensor, synchronise: Callable[[], None]
    ) -> None:
        self._feed, self._synchronise = feed, synchronise
        self.times: list[float] = []
        started = time.perf_counter()
        self.next = feed(prompt)
        synchronise()
        self.prefill = prompt.shape[0] / (time.perf_counter() - started)
        for _ in range(WARM_UP):
            self.next = feed(self.next)

    def block(self, tokens: int) -> None:
        """Decode some tokens, each timed."""
        for _ in range(tokens):
            self._synchronise()
            started = time.perf_counter()
            self.next = self._feed(self.next)
            self._synchronise()
            self.times.append(time.perf_counter() - started)

    def speed(self) -> Speed:
        median = statistics.median(self.times)
        return Speed(decode_ms=1000 * median, decode=1 / median, prefill=self.prefill)


def stepping(step: DecodeStep, cache: KVCache) -> Callable[[Tensor], Tensor]:
    """Feeds by the device's own step: a prompt (n,) first, then, one by one, the ids it gave."""
    decoding = Decoding(step, cache)

    def feed(fed: Tensor) -> Tensor:
        if cache.position == 0:
            ids = fed.tolist()
            if len(ids) > 1:
                step.model.forward(fed[:-1], cache)
            decoding.begin(ids, SamplingParams(temperature=0, seed=0), ())
        decoding.launch(cache.begin(1))
        record = decoding.read()
        cache.commit(1)
        return torch.tensor([record.id])

    return feed


def decode_benchmark(
    source: WeightSource,
    *,
    tokens: int = 128,
    prompt: int = 256,
    against: bool = False,
    device: str = "auto",
    dtype: str = "auto",
    kv_dtype: str = "auto",
    progress: Callable[[str], None] | None = None,
) -> DecodeBenchmark:
    """Prefill `prompt` random ids, then time `tokens` greedy steps; with `against`, of `transformers` too
    (CPU).

    device, dtype, kv_dtype: as for `Engine.load`. progress: hears what is being done.
    Raises EngineError for numbers below 1 or values not in those lists.
    """
    if tokens < 1 or prompt < 1:
        raise EngineError("A benchmark needs at least one token to feed and one to decode.")
    say = progress or (lambda stage: None)
    place = choose_device(device)
    precision, storage = choose_dtype(dtype, place), choose_kv_dtype(kv_dtype)
    if against and place.type != "cpu":
        raise EngineError("The comparison with transformers runs on the CPU; choose --device cpu.")
    say("loading the model")
    model = load_model(source, place, precision)
    ids = torch.randint(0, model.config.vocab_size, (prompt,), generator=torch.Generator().manual_seed(0))
    cache = KVCache(model.config, storage, prompt + WARM_UP + tokens, place)

    def forward(fed: Tensor) -> Tensor:
        return model.forward(fed, cache).logits[-1].argmax()[None]

    ours = forward if model.decode_step is None else stepping(model.decode_step, cache)

    def synchronise() -> None:
        if place.type == "cuda":
            torch.cuda.synchronize(place)

    # Whatever is set up on first use is not what is measured.
    model.forward(ids[: min(prompt, 32)], KVCache(model.config, storage, prompt, place))
    sides = [_Side(ours, ids, synchronise)]
    if against:
        say("loading the transformers model")
        reference = Reference(source)
        reference.forward(ids[: min(prompt, 32)])
        reference.clear()
        sides.append(_Side(lambda fed: reference.forward(fed)[-1].argmax()[None], ids, synchronise))
    say(f"decoding {tokens} tokens")
    for start in range(0, tokens, BLOCK):
        for side in sides:
            side.block(min(BLOCK, tokens - start))
    speeds = [side.speed() for side in sides]
    return DecodeBenchmark(
        tokens=tokens,
        prompt=prompt,
        device=str(place),
        dtype=str(precision).removeprefix("torch."),
        kv_dtype=storage,
        threads=torch.get_num_threads(),
        ours=speeds[0],
        against=speeds[1] if against else None,
        ratio=speeds[0].decode / speeds[1].decode if against else None,
    )
