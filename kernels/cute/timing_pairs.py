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
    if rows > 1 and format == "nvfp4":
        return
    x = activations(rows, s.hidden, machine.device)
    first = copies(format, (s.q_lora + s.head_dim, s.hidden), machine.device)
    other = copies("bf16", (4 * s.head_dim + 4 * 128 + 64, s.hidden), machine.device)
    calls = [partial(pairs.Pair(machine, a, b), x) for a, b in zip(first, other, strict=False)]
    yield _timed(s, "wq_a + wkv, compressor", "pair", first[0], other[0], rows, calls)
    router = copies("bf16", (s.experts, s.hidden), machine.device)
    shared = shared_experts(machine, s, format)
    ins = [partial(pairs.RouterAndShared(machine, a, b), x) for a, b in zip(router, shared, strict=False)]
    yield _timed(s, "router, shared w1 + w3", "router", shared[0].gate_up, router[0], rows, ins)
    if rows == 1:
        choice = routing.Router(machine, torch.randn(s.experts, device=machine.device), None, s.picks, 2.5)
        logits = torch.randn(1, s.experts, device=machine.device)
        tokens = torch.zeros(1, dtype=torch.int64, device=machine.device)
        hidden = torch.randn(1, s.inner, device=machine.device).half()
        ends = [
            partial(pairs.ChoiceAndShared(machine, choice, one), logits, tokens, hidden) for one in shared
        ]
        yield _timed(s, "choice, shared w2", "choice", shared[0].down, None, rows, ends)


def shared_experts(machine: Machine, s: Sizes, format: str) -> list[Experts]:
    """Shared experts to go round in."""
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
