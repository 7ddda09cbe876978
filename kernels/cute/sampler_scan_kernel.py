"""The end of a step, the first of two launches: what each stretch of the logits has to say about the token.

    scan   each block a stretch of the logits: its maximum, its sum of exponentials, its eight highest, and
           the highest after the repetition penalty
    end    all of that put together: `sampler_end_kernel`

Of equals the lowest id comes first. Penalised logits are compared in float64, as the host's sampler does it.
A NaN makes the maximum NaN and is nobody's highest.
"""

from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import arithmetic, ptx, reductions
from dsv4chat.kernels.cute.hosting import host
from dsv4chat.kernels.cute.reductions import LOWEST, NOBODY

THREADS = 256
WARPS = THREADS // 32
A_THREAD = 8  # logits, or candidates, of a thread
TOP = 8
SHARED_BYTES = 4 * (4 * WARPS + 2 * TOP)


def _penalised(value: Any, count: Any, penalty: Any) -> Any:
    """A logit divided, or if negative multiplied, by the float64 at `penalty` where `count` is not 0.

    As the bits of a float64, in the order of numbers with sign.
    """
    return ptx.asm(
        "{ .reg .f64 d, e, f, g; .reg .b64 b, s; .reg .pred p, q;\n"
        "cvt.f64.f32 d, $1; ld.global.f64 g, [$3]; div.rn.f64 e, d, g; mul.rn.f64 f, d, g;\n"
        "setp.ne.s32 p, $2, 0; setp.gt.f64 q, d, 0d0000000000000000; selp.f64 e, e, f, q;\n"
        "selp.f64 d, e, d, p; add.f64 d, d, 0d0000000000000000; mov.b64 b, d; shr.s64 s, b, 63;\n"
        "and.b64 s, s, 0x7FFFFFFFFFFFFFFF; xor.b64 $0, b, s; }",
        [Int64],
        [value, count, penalty],
        volatile=True,
    )


@cute.kernel
def _scan_kernel(
    logits: Int64,
    counts: Int64,
    penalty: Int64,
    maxima: Int64,
    sums: Int64,
    tops: Int64,
    keys: Int64,
    vocab: Int32,
    stretch: Int32,
):
    tid, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    shared = cute.arch.get_dyn_smem(Int32, alignment=128).toint()
    best_at = shared + 4 * WARPS * 4
    cute.arch.griddepcontrol_launch_dependents()
    cute.arch.griddepcontrol_wait()
    first = block * stretch
    last = cutlass.min(first + stretch, vocab)
    values = cute.make_rmem_tensor((A_THREAD,), Float32)
    numbers = cute.make_rmem_tensor((A_THREAD,), Int32)
    largest = Float32(-cutlass.Float32.inf)
    key = Int64(-(1 << 63))
    number = Int32(NOBODY)
    for i in cutlass.range_constexpr(A_THREAD):
        at = first + i * THREADS + tid
        values[i] = Float32(LOWEST)
        numbers[i] = Int32(NOBODY)
        if at < last:
            value = ptx.load_f32(logits + at.to(Int64) * 4)
            largest = arithmetic.max_nan(largest, value)
            own = _penalised(value, ptx.load_32(counts + at.to(Int64) * 4), penalty)
            wins = own > key
            key, number = arithmetic.pick(wins, own, key), arithmetic.pick(wins, at, number)
            # fmax takes the number where the other is NaN.
            values[i] = cute.arch.fmax(value, Float32(LOWEST))
            numbers[i] = at
    largest = reductions.block_max(largest, shared, tid, WARPS)
    base = cute.arch.fmax(largest, Float32(LOWEST))
    total = Float32(0.0)
    for i in cutlass.range_constexpr(A_THREAD):
        weight = arithmetic.exponential(values[i] - base)
        total = total + arithmetic.pick(numbers[i] < NOBODY, weight, Float32(0.0))
    total = reductions.block_sum(total, shared, tid, WARPS)
    cute.arch.sync_threads()
    key, number = reductions.best_key(key, number, shared, tid, WARPS)
    reductions.highest(values, numbers, A_THREAD, TOP, shared, best_at, tid, WARPS)
    if tid == 0:
        ptx.store_f32(maxima + block.to(Int64) * 4, largest)
        ptx.store_f32(sums + block.to(Int64) * 4, total)
        low, high = arithmetic.words_of(key)
        ptx.store_128(keys + block.to(Int64) * 16, [low, high, number, Int32(0)])
    if tid < 2 * TOP:
        word = ptx.shared_load_32(best_at + tid * 4)
        ptx.store_32(tops + (block * 2 * TOP + tid).to(Int64) * 4, word)


def scan() -> Any:
    """The kernel's host side."""
    return host(_scan_kernel, THREADS)
