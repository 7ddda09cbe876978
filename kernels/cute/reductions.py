"""What the threads of a block find out together: a sum, a maximum, the highest of all and the highest few.

Every thread of the block takes part, and gets what is returned. shared: where the warps leave theirs. It may
be used again after the next barrier of the block; all but `block_sum` end with one.
"""

from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import arithmetic, ptx

LOWEST = -3.4e38
NOBODY = 1 << 30  # a number larger than those of values that are there


def block_sum(value: Any, shared: Any, tid: Any, warps: int) -> Any:
    """The sum over the first `warps` warps."""
    part = cute.arch.warp_reduction_sum(value)
    ptx.shared_store_f32(shared + (tid // 32) * 4, part)
    cute.arch.sync_threads()
    total = Float32(0.0)
    for warp in range(warps):
        total = total + ptx.shared_load_f32(shared + warp * 4)
    return total


def block_max(value: Any, shared: Any, tid: Any, warps: int) -> Any:
    """The largest; NaN if one is."""
    for step in range(5):
        value = arithmetic.max_nan(value, cute.arch.shuffle_sync_bfly(value, 1 << step))
    ptx.shared_store_f32(shared + (tid // 32) * 4, value)
    cute.arch.sync_threads()
    for warp in range(warps):
        value = arithmetic.max_nan(value, ptx.shared_load_f32(shared + warp * 4))
    cute.arch.sync_threads()
    return value


def _shared_key(address: Any) -> Any:
    return ptx.asm("ld.shared.b64 $0, [$1];", [Int64], [address], volatile=True)


def best_key(key: Any, number: Any, shared: Any, tid: Any, warps: int) -> Any:
    """The highest Int64 key and the lowest number that has it."""
    for step in range(5):
        low, high = arithmetic.words_of(key)
        other = arithmetic.whole(
            cute.arch.shuffle_sync_bfly(low, 1 << step), cute.arch.shuffle_sync_bfly(high, 1 << step)
        )
        other_number = cute.arch.shuffle_sync_bfly(number, 1 << step)
        wins = (other > key) | ((other == key) & (other_number < number))
        key, number = arithmetic.pick(wins, other, key), arithmetic.pick(wins, other_number, number)
    ptx.shared_store_64(shared + (tid // 32) * 8, arithmetic.words_of(key))
    ptx.shared_store_32(shared + warps * 8 + (tid // 32) * 4, number)
    cute.arch.sync_threads()
    for warp in range(warps):
        other = _shared_key(shared + warp * 8)
        other_number = ptx.shared_load_32(shared + warps * 8 + warp * 4)
        wins = (other > key) | ((other == key) & (other_number < number))
        key, number = arithmetic.pick(wins, other, key), arithmetic.pick(wins, other_number, number)
    cute.arch.sync_threads()
    return key, number


@cute.jit
def highest(
    values: cute.Tensor,
    numbers: cute.Tensor,
    own: cutlass.Constexpr,
    top: cutlass.Constexpr,
    shared: Int32,
    to: Int32,
    tid: Int32,
    warps: cutlass.Constexpr,
):
    """The `top` highest of every thread's `own` values into shared memory at `to`, then their numbers.

    Of equals the lowest number comes first. A value that was found is LOWEST then, its number NOBODY.
    """
    for turn in cutlass.range(top, unroll=1):
        best = Float32(LOWEST)
        best_number = Int32(NOBODY)
        for i in cutlass.range_constexpr(own):
            wins = (values[i] > best) | ((values[i] == best) & (numbers[i] < best_number))
            best = arithmetic.pick(wins, values[i], best)
            best_number = arithmetic.pick(wins, numbers[i], best_number)
        for step in cutlass.range_constexpr(5):
            other = cute.arch.shuffle_sync_bfly(best, 1 << step)
            other_number = cute.arch.shuffle_sync_bfly(best_number, 1 << step)
            wins = (other > best) | ((other == best) & (other_number < best_number))
            best = arithmetic.pick(wins, other, best)
            best_number = arithmetic.pick(wins, other_number, best_number)
        ptx.shared_store_f32(shared + (tid // 32) * 4, best)
        ptx.shared_store_32(shared + (warps + tid // 32) * 4, best_number)
        cute.arch.sync_threads()
        for warp in cutlass.range_constexpr(warps):
            other = ptx.shared_load_f32(shared + warp * 4)
            other_number = ptx.shared_load_32(shared + (warps + warp) * 4)
            wins = (other > best) | ((other == best) & (other_number < best_number))
            best = arithmetic.pick(wins, other, best)
            best_number = arithmetic.pick(wins, other_number, best_number)
        if tid == 0:
            ptx.shared_store_f32(to + turn * 4, best)
            ptx.shared_store_32(to + (top + turn) * 4, best_number)
        for i in cutlass.range_constexpr(own):
            mine = numbers[i] == best_number
            values[i] = arithmetic.pick(mine, Float32(LOWEST), values[i])
            numbers[i] = arithmetic.pick(mine, Int32(NOBODY), numbers[i])
        cute.arch.sync_threads()
