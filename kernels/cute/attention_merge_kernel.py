"""The second launch of one token's attention: the shares of `attention_kernel` put together.

With m the largest of a head's maxima and its sink, share p counts exp2(m_p - m); the sink adds exp2(sink -
m) to the denominator and nothing to the sum. The result is turned back (inverse RoPE) and stored as halves.
"""

from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import arithmetic, ptx
from dsv4chat.kernels.cute.attention_kernel import LOG2_E
from dsv4chat.kernels.cute.attention_staging import PLAIN, D
from dsv4chat.kernels.cute.hosting import host

QUARTERS = 4  # threads for each four channels


@cute.kernel
def _merge_kernel(
    sums: Int64, tops: Int64, sink: Int64, rotation: Int64, out: Int64, heads: Int32, parts: Int32
):
    tid, _, _ = cute.arch.thread_idx()
    head, _, _ = cute.arch.block_idx()
    lane = tid & 31
    shared = cute.arch.get_dyn_smem(Int32, alignment=128).toint()
    cute.arch.griddepcontrol_launch_dependents()
    own = ptx.load_f32(sink + head.to(Int64) * 4) * LOG2_E
    cute.arch.griddepcontrol_wait()
    # Every warp works out the maximum and the denominator by itself, a part a lane.
    top = own
    for part in cutlass.range(lane, parts, 32, unroll=4):
        top = cute.arch.fmax(top, ptx.load_f32(tops + ((part * heads + head) * 2).to(Int64) * 4))
    top = cute.arch.warp_reduction_max(top)
    total = Float32(0.0)
    for part in cutlass.range(lane, parts, 32, unroll=4):
        pair = ptx.load_64(tops + ((part * heads + head) * 2).to(Int64) * 4)
        total = total + arithmetic.exp2(arithmetic.bits_to_f32(pair[0]) - top) * arithmetic.bits_to_f32(
            pair[1]
        )
    total = cute.arch.warp_reduction_sum(total) + arithmetic.exp2(own - top)
    # A quarter of the threads takes every fourth part, four channels a thread.
    quarter = tid >> 7
    channel = (tid & 127) * 4
    values = cute.make_rmem_tensor((4,), Float32)
    values.fill(0.0)
    for part in cutlass.range(quarter, parts, QUARTERS, unroll=4):
        at = part * heads + head
        factor = arithmetic.exp2(ptx.load_f32(tops + (at * 2).to(Int64) * 4) - top)
        four = ptx.load_128(sums + (at.to(Int64) * D + channel.to(Int64)) * 4)
        for i in cutlass.range_constexpr(4):
            values[i] = values[i] + factor * arithmetic.bits_to_f32(four[i])
    if quarter != 0:
        ptx.shared_store_f32x4(shared + tid * 16, [values[i] for i in range(4)])
    cute.arch.sync_threads()
    if quarter == 0:
        for other in cutlass.range_constexpr(1, QUARTERS):
            more = ptx.shared_load_f32x4(shared + (tid + other * 128) * 16)
            for i in cutlass.range_constexpr(4):
                values[i] = values[i] + more[i]
        inverse = 1.0 / total
        result = [values[i] * inverse for i in range(4)]
        pair = cutlass.max(channel - PLAIN, 0) >> 1
        turns = [arithmetic.bits_to_f32(word) for word in ptx.load_128(rotation + pair.to(Int64) * 8)]
        low = arithmetic.rotated(result[0:2], turns[0], 0.0 - turns[1])
        high = arithmetic.rotated(result[2:4], turns[2], 0.0 - turns[3])
        inside = channel >= PLAIN
        result = [arithmetic.pick(inside, new, old) for new, old in zip([*low, *high], result, strict=True)]
        words = [arithmetic.pack_f16(result[0], result[1]), arithmetic.pack_f16(result[2], result[3])]
        ptx.store_64(out + (head * D + channel).to(Int64) * 2, words)


def merge() -> Any:
    """The kernel's host side."""
    return host(_merge_kernel, QUARTERS * D // 4)
