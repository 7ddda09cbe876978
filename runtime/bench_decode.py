"""How fast one decode step is at a model's real sizes, against what its bytes need.

Weights are random, of the checkpoint's shapes and formats; the cache is filled with random rows up to the
context. The step's floor is the bytes it has to read, over the bandwidth measured in the same run. Times are
medians: on CUDA of the graph's replays by the device's clock, elsewhere of the step's calls.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from dsv4chat.runtime.bench_bytes import step_bytes
from dsv4chat.runtime.bench_device import device_name, graph_nodes, read_bandwidth
from dsv4chat.runtime.bench_reference import ReferenceSpeed, reference_speed
from dsv4chat.runtime.cache import KVCache
from dsv4chat.runtime.errors import EngineError
from dsv4chat.runtime.geometries import geometry
from dsv4chat.runtime.gpu.decoding import Decoding, bucket_for
from dsv4chat.runtime.gpu.loading import PackedLoader
from dsv4chat.runtime.gpu.sections import TimedSections
from dsv4chat.runtime.gpu.step import DecodeStep
from dsv4chat.runtime.model import Model
from dsv4chat.runtime.opening import step_operations
from dsv4chat.runtime.placement import choose_device, choose_dtype, choose_kv_dtype
from dsv4chat.runtime.protocol import SamplingParams
from dsv4chat.runtime.random_weights import PREFIX, random_source

WARM_UP = 4
SPARE = 8  # positions for the steps that look into the graph
FILL_ROWS = 1 << 15


@dataclass(frozen=True)
class OperationTime:
    """One kind of operation in one step, all layers together. bytes: what it must read; 0: few."""

    operation: str
    milliseconds: float
    bytes: int


@dataclass(frozen=True)
class StepBenchmark:
    """A benchmark's figures. Times in milliseconds, bytes of one step, bandwidth in bytes a second.

    token: the whole step with the sampler; layer: (token - head) / layers; head: from the last layer's
    streams to the record; bare: a token of which only the id is worked out, by PyTorch's argmax, without |X|,
    log-probability, alternatives and the next step's state. floor: bytes / bandwidth; fraction: floor /
    token. launches: nodes of the graph, 0 without one. operations: with a mark behind each, which costs a
    little time of its own.
    """

    geometry: str
    layers: int
    context: int
    mix: str
    device: str
    kernels: str
    dtype: str
    kv_dtype: str
    bandwidth: float
    bytes: int
    layer_bytes: int
    head_bytes: int
    load_seconds: float
    token: float
    layer: float
    head: float
    bare: float
    floor: float
    layer_floor: float
    fraction: float
    layer_fraction: float
    launches: int
    memory_growth: int
    operations: list[OperationTime]
    against: ReferenceSpeed | None
    ratio: float | None


def bench_decode(
    name: str = "flash",
    *,
    layers: int = 8,
    context: int = 4096,
    mix: str = "nvidia",
    tokens: int = 64,
    kernels: str = "auto",
    device: str = "auto",
    dtype: str = "auto",
    kv_dtype: str = "auto",
    against: bool = False,
    sections: bool = True,
    sampling: SamplingParams | None = None,
    say: Callable[[str], None] | None = None,
) -> StepBenchmark:
    """Time the decode step of `layers` layers of a geometry with `context` tokens in the cache.

    against: also `transformers` in bfloat16, after our weights are freed, with as many layers as fit.
    Raises EngineError for what cannot be measured here.
    """
    say = say or (lambda stage: None)
    place = choose_device(device)
    precision, storage = choose_dtype(dtype, place), choose_kv_dtype(kv_dtype)
    config = geometry(name, layers)
    room = WARM_UP + SPARE + 1
    if tokens < 1 or context < tokens + room:
        raise EngineError(f"The context must hold {room} tokens more than the {tokens} that are timed.")
    if context > config.max_position:
        raise EngineError(
            f"{name} has places for {config.max_position:,} tokens; choose --context up to that."
        )
    operations = step_operations(kernels, place, precision, say)
    bandwidth = read_bandwidth(place)
    say(f"making {layers} layers of {name} ({mix})")
    started = time.perf_counter()
    source = random_source(PREFIX + name, place, layers, mix)
    model = Model.load(source, place, precision, loader=PackedLoader)
    _synchronise(place)
    load_seconds = time.perf_counter() - started
    cache = KVCache(config, storage, context, place)
    decoding = Decoding(DecodeStep(model, operations), cache)
    begin = context - tokens - WARM_UP - SPARE
    _fill(cache, begin, context)
    say(f"timing {tokens} tokens at {context}")
    decoding.begin([0] * (begin + 1), sampling or SamplingParams(temperature=0, seed=0), ())
    times, growth = _step_times(decoding, begin, tokens)
    token = statistics.median(times)
    head = _head_time(decoding, min(tokens, 30))
    bare = _bare_time(decoding, context, min(tokens, 30))
    launches, table = 0, []
    counted = step_bytes(model, cache, context)
    if place.type == "cuda":
        launches = graph_nodes(decoding, bucket_for(context, context))
        if sections:
            table = _operation_times(decoding, context, counted.by_operation)
    layer = (token - head) / layers
    layer_bytes = counted.layers // layers
    result = {
        "geometry": name, "layers": layers, "context": context, "mix": mix,
        "device": device_name(place), "kernels": operations.name,
        "dtype": str(precision).removeprefix("torch."), "kv_dtype": storage,
        "bandwidth": bandwidth, "bytes": counted.total, "layer_bytes": layer_bytes,
        "head_bytes": counted.head, "load_seconds": load_seconds,
        "token": token, "layer": layer, "head": head, "bare": bare,
        "floor": 1000 * counted.total / bandwidth, "layer_floor": 1000 * layer_bytes / bandwidth,
        "fraction": 1000 * counted.total / bandwidth / token,
        "layer_fraction": 1000 * layer_bytes / bandwidth / layer,
        "launches": launches, "memory_growth": growth, "operations": table,
    }  # fmt: skip
    del model, cache, decoding, operations, source
    reference = None
    if against:
        say("timing transformers")
        reference = reference_speed(config, place, context)
    ratio = None if reference is None else reference.layer / layer
    return StepBenchmark(**result, against=reference, ratio=ratio)  # type: ignore[arg-type]


def _fill(cache: KVCache, position: int, capacity: int) -> None:
    """Random rows wherever a context of `position` tokens has some, and room for `capacity`."""
    device = cache.device
    generator = torch.Generator(device).manual_seed(0)

    def rows(count: int, width: int) -> torch.Tensor:
        return torch.randn(count, width, generator=generator, device=device)

    with torch.inference_mode():
        for layer in cache.layers:
            d = layer.values.shape[1]
            stored, values = layer.round(rows(layer.size, d))
            layer.write_window(max(0, position - layer.size), stored, values)
            for held in (layer.blocks, layer.keys):
                if held is None:
                    continue
                held.hold(-(-capacity // layer.ratio))
                width = d if held is layer.blocks else _key_width(layer.open_key)
                for first in range(0, position // layer.ratio, FILL_ROWS):
                    count = min(FILL_ROWS, position // layer.ratio - first)
                    held.stored[first : first + count] = held.format.store(rows(count, width))
    cache.begin(position)
    cache.commit(position)


def _key_width(block: object) -> int:
    previous: torch.Tensor = block.previous  # type: ignore[attr-defined]
    return previous.shape[2]


def _step_times(decoding: Decoding, position: int, tokens: int) -> tuple[list[float], int]:
    """Milliseconds of each step, and the bytes by which the device's memory grew after the first."""
    cuda = decoding.cache.device.type == "cuda"
    times: list[float] = []
    allocated = 0
    marks: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []
    for number in range(WARM_UP + tokens):
        if number == WARM_UP:
            _synchronise(decoding.cache.device)
            allocated = torch.cuda.memory_allocated() if cuda else 0
        started = time.perf_counter()
        if cuda:
            before = _mark()
            decoding.launch(position + number)
            marks.append((before, _mark()))
        else:
            decoding.launch(position + number)
            times.append(1000 * (time.perf_counter() - started))
        if decoding.pending > 1:
            decoding.read()
    decoding.read()
    if cuda:
        times = [_between(*pair) for pair in marks]
    growth = torch.cuda.memory_allocated() - allocated if cuda else 0
    return times[WARM_UP:], growth


def _head_time(decoding: Decoding, repeats: int) -> float:
    """Milliseconds from the last layer's streams to the record."""
    step, state = decoding.step, decoding.state
    model, config = step.model, step.model.config
    device = decoding.cache.device
    streams = torch.randn(1, config.hc_mult, config.hidden_size, device=device).to(model.dtype)
    out = torch.randn(1, config.hidden_size, device=device)
    gates = torch.rand(1, config.hc_mult * (1 + config.hc_mult), device=device)

    def body() -> None:
        step.tail(streams, out, gates, state, decoding.records, decoding.kind, decoding.vocab_limit)

    state.alive.zero_()  # so that the position stays
    milliseconds = median_time(body, device, repeats)
    state.alive.fill_(True)
    return milliseconds


def _bare_time(decoding: Decoding, position: int, repeats: int) -> float:
    state, cache = decoding.state, decoding.cache
    bucket = bucket_for(position, position)
    state.alive.zero_()  # what a step that is not alive writes, the next one writes again
    milliseconds = median_time(lambda: decoding.step.bare(cache, state, bucket), cache.device, repeats)
    state.alive.fill_(True)
    return milliseconds


def _operation_times(decoding: Decoding, position: int, counted: dict[str, int]) -> list[OperationTime]:
    sections = TimedSections()
    graph = decoding.capture(bucket_for(position, position), sections)
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    times = sections.milliseconds()
    return [OperationTime(name, value, counted.get(name, 0)) for name, value in times.items()]


def median_time(body: Callable[[], object], device: torch.device, repeats: int) -> float:
    """Median milliseconds of `body`, as a graph on CUDA."""
    if device.type != "cuda":
        times = []
        for _ in range(repeats):
            started = time.perf_counter()
            body()
            times.append(1000 * (time.perf_counter() - started))
        return statistics.median(times)
    stream: torch.cuda.Stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        body()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        body()
    marks = []
    for _ in range(repeats):
        before = _mark()
        graph.replay()
        marks.append((before, _mark()))
    torch.cuda.synchronize()
    return statistics.median(_between(*pair) for pair in marks)


def _mark() -> torch.cuda.Event:
    """An event on the current stream, now."""
    event: torch.cuda.Event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    event.record()
    return event


def _between(before: torch.cuda.Event, after: torch.cuda.Event) -> float:
    milliseconds: float = before.elapsed_time(after)
    return milliseconds


def _synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
