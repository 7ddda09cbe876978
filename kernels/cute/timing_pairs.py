"""How fast the launches read that a step makes of two operations, as `timing` has them of one."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch

from dsv4chat.kernels.cute import pairs, routing
from dsv4chat.kernels.cute.arrange import Matrix
from dsv4chat.kernels.cute.experts import Experts
from dsv4chat.kernels.cute.machine import Machine
from dsv4chat.kernels.cute.measuring import Sizes, Timed, activations, copies, replay_seconds


def in_one_launch(machine: Machine, s: Sizes, format: str, rows: int) -> Iterator[Timed]:
    """First projections with compressor and indexer; router with the shared expert's way in; the choice with
    its way out: where there is a kernel for that many rows.
    """
    x = activations(rows, s.hidden, machine.device)
    few = rows == 1 or format == "fp8"
    first = copies(format, (s.q_lora + s.head_dim, s.hidden), machine.device)
    other = copies("bf16", (4 * s.head_dim + 4 * 128 + 64, s.hidden), machine.device)
    if few:
        calls = [pairs.Pair(machine, one, two) for one, two in zip(first, other, strict=False)]
        yield _timed(
            s,
            "wq_a + wkv, compressor",
            "pair",
            first[0],
            other[0],
            rows,
            [partial(call, x) for call in calls],
        )
    router = copies("bf16", (s.experts, s.hidden), machine.device)
    shared = _shared_experts(machine, s, format)
    if few:
        ins = [pairs.RouterAndShared(machine, one, two) for one, two in zip(router, shared, strict=False)]
        what = "router, shared w1 + w3"
        yield _timed(
            s, what, "router", shared[0].gate_up, router[0], rows, [partial(call, x) for call in ins]
        )
    if rows == 1:
        choice = routing.Router(machine, torch.randn(s.experts, device=machine.device), None, s.picks, 2.5)
        logits = torch.randn(1, s.experts, device=machine.device)
        tokens = torch.zeros(1, dtype=torch.int64, device=machine.device)
        hidden = torch.randn(1, s.inner, device=machine.device).half()
        ends = [pairs.ChoiceAndShared(machine, choice, one) for one in shared]
        bodies = [partial(call, logits, tokens, hidden) for call in ends]
        yield _timed(s, "choice, shared w2", "choice", shared[0].down, None, rows, bodies)


def _shared_experts(machine: Machine, s: Sizes, format: str) -> list[Experts]:
    one = copies(format, (2 * s.inner, s.hidden), machine.device)
    two = copies(format, (s.hidden, s.inner), machine.device)
    return [Experts(machine, a, b, 10.0) for a, b in zip(one, two, strict=False)]


def _timed(
    s: Sizes,
    what: str,
    kernel: str,
    matrix: Matrix,
    other: Matrix | None,
    rows: int,
    calls: Sequence[Callable[[], object]],
) -> Timed:
    seconds = replay_seconds(lambda: [call() for call in calls], len(calls))
    size = matrix.nbytes + (0 if other is None else other.nbytes)
    return Timed(s.name, what, f"{kernel}_{matrix.format}", size, seconds, rows)
