"""Which blocks a token attends to, the second of two launches: the highest scores of `index_scores_kernel`.

Radix selection over the scores' bits, 8 at a time: each pass counts them into bins by the next eight bits and
goes on with the bin in which the threshold lies. Then what is above it is taken, and of equals the lowest
numbers. One block of threads does it all.
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
SHARED_BYTES = 4 * (BINS + 64)


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
        for at in cutlass.range(tid, picks, THREADS, unroll=1):
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
    return host(_choose_kernel, THREADS)
