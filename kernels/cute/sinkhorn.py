"""The gates of a hyper-connection: comb becomes doubly stochastic by Sinkhorn's rounds, by one warp.

What a passage leaves for the next is post and the logits of comb; the rounds are the next one's, which has
time for them while it waits. They are a chain of a hundred steps: a lane has a row, whose sum needs nobody
else.
"""

from collections.abc import Sequence
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import arithmetic, ptx

STREAMS = 4
NEAR = 1 / 64  # to the fourth it is nothing to a float32


def largest_of(values: Sequence[Any]) -> Any:
    """The largest of some Float32."""
    largest = values[0]
    for value in values[1:]:
        largest = cute.arch.fmax(largest, value)
    return largest


@cute.jit
def sinkhorn(gates: Int64, to: Int32, eps: Float32, rounds: Int32, lane: Int32):
    """By one warp: post and comb from `gates`, to shared memory; lane i has row i % 4 of comb.

    Far from 1, lines are divided by their sums; once these are near they stay so (a line's sum moves no
    farther than the widest of the lines across), and one step of Newton's from 2 - sum is exact and the
    quicker.
    """
    post = arithmetic.bits_to_f32(ptx.load_shared_by_all(gates + (lane & 3).to(Int64) * 4))
    words = ptx.load_128_past_l1(gates + ((1 + (lane & 3)) * 16).to(Int64))
    row = cute.make_rmem_tensor((STREAMS,), Float32)
    logits = [arithmetic.bits_to_f32(word) for word in words]
    top = largest_of(logits)
    exponentials = [arithmetic.exponential(value - top) for value in logits]
    inverse = arithmetic.reciprocal(_sum(exponentials))
    for j in cutlass.range_constexpr(STREAMS):
        row[j] = exponentials[j] * inverse + eps
    far = _divide(row, _over_rows(row), eps, False)
    for _ in cutlass.range(rounds - 1, unroll=1):
        if far > NEAR:
            _divide(row, [_sum(row[j] for j in range(STREAMS))], eps, False)
            far = _divide(row, _over_rows(row), eps, False)
        else:
            _divide(row, [_sum(row[j] for j in range(STREAMS))], eps, True)
            _divide(row, _over_rows(row), eps, True)
    if lane < STREAMS:
        ptx.shared_store_f32(to + lane * 4, post)
        ptx.shared_store_f32x4(to + (1 + lane) * 16, [row[j] for j in range(STREAMS)])


def _sum(four: Any) -> Any:
    a, b, c, d = four
    return (a + b) + (c + d)


def _over_rows(row: Any) -> list[Any]:
    """The sums of the columns, whose rows four lanes have."""
    sums = [row[j] for j in range(STREAMS)]
    for step in (1, 2):
        sums = [value + cute.arch.shuffle_sync_bfly(value, step) for value in sums]
    return sums


def _divide(row: Any, sums: Sequence[Any], eps: Any, near: bool) -> Any:
    """A row's entries by their own or by one sum, + eps. Returns how far from 1 these are."""
    totals = [total + eps for total in sums]
    if near:
        inverses = [(2.0 - total) * (2.0 - total * (2.0 - total)) for total in totals]
    else:
        inverses = [arithmetic.reciprocal(total) for total in totals]
    for j in range(STREAMS):
        row[j] = row[j] * inverses[j % len(inverses)]
    return largest_of([arithmetic.magnitude(total - 1.0) for total in totals])
