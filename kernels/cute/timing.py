"""How fast the kernels read: replays over weights in turn, against the bandwidth measured beside them."""

from collections.abc import Iterator

import torch

from dsv4chat.kernels.cute import arrange, attending, connection, products
from dsv4chat.kernels.cute.experts import Experts
from dsv4chat.kernels.cute.machine import Machine
from dsv4chat.kernels.cute.measuring import Sizes, Timed, activations, copies, random_bytes, replay_seconds
from dsv4chat.kernels.cute.timing_pairs import in_one_launch, shared_experts
from dsv4chat.kernels.kv_rows import Fp8Rows
from dsv4chat.kernels.step_operations import AttentionSizes, ConnectionWeights


def timings(machine: Machine, sizes: Sizes, rows: int = 1) -> Iterator[Timed]:
    """Every product of a layer, and the head, in the formats of NVIDIA's and of the all-NVFP4 mix."""
    s = sizes
    wide = s.heads * s.head_dim
    groups = {
        "wq_a + wkv": (s.q_lora + s.head_dim, s.hidden, ("fp8", "nvfp4")),
        "compressor, indexer": (4 * s.head_dim + 4 * 128 + 64, s.hidden, ("bf16",)),
        "wq_b + indexer": (wide + 64 * 128, s.q_lora, ("fp8", "nvfp4")),
        "wo_b": (s.hidden, s.groups * s.o_lora, ("fp8", "nvfp4")),
        "router": (s.experts, s.hidden, ("bf16",)),
        "lm_head": (s.vocab, s.hidden, ("bf16",)),
    }
    for what, (height, width, formats) in groups.items():
        for format in formats:
            yield _linear(machine, s, what, format, height, width, rows)
    for format in ("fp8", "nvfp4"):
        yield _grouped(machine, s, format, rows)
        yield from _shared(machine, s, format, rows)
    yield from _experts(machine, s, rows)
    for format in ("fp8", "nvfp4"):
        yield from in_one_launch(machine, s, format, rows)
    yield _connection(machine, s, rows)
    for count in (32, 512, 1024, 8192):
        yield _attention(machine, s, count)


def _linear(machine: Machine, s: Sizes, what: str, format: str, height: int, width: int, rows: int) -> Timed:
    matrices = copies(format, (height, width), machine.device)
    calls = [products.Linear(machine, [one]) for one in matrices]
    x = activations(rows, width, machine.device)
    outs = [torch.empty(rows, height, device=machine.device) for _ in calls]
    seconds = replay_seconds(
        lambda: [
            call(x, parts=True) if rows == 1 else call(x, out) for call, out in zip(calls, outs, strict=True)
        ],
        len(calls),
    )
    one = matrices[0]
    return Timed(s.name, f"{what} {height} x {width}", one.kernel("linear"), one.nbytes, seconds, rows)


def _grouped(machine: Machine, s: Sizes, format: str, rows: int) -> Timed:
    width = s.heads // s.groups * s.head_dim
    matrices = copies(format, (s.groups, s.o_lora, width), machine.device)
    calls = [products.Grouped(machine, one) for one in matrices]
    x = activations(rows, s.groups * width, machine.device)
    outs = [torch.empty(rows, s.groups * s.o_lora, device=machine.device) for _ in calls]
    seconds = replay_seconds(
        lambda: [call(x, out) for call, out in zip(calls, outs, strict=True)], len(calls)
    )
    one = matrices[0]
    what = f"wo_a {s.groups} x {s.o_lora} x {width}"
    return Timed(s.name, what, one.kernel("linear"), one.nbytes, seconds, rows)


def _shared(machine: Machine, s: Sizes, format: str, rows: int) -> Iterator[Timed]:
    calls = shared_experts(machine, s, format)
    one, two = calls[0].gate_up, calls[0].down
    x = activations(rows, s.hidden, machine.device)
    hidden = torch.empty(rows, s.inner, dtype=torch.float16, device=machine.device)
    outs = [torch.empty(rows, s.hidden, device=machine.device) for _ in calls]

    def enter_all() -> None:
        for call in calls:
            call.enter(x, hidden, None, None, rows=rows, picks=1)

    seconds = replay_seconds(enter_all, len(calls))
    yield Timed(s.name, "shared expert, w1 + w3", one.kernel("gate_up"), one.nbytes, seconds, rows)
    seconds = replay_seconds(
        lambda: [call(x, out=out) for call, out in zip(calls, outs, strict=True)], len(calls)
    )
    size = one.nbytes + two.nbytes
    yield Timed(s.name, "shared expert, both", two.kernel("linear"), size, seconds, rows)


def _experts(machine: Machine, s: Sizes, rows: int) -> Iterator[Timed]:
    """As many experts as fill the memory to go round in, chosen by numbers on the device: settled, as in a
    step.
    """
    count = 64
    one = arrange.matrix(random_bytes("nvfp4", (count, 2 * s.inner, s.hidden), machine.device))
    two = arrange.matrix(random_bytes("nvfp4", (count, s.hidden, s.inner), machine.device))
    assert one is not None
    assert two is not None
    call = Experts(machine, one, two, 10.0)
    x = activations(rows, s.hidden, machine.device)
    turns = count // s.picks
    order = torch.randperm(count, device=machine.device)[: turns * s.picks].int().view(turns, 1, s.picks)
    ids = [turn.expand(rows, s.picks).contiguous() for turn in order]
    weights = torch.rand(rows, s.picks, device=machine.device)
    add = torch.randn(rows, s.hidden, device=machine.device)
    outs = [torch.empty(rows, s.hidden, device=machine.device) for _ in ids]
    hidden = torch.empty(rows * s.picks, s.inner, dtype=torch.float16, device=machine.device)
    size = (one.nbytes + two.nbytes) // count * s.picks
    both = replay_seconds(
        lambda: [
            call(x, i, weights, add, None if rows == 1 else out, settled=True, parts=True)
            for i, out in zip(ids, outs, strict=True)
        ],
        turns,
    )

    def enter_all() -> None:
        for chosen in ids:
            call.enter(x, hidden, chosen, weights, rows=1, picks=s.picks, settled=True)

    enter = replay_seconds(enter_all, turns)
    yield Timed(
        s.name, "6 experts, w1 + w3", one.kernel("gate_up"), one.nbytes // count * s.picks, enter, rows
    )
    yield Timed(s.name, "6 experts, both", two.kernel("down"), size, both, rows)


def _connection(machine: Machine, s: Sizes, rows: int) -> Timed:
    """What lies between two sublayers: a matter of latency."""
    device, d = machine.device, s.hidden
    calls = []
    for _ in range(100):
        fn, scale, base = (torch.randn(shape, device=device) for shape in ((24, 4 * d), (3,), (24,)))
        weights = ConnectionWeights(fn * d**-0.5, scale, base, torch.ones(d, device=device), 1e-6, 1e-6, 20)
        calls.append(connection.Connection(machine, weights))
    streams = torch.randn(rows, 4, d, device=device).bfloat16()
    output, gates = torch.randn(rows, d, device=device), torch.rand(rows, 20, device=device)
    seconds = replay_seconds(lambda: [call(streams, output, gates) for call in calls], len(calls))
    size = calls[0].fn.nbytes + 2 * streams.nbytes
    return Timed(s.name, "hyper-connection", "connection", size, seconds, rows)


def _attention(machine: Machine, s: Sizes, count: int) -> Timed:
    """The window and `count` compressed rows; bytes are those of the rows."""
    device, rows = machine.device, Fp8Rows(s.head_dim, 64)
    sizes = AttentionSizes(torch.zeros(s.heads, device=device), s.head_dim, 128, 4, 1e-6)
    call = attending.Attention(machine, sizes)
    query = torch.randn(1, s.heads * s.head_dim, device=device)
    table = torch.polar(torch.ones(1, 32, device=device), torch.rand(1, 32, device=device))
    ring = rows.store(torch.randn(128, s.head_dim, device=device))
    caches = [rows.store(torch.randn(count, s.head_dim, device=device)) for _ in range(20)]
    at = torch.tensor([4 * count + 128], device=device)
    seconds = replay_seconds(lambda: [call(query, table, at, ring, one) for one in caches], len(caches))
    return Timed(
        s.name, f"attention, {count} + 128 rows", "attention_partial", (128 + count) * rows.width, seconds, 1
    )
