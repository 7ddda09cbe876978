"""Which blocks a token attends to, the second of two launches: the highest scores of `index_scores_kernel`.

Radix selection over the scores' bits, up to 8 at a time: each pass counts them into bins by the next bits
and goes on with the bin in which the threshold lies, until all of a bin is taken. Then what is above the
threshold is put down, and of equals the lowest numbers. One block of threads does it all.

Up to PART scores are read once and begin behind the bits that all of them have in common.
"""

from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Int32, Int64

from dsv4chat.kernels.cute import arithmetic, ptx, together
from dsv4chat.kernels.cute.hosting import host

THREADS = 1024
BINS = 256
CHUNK = 4  # scores a thread reads at once
PART = CHUNK * THREADS
WARPS = THREADS // 32
SUMS_AT = 4 * BINS + 16  # behind the bins, and the one that was found
SHARED_BYTES = SUMS_AT + 2 * 4 * WARPS


def _ordered(bits: Any) -> Any:
    """A score's bits, larger without sign for larger scores; -0 is 0, NaN the lowest."""
    return ptx.asm(
        "{ .reg .f32 x; .reg .b32 b, m; .reg .pred p; mov.b32 x, $1; add.f32 x, x, 0f00000000;\n"
        "setp.nan.f32 p, x, x; mov.b32 b, x; shr.s32 m, b, 31; or.b32 m, m, 0x80000000; xor.b32 $0, b, m;\n"
        "@p mov.b32 $0, 0; }",
        [Int32],
        [bits],
    )


def _add(address: Any, value: Any) -> None:
    """Adds to a word of shared memory."""
    ptx.asm("red.shared.add.u32 [$0], $1;", [], [address, value], volatile=True)


def _above(a: Any, b: Any) -> Any:
    """1 where a > b as numbers without sign."""
    return ptx.asm("{ .reg .pred p; setp.gt.u32 p, $1, $2; selp.b32 $0, 1, 0, p; }", [Int32], [a, b])


@cute.jit
def _find_bin(hist: Int32, found: Int32, wanted: Int32, lane: Int32):
    """One warp: the bin in which the `wanted`-th from the top lies, how many lie above it and in it."""
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
            ptx.shared_store_32(found + 8, count)
        running = running + count


@cute.jit
def _read(words: cute.Tensor, scores: Int64, start: Int32, visible: Int32, tid: Int32):
    """The thread's CHUNK scores of those from `start` on, if there are any; where there is none, others."""
    if start < visible:
        at = cutlass.min(start + tid * CHUNK, (visible - 1) & ~(CHUNK - 1))
        for i, word in enumerate(ptx.load_128(scores + at.to(Int64) * 4)):
            words[i] = word


@cute.jit
def _count(
    kept: cute.Tensor,
    scores: Int64,
    hist: Int32,
    visible: Int32,
    tid: Int32,
    prefix: Int32,
    shift: Int32,
    bits: Int32,
    many: cutlass.Constexpr,
):
    """Into the bins, by the `bits` bits from `shift` on: the scores with this prefix above them; of `many`,
    all.
    """
    lane = tid & 31
    words = cute.make_rmem_tensor((CHUNK,), Int32)
    for i in cutlass.range_constexpr(CHUNK):
        words[i] = kept[i]
    for start in cutlass.range(0, visible, PART, unroll=1):
        own = [_ordered(words[i]) for i in range(CHUNK)]
        # The next ones are on their way while these are counted.
        _read(words, scores, start + PART, visible, tid)
        for i in cutlass.range_constexpr(CHUNK):
            bin = arithmetic.shifted(own[i], shift) & ((Int32(1) << bits) - 1)
            counts = start + tid * CHUNK + i < visible
            if cutlass.const_expr(many):
                # Scores are close to each other: one addition for all lanes with the same bin.
                same = together.lanes_like_this(arithmetic.pick(counts, bin, Int32(BINS)))
                if counts & ((same & ((Int32(1) << lane) - 1)) == 0):
                    _add(hist + bin * 4, arithmetic.count_bits(same))
            elif counts & (arithmetic.shifted(own[i], shift + bits) == prefix):
                _add(hist + bin * 4, Int32(1))


@cute.jit
def _place(
    kept: cute.Tensor,
    scores: Int64,
    chosen: Int64,
    sums: Int32,
    visible: Int32,
    tid: Int32,
    prefix: Int32,
    shift: Int32,
    wanted: Int32,
    picks: Int32,
):
    """Everything above the prefix is put down, behind it of what has it the first `wanted`, both in the order
    of their numbers: in the thread, the warp, then by warps, then by parts. So a sum over the chosen is the
    same each time.
    """
    lane = tid & 31
    warp = tid // 32
    earlier_lanes = (Int32(1) << lane) - 1
    above_place, equal_place = Int32(0), picks - wanted
    words = cute.make_rmem_tensor((CHUNK,), Int32)
    for i in cutlass.range_constexpr(CHUNK):
        words[i] = kept[i]
    for start in cutlass.range(0, visible, PART, unroll=1):
        own = [arithmetic.shifted(_ordered(words[i]), shift) for i in range(CHUNK)]
        _read(words, scores, start + PART, visible, tid)
        first = start + tid * CHUNK
        above, equal = [], []
        votes, before = Int32(0), Int32(0)  # of those above in the low half, of equal ones in the high one
        for i in cutlass.range_constexpr(CHUNK):
            inside = (first + i < visible).to(Int32)
            above.append(_above(own[i], prefix) & inside)
            equal.append((own[i] == prefix).to(Int32) & inside)
            for mine, half in ((above[i], 0), (equal[i], 16)):
                vote = together.ballot(mine)
                votes = votes + (arithmetic.count_bits(vote) << half)
                before = before + (arithmetic.count_bits(vote & earlier_lanes) << half)
        # Two places for these by turns, so that one barrier a part is enough.
        here = sums + ((start // PART) & 1) * (4 * WARPS)
        if lane == 0:
            ptx.shared_store_32(here + warp * 4, votes)
        cute.arch.sync_threads()
        count = ptx.shared_load_32(here + lane * 4)
        before = before + together.warp_sum(arithmetic.pick(lane < warp, count, Int32(0)))
        count = together.warp_sum(count)
        above_at = above_place + (before & 0xFFFF)
        equal_at = equal_place + (before >> 16)
        for i in cutlass.range_constexpr(CHUNK):
            at = arithmetic.pick(above[i] != 0, above_at, equal_at)
            if ((above[i] | equal[i]) != 0) & (at < picks):
                ptx.store_64(chosen + at.to(Int64) * 8, [first + i, Int32(0)])
            above_at = above_at + above[i]
            equal_at = equal_at + equal[i]
        above_place = above_place + (count & 0xFFFF)
        equal_place = equal_place + (count >> 16)


@cute.jit
def _narrow(
    kept: cute.Tensor,
    scores: Int64,
    shared: Int32,
    visible: Int32,
    tid: Int32,
    prefix: Int32,
    wanted: Int32,
    shift: Int32,
    bits: Int32,
    many: cutlass.Constexpr,
):
    """The bin in which the threshold lies, how many scores lie above it and how many in it."""
    found = shared + 4 * BINS
    if tid < BINS:
        ptx.shared_store_32(shared + tid * 4, Int32(0))
    cute.arch.sync_threads()
    _count(kept, scores, shared, visible, tid, prefix, shift, bits, many)
    cute.arch.sync_threads()
    if tid < 32:
        _find_bin(shared, found, wanted, tid)
    cute.arch.sync_threads()
    return ptx.shared_load_32(found), ptx.shared_load_32(found + 4), ptx.shared_load_32(found + 8)


@cute.jit
def _common(kept: cute.Tensor, sums: Int32, visible: Int32, tid: Int32):
    """Of up to PART scores: how many low bits are not the same in all, and those above them."""
    top, bottom = Int32(-(1 << 31)), Int32((1 << 31) - 1)
    for i in cutlass.range_constexpr(CHUNK):
        own = _ordered(kept[i]) ^ Int32(-(1 << 31))  # ordered with a sign
        inside = tid * CHUNK + i < visible
        top = cutlass.max(top, arithmetic.pick(inside, own, top))
        bottom = cutlass.min(bottom, arithmetic.pick(inside, own, bottom))
    at = sums + (tid // 32) * 4
    ptx.shared_store_32(at, together.warp_max(top))
    ptx.shared_store_32(at + 4 * WARPS, together.warp_min(bottom))
    cute.arch.sync_threads()
    lane = tid & 31
    top = together.warp_max(ptx.shared_load_32(sums + lane * 4))
    bottom = together.warp_min(ptx.shared_load_32(sums + 4 * (WARPS + lane)))
    low = arithmetic.width(top ^ bottom)
    return low, arithmetic.shifted(top ^ Int32(-(1 << 31)), low)


@cute.kernel
def _choose_kernel(scores: Int64, position: Int64, chosen: Int64, ratio: Int32, picks: Int32):
    tid, _, _ = cute.arch.thread_idx()
    shared = cute.arch.get_dyn_smem(Int32, alignment=128).toint()
    sums = shared + SUMS_AT  # of each warp
    cute.arch.griddepcontrol_launch_dependents()
    # The kernel before this one let it begin when the position was there.
    visible = (ptx.load_shared_by_all(position) + 1) // ratio
    cute.arch.griddepcontrol_wait()
    if visible <= picks:
        for at in cutlass.range(tid, picks, THREADS, unroll=1):
            ptx.store_64(chosen + at.to(Int64) * 8, [at, Int32(0)])
    else:
        kept = cute.make_rmem_tensor((CHUNK,), Int32)
        _read(kept, scores, Int32(0), visible, tid)
        prefix, wanted, shift = Int32(0), picks, Int32(24)
        inside = Int32(0)  # how many have the prefix, of which `wanted` are still to be taken
        if visible > PART:
            prefix, above, inside = _narrow(
                kept, scores, shared, visible, tid, prefix, wanted, shift, Int32(8), True
            )
            wanted = wanted - above
        else:
            shift, prefix = _common(kept, sums, visible, tid)
        for _ in cutlass.range(4, unroll=1):
            if (shift > 0) & (inside != wanted):
                bits = cutlass.min(shift, 8)
                shift = shift - bits
                bin, above, inside = _narrow(
                    kept, scores, shared, visible, tid, prefix, wanted, shift, bits, False
                )
                prefix = (prefix << bits) | bin
                wanted = wanted - above
        if inside == wanted:
            # All that have it are taken, with those above. (0 it is not: not all scores are taken.)
            prefix, wanted = prefix - 1, Int32(0)
        cute.arch.sync_threads()
        _place(kept, scores, chosen, sums, visible, tid, prefix, shift, wanted, picks)


def choose() -> Any:
    """The kernel's host side."""
    return host(_choose_kernel, THREADS)
