"""How much the indexer makes of each block, the first of two launches: `step_index`.

    scores   the 64 queries turned, rotated and rounded to 4 bits, in every block anew; then, 8 keys a warp,
             sum_h w_h relu(q_h . k) on the tensor cores
    choose   the highest of them: `index_choose_kernel`

Queries and keys are 4-bit codes times powers of two: exact as bfloat16, their products exact in float32.
Blocks that are not visible are neither read nor scored. In shared memory the channels of a head lie as the
products take them: of two steps the 16 bytes of each lane of a quad, side by side.
"""

from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import arithmetic, encode, ptx
from dsv4chat.kernels.cute.hosting import host

HEADS = 64
D = 128
ROPE = 64
KEY_BYTES = 68
THREADS = 256
WARPS = THREADS // 32
PITCH = 2 * D + 64  # bytes from a head to the next in shared memory: two heads by eight lanes meet all banks
SHARED_BYTES = HEADS * PITCH + HEADS * 4


@cute.jit
def _stage_query(query: Int64, rotation: Int64, to: Int32, warp: Int32, lane: Int32):
    """Eight heads a warp, four channels a lane: channels 4 lane .. 4 lane + 3."""
    # RoPE on channels 64..127: lanes 16..31, pairs 2 (lane - 16) and the next.
    pair = cutlass.max(lane - 16, 0) * 2
    turns = [arithmetic.bits_to_f32(word) for word in ptx.load_128(rotation + pair.to(Int64) * 8)]
    first = warp * (HEADS // WARPS)
    # All of them are asked for before the first is used.
    every = [
        ptx.load_128(query + ((first + number) * D + lane * 4).to(Int64) * 4)
        for number in range(HEADS // WARPS)
    ]
    # Channels 4 lane and on are of step lane % 8 of those that quad lane lane / 8 multiplies.
    own = (lane & 6) * 32 + (lane >> 3) * 16 + (lane & 1) * 8
    for number in cutlass.range_constexpr(HEADS // WARPS):
        head = first + number
        x = [arithmetic.bits_to_f32(word) for word in every[number]]
        turned = [
            *arithmetic.rotated(x[0:2], turns[0], turns[1]),
            *arithmetic.rotated(x[2:4], turns[2], turns[3]),
        ]
        inside = lane >= 16
        x = [arithmetic.pick(inside, new, old) for new, old in zip(turned, x, strict=True)]
        # Hadamard: two steps inside the lane, five between lanes.
        x = [x[0] + x[1], x[0] - x[1], x[2] + x[3], x[2] - x[3]]
        x = [x[0] + x[2], x[1] + x[3], x[0] - x[2], x[1] - x[3]]
        for step in cutlass.range_constexpr(5):
            low = (lane & (1 << step)) == 0
            others = [cute.arch.shuffle_sync_bfly(value, 1 << step) for value in x]
            x = [
                arithmetic.pick(low, value + other, other - value)
                for value, other in zip(x, others, strict=True)
            ]
        x = [value * D**-0.5 for value in x]
        largest = cute.arch.fmax(
            cute.arch.fmax(arithmetic.magnitude(x[0]), arithmetic.magnitude(x[1])),
            cute.arch.fmax(arithmetic.magnitude(x[2]), arithmetic.magnitude(x[3])),
        )
        for step in cutlass.range_constexpr(3):  # a group of 32 channels: 8 lanes
            largest = cute.arch.fmax(largest, cute.arch.shuffle_sync_bfly(largest, 1 << step))
        byte = encode.scale_byte(largest, encode.E2M1_LARGEST)
        inverse, power = arithmetic.bits_to_f32((254 - byte) << 23), arithmetic.bits_to_f32(byte << 23)
        x = [encode.e2m1_value(value * inverse) * power for value in x]
        words = [arithmetic.pack_bf16(x[0], x[1]), arithmetic.pack_bf16(x[2], x[3])]
        ptx.shared_store_64(to + head * PITCH + own, words)


def _decoded(word: Any, power: Any) -> Any:
    """Eight codes of a word as four pairs of bfloat16, times `power` (which makes up for 2^-14)."""
    pairs = []
    for j in range(4):
        byte = (word >> (8 * j)) & 255
        bits = ((byte & 0x7) << 9) | ((byte & 0x8) << 12) | ((byte & 0x70) << 21) | ((byte & 0x80) << 24)
        low, high = arithmetic.unpack_f16(bits)
        pairs.append(arithmetic.pack_bf16(low * power, high * power))
    return pairs


@cute.jit
def _ask_key(words: cute.Tensor, keys: Int64, number: Int32, visible: Int32, t: Int32):
    """Ask for a key's 32 channels of group t, and their power of two; beyond the last visible key for the
    last, and where none is visible for the first, which is there all the same.
    """
    key = keys + cutlass.max(cutlass.min(number, visible - 1), 0).to(Int64) * KEY_BYTES
    for i in cutlass.range_constexpr(4):
        words[i] = ptx.load_32(key + (t * 16 + 4 * i).to(Int64))
    words[4] = ptx.load_u8(key + (D // 2 + t).to(Int64))


@cute.kernel
def _scores_kernel(
    query: Int64,
    weights: Int64,
    rotation: Int64,
    position: Int64,
    keys: Int64,
    scores: Int64,
    ratio: Int32,
    scale: Float32,
):
    tid, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    blocks, _, _ = cute.arch.grid_dim()
    lane = tid & 31
    g = lane >> 2
    t = lane & 3
    warp = cute.arch.make_warp_uniform(tid // 32)
    shared = cute.arch.get_dyn_smem(Int32, alignment=128).toint()
    weights_at = shared + HEADS * PITCH
    cute.arch.griddepcontrol_wait()
    # The next kernels have little to read.
    cute.arch.griddepcontrol_launch_dependents()
    visible = (ptx.load_64(position)[0] + 1) // ratio
    own = cute.make_rmem_tensor((5,), Int32)
    _ask_key(own, keys, (block * WARPS + warp) * 8 + g, visible, t)
    _stage_query(query, rotation, shared, warp, lane)
    if tid < HEADS:
        ptx.shared_store_f32(weights_at + tid * 4, ptx.load_f32(weights + tid.to(Int64) * 4) * scale)
    cute.arch.sync_threads()
    mine = [ptx.shared_load_f32(weights_at + (g + 8 * i) * 4) for i in range(8)]
    tiles = (visible + 7) // 8
    for tile in cutlass.range(block * WARPS + warp, tiles, blocks * WARPS, unroll=1):
        power = arithmetic.bits_to_f32((own[4] + 14) << 23)
        b = []
        for i in cutlass.range_constexpr(4):
            b += _decoded(own[i], power)
        # The next one is on its way while this one is multiplied.
        _ask_key(own, keys, (tile + blocks * WARPS) * 8 + g, visible, t)
        totals = [Float32(0.0), Float32(0.0)]
        for m in cutlass.range_constexpr(HEADS // 16):
            c = [Float32(0.0)] * 4
            for two in cutlass.range_constexpr(D // 32):
                at = shared + (m * 16 + g) * PITCH + two * 64 + t * 16
                low = ptx.shared_load_128(at)
                high = ptx.shared_load_128(at + 8 * PITCH)
                for half in cutlass.range_constexpr(2):
                    a = [low[2 * half], high[2 * half], low[2 * half + 1], high[2 * half + 1]]
                    c = arithmetic.mma_bf16(c, a, b[4 * two + 2 * half : 4 * two + 2 * half + 2])
            for column in cutlass.range_constexpr(2):
                first = cute.arch.fmax(c[column], Float32(0.0)) * mine[2 * m]
                second = cute.arch.fmax(c[2 + column], Float32(0.0)) * mine[2 * m + 1]
                totals[column] = totals[column] + (first + second)
        for step in cutlass.range_constexpr(3):
            totals = [value + cute.arch.shuffle_sync_bfly(value, 4 << step) for value in totals]
        if g == 0:
            for column in cutlass.range_constexpr(2):
                number = tile * 8 + t * 2 + column
                if number < visible:
                    ptx.store_f32(scores + number.to(Int64) * 4, totals[column])


def scores() -> Any:
    """The kernel's host side."""
    return host(_scores_kernel, THREADS)
