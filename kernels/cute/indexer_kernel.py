"""Which blocks a token attends to, two launches: `step_index`.

    scores   the 64 queries turned, rotated and rounded to 4 bits, in every block anew; then, 8 keys a warp,
             sum_h w_h relu(q_h . k) on the tensor cores
    choose   the highest scores by radix selection over their bits, 8 at a time; of equals the lowest numbers

Queries and keys are 4-bit codes times powers of two: exact as bfloat16, their products exact in float32.
Blocks that are not visible are neither read nor scored.
"""

from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import arithmetic, encode, ptx, together
from dsv4chat.kernels.cute.hosting import host

HEADS = 64
D = 128
ROPE = 64
KEY_BYTES = 68
THREADS = 256
WARPS = THREADS // 32
PITCH = 2 * D + 16  # bytes from a head to the next in shared memory
SCORES_SHARED = HEADS * PITCH + HEADS * 4
CHOOSE_THREADS = 1024
BINS = 256
CHUNK = 4  # scores a thread reads at once
PART = CHUNK * CHOOSE_THREADS
CHOOSE_SHARED = 4 * (BINS + 64)


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
    for number in cutlass.range_constexpr(HEADS // WARPS):
        head = first + number
        x = [arithmetic.bits_to_f32(word) for word in every[number]]
        turned = [
            x[0] * turns[0] - x[1] * turns[1],
            x[0] * turns[1] + x[1] * turns[0],
            x[2] * turns[2] - x[3] * turns[3],
            x[2] * turns[3] + x[3] * turns[2],
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
        ptx.shared_store_64(to + head * PITCH + lane * 8, words)


def _decoded(word: Any, power: Any) -> Any:
    """Eight codes of a word as four pairs of bfloat16, times `power` (which makes up for 2^-14)."""
    pairs = []
    for j in range(4):
        byte = (word >> (8 * j)) & 255
        bits = ((byte & 0x7) << 9) | ((byte & 0x8) << 12) | ((byte & 0x70) << 21) | ((byte & 0x80) << 24)
        low, high = arithmetic.unpack_f16(bits)
        pairs.append(arithmetic.pack_bf16(low * power, high * power))
    return pairs


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
    visible = (ptx.load_64(position)[0] + 1) // ratio
    _stage_query(query, rotation, shared, warp, lane)
    # Only now may the next kernels ask for their weights: these few loads would queue behind them.
    cute.arch.griddepcontrol_launch_dependents()
    if tid < HEADS:
        ptx.shared_store_f32(weights_at + tid * 4, ptx.load_f32(weights + tid.to(Int64) * 4) * scale)
    cute.arch.sync_threads()
    mine = [ptx.shared_load_f32(weights_at + (g + 8 * i) * 4) for i in range(8)]
    tiles = (visible + 7) // 8
    for tile in cutlass.range(block * WARPS + warp, tiles, blocks * WARPS, unroll=1):
        # Key g of the tile, and of it the 32 channels of group t, four of them in each step.
        key = keys + cutlass.min(tile * 8 + g, visible - 1).to(Int64) * KEY_BYTES
        words = [ptx.load_32(key + (t * 16 + 4 * i).to(Int64)) for i in range(4)]
        power = arithmetic.bits_to_f32((ptx.load_u8(key + (D // 2 + t).to(Int64)) + 14) << 23)
        b = []
        for word in words:
            b += _decoded(word, power)
        totals = [Float32(0.0), Float32(0.0)]
        for m in cutlass.range_constexpr(HEADS // 16):
            c = [Float32(0.0)] * 4
            for step in cutlass.range_constexpr(D // 16):
                at = shared + (m * 16 + g) * PITCH + t * 64 + step * 8
                low = ptx.shared_load_64(at)
                high = ptx.shared_load_64(at + 8 * PITCH)
                c = arithmetic.mma_bf16(c, [low[0], high[0], low[1], high[1]], [b[2 * step], b[2 * step + 1]])
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


def _ordered(bits: Any) -> Any:
    """A score's bits, larger without sign for larger scores; -0 is 0, NaN the lowest."""
    return ptx.asm(
        "{ .reg .f32 x; .reg .b32 b, m; .reg .pred p; mov.b32 x, $1; add.f32 x, x, 0f00000000;\n"
        "setp.nan.f32 p, x, x; mov.b32 b, x; shr.s32 m, b, 31; or.b32 m, m, 0x80000000; xor.b32 $0, b, m;\n"
        "@p mov.b32 $0, 0; }",
        [Int32],
        [bits],
    )


def _any(value: Any) -> Any:
    """1 if `value` is not 0 in a thread of the block, which all wait for each other."""
    return ptx.asm(
        "{ .reg .pred p, q; setp.ne.s32 p, $1, 0; barrier.cta.red.or.pred.aligned q, 0, p; "
        "selp.b32 $0, 1, 0, q; }",
        [Int32],
        [value],
        volatile=True,
    )


def _add(address: Any, value: Any) -> Any:
    """Adds to a word of shared memory; what it was before."""
    return ptx.asm("atom.shared.add.u32 $0, [$1], $2;", [Int32], [address, value], volatile=True)


def _above(a: Any, b: Any) -> Any:
    """1 where a > b as numbers without sign."""
    return ptx.asm("{ .reg .pred p; setp.gt.u32 p, $1, $2; selp.b32 $0, 1, 0, p; }", [Int32], [a, b])


@cute.jit
def _find_bin(hist: Int32, found: Int32, wanted: Int32, lane: Int32):
    """One warp: the bin in which the `wanted`-th from the top lies, and how many lie above it."""
    own = [ptx.shared_load_32(hist + (lane * 8 + i) * 4) for i in range(8)]
    total = Int32(0)
    for value in own:
        total = total + value
    above = total  # of this lane and the higher ones
    for step in cutlass.range_constexpr(5):
        other = cute.arch.shuffle_sync_down(above, 1 << step)
        above = above + arithmetic.pick(lane + (1 << step) < 32, other, Int32(0))
    running = above - total
    for i in cutlass.range_constexpr(8):
        count = own[7 - i]
        if (running < wanted) & (running + count >= wanted):
            ptx.shared_store_32(found, lane * 8 + 7 - i)
            ptx.shared_store_32(found + 4, running)
        running = running + count


def _read(scores: Any, start: Any, visible: Any, tid: Any) -> list[Any]:
    """The thread's CHUNK scores of those from `start` on; where there is none, of others."""
    at = cutlass.min(start + tid * CHUNK, (visible - 1) & ~(CHUNK - 1))
    return list(ptx.load_128(scores + at.to(Int64) * 4))


@cute.jit
def _count(
    scores: Int64,
    hist: Int32,
    visible: Int32,
    tid: Int32,
    prefix: Int32,
    shift: Int32,
    first: cutlass.Constexpr,
):
    """Into the bins: the scores that share the prefix (all of them, at first), by their next eight bits."""
    lane = tid & 31
    words = cute.make_rmem_tensor((CHUNK,), Int32)
    for i, word in enumerate(_read(scores, Int32(0), visible, tid)):
        words[i] = word
    for start in cutlass.range(0, visible, PART, unroll=1):
        own = [_ordered(words[i]) for i in range(CHUNK)]
        # The next ones are on their way while these are counted.
        for i, word in enumerate(_read(scores, start + PART, visible, tid)):
            words[i] = word
        for i in cutlass.range_constexpr(CHUNK):
            bin = arithmetic.shifted(own[i], shift) & 255
            counts = start + tid * CHUNK + i < visible
            if cutlass.const_expr(first):
                # Scores are close to each other: one addition for all lanes with the same bin.
                same = together.lanes_like_this(arithmetic.pick(counts, bin, Int32(BINS)))
                if counts & ((same & ((Int32(1) << lane) - 1)) == 0):
                    _add(hist + bin * 4, arithmetic.count_bits(same))
            elif counts & (arithmetic.shifted(own[i], shift + 8) == prefix):
                _add(hist + bin * 4, Int32(1))


@cute.jit
def _place(
    scores: Int64,
    chosen: Int64,
    places: Int32,
    sums: Int32,
    visible: Int32,
    tid: Int32,
    prefix: Int32,
    wanted: Int32,
    picks: Int32,
):
    """Everything above the threshold is taken, and of what equals it the first `wanted`."""
    lane = tid & 31
    warp = tid // 32
    words = cute.make_rmem_tensor((CHUNK,), Int32)
    for i, word in enumerate(_read(scores, Int32(0), visible, tid)):
        words[i] = word
    for start in cutlass.range(0, visible, PART, unroll=1):
        own = [_ordered(words[i]) for i in range(CHUNK)]
        for i, word in enumerate(_read(scores, start + PART, visible, tid)):
            words[i] = word
        first = start + tid * CHUNK
        mine = []
        equal = Int32(0)
        for i in cutlass.range_constexpr(CHUNK):
            inside = (first + i < visible).to(Int32)
            mine.append((own[i] == prefix).to(Int32) & inside)
            equal = equal + mine[i]
            if (_above(own[i], prefix) & inside) != 0:
                place = _add(places, Int32(1))
                ptx.store_64(chosen + place.to(Int64) * 8, [first + i, Int32(0)])
        # Equal ones keep their order: in the thread, the warp, then by warps, then by parts.
        if (_any(equal) != 0) & (ptx.shared_load_32(places + 4) < wanted):
            before = equal
            for step in cutlass.range_constexpr(5):
                other = cute.arch.shuffle_sync_up(before, 1 << step)
                before = before + arithmetic.pick(lane >= (1 << step), other, Int32(0))
            if lane == 31:
                ptx.shared_store_32(sums + warp * 4, before)
            cute.arch.sync_threads()
            count = ptx.shared_load_32(sums + lane * 4)
            earlier = cute.arch.warp_reduction_sum(arithmetic.pick(lane < warp, count, Int32(0)))
            everything = cute.arch.warp_reduction_sum(count)
            rank = ptx.shared_load_32(places + 4) + earlier + before - equal
            for i in cutlass.range_constexpr(CHUNK):
                if (mine[i] != 0) & (rank < wanted):
                    here = chosen + (picks - wanted + rank).to(Int64) * 8
                    ptx.store_64(here, [first + i, Int32(0)])
                rank = rank + mine[i]
            cute.arch.sync_threads()
            if tid == 0:
                _add(places + 4, everything)
            cute.arch.sync_threads()


@cute.jit
def _narrow(
    scores: Int64,
    hist: Int32,
    found: Int32,
    visible: Int32,
    tid: Int32,
    prefix: Int32,
    wanted: Int32,
    shift: Int32,
    first: cutlass.Constexpr,
):
    """Eight more bits of the threshold: the bin in which it lies, and how many scores lie above that bin."""
    if tid < BINS:
        ptx.shared_store_32(hist + tid * 4, Int32(0))
    cute.arch.sync_threads()
    _count(scores, hist, visible, tid, prefix, shift, first)
    cute.arch.sync_threads()
    if tid < 32:
        _find_bin(hist, found, wanted, tid)
    cute.arch.sync_threads()
    return ptx.shared_load_32(found), ptx.shared_load_32(found + 4)


@cute.kernel
def _choose_kernel(scores: Int64, position: Int64, chosen: Int64, ratio: Int32, picks: Int32):
    tid, _, _ = cute.arch.thread_idx()
    shared = cute.arch.get_dyn_smem(Int32, alignment=128).toint()
    hist = shared
    found = shared + BINS * 4  # the bin, how many lie above it
    places = found + 8  # how many were put down: above the threshold, equal to it
    sums = found + 16  # of each warp
    cute.arch.griddepcontrol_wait()
    visible = (ptx.load_64(position)[0] + 1) // ratio
    cute.arch.griddepcontrol_launch_dependents()
    if visible <= picks:
        for at in cutlass.range(tid, picks, CHOOSE_THREADS, unroll=1):
            ptx.store_64(chosen + at.to(Int64) * 8, [at, Int32(0)])
    else:
        prefix, above = _narrow(scores, hist, found, visible, tid, Int32(0), picks, Int32(24), True)
        wanted = picks - above  # how many are still to be found among those that share the prefix
        for step in cutlass.range(3, unroll=1):
            bin, above = _narrow(scores, hist, found, visible, tid, prefix, wanted, 16 - 8 * step, False)
            prefix = (prefix << 8) | bin
            wanted = wanted - above
        if tid < 2:
            ptx.shared_store_32(places + tid * 4, Int32(0))
        cute.arch.sync_threads()
        _place(scores, chosen, places, sums, visible, tid, prefix, wanted, picks)


def choose() -> Any:
    """The kernel's host side."""
    return host(_choose_kernel, CHOOSE_THREADS)
