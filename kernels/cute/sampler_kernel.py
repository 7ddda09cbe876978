"""The end of a step, two launches: from the logits to the token, the record of it, and the next step's start.

    scan   each block a stretch of the logits: its maximum, its sum of exponentials, its eight highest, and
           the highest after the repetition penalty
    end    all of that put together; the token (given, or the penalised maximum), what became of it, its
           record to the host's memory, and the state for the step that feeds it

Of equals the lowest id comes first. Penalised logits are compared in float64, as the host's sampler does it;
log-probabilities are float32. A NaN makes the maximum NaN and is nobody's highest.
"""

from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import arithmetic, ptx
from dsv4chat.kernels.cute.hosting import host

THREADS = 256
WARPS = THREADS // 32
A_THREAD = 8  # logits, or candidates, of a thread
TOP = 8
LOWEST = -3.4e38
NOBODY = 1 << 30
SHARED_BYTES = 4 * (4 * WARPS + 2 * TOP)
# What became of a step; `runtime.gpu.sampler` has the same.
CHOSEN, STOPPED, NOT_A_NUMBER, INFINITE, NOTHING, SKIPPED = range(6)


def _larger(a: Any, b: Any) -> Any:
    """The larger; NaN if one is."""
    return ptx.asm("max.NaN.f32 $0, $1, $2;", [Float32], [a, b])


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


def _store_double(address: Any, value: Any) -> None:
    """A Float32 as float64."""
    ptx.asm("{ .reg .f64 d; cvt.f64.f32 d, $1; st.global.f64 [$0], d; }", [], [address, value], volatile=True)


def _store_whole(address: Any, value: Any) -> None:
    """An Int32 as float64."""
    ptx.asm(
        "{ .reg .f64 d; cvt.rn.f64.s32 d, $1; st.global.f64 [$0], d; }", [], [address, value], volatile=True
    )


def _halves(key: Any) -> Any:
    return ptx.asm("mov.b64 {$0, $1}, $2;", [Int32, Int32], [key])


def _whole(low: Any, high: Any) -> Any:
    return ptx.asm("mov.b64 $0, {$1, $2};", [Int64], [low, high])


def _shared_key(address: Any) -> Any:
    return ptx.asm("ld.shared.b64 $0, [$1];", [Int64], [address], volatile=True)


def _best_key(key: Any, number: Any, shared: Any, tid: Any) -> Any:
    """The highest key of the block and the lowest number that has it; every thread gets it."""
    for step in range(5):
        low, high = _halves(key)
        other = _whole(
            cute.arch.shuffle_sync_bfly(low, 1 << step), cute.arch.shuffle_sync_bfly(high, 1 << step)
        )
        other_number = cute.arch.shuffle_sync_bfly(number, 1 << step)
        wins = (other > key) | ((other == key) & (other_number < number))
        key, number = arithmetic.pick(wins, other, key), arithmetic.pick(wins, other_number, number)
    ptx.shared_store_64(shared + (tid // 32) * 8, _halves(key))
    ptx.shared_store_32(shared + WARPS * 8 + (tid // 32) * 4, number)
    cute.arch.sync_threads()
    for warp in range(WARPS):
        other = _shared_key(shared + warp * 8)
        other_number = ptx.shared_load_32(shared + WARPS * 8 + warp * 4)
        wins = (other > key) | ((other == key) & (other_number < number))
        key, number = arithmetic.pick(wins, other, key), arithmetic.pick(wins, other_number, number)
    cute.arch.sync_threads()
    return key, number


@cute.jit
def _highest(values: cute.Tensor, numbers: cute.Tensor, shared: Int32, to: Int32, tid: Int32):
    """The TOP highest of the block's values into shared memory at `to`, then their numbers."""
    for turn in cutlass.range(TOP, unroll=1):
        best = Float32(LOWEST)
        best_number = Int32(NOBODY)
        for i in cutlass.range_constexpr(A_THREAD):
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
        ptx.shared_store_32(shared + (WARPS + tid // 32) * 4, best_number)
        cute.arch.sync_threads()
        for warp in cutlass.range_constexpr(WARPS):
            other = ptx.shared_load_f32(shared + warp * 4)
            other_number = ptx.shared_load_32(shared + (WARPS + warp) * 4)
            wins = (other > best) | ((other == best) & (other_number < best_number))
            best = arithmetic.pick(wins, other, best)
            best_number = arithmetic.pick(wins, other_number, best_number)
        if tid == 0:
            ptx.shared_store_f32(to + turn * 4, best)
            ptx.shared_store_32(to + (TOP + turn) * 4, best_number)
        for i in cutlass.range_constexpr(A_THREAD):
            mine = numbers[i] == best_number
            values[i] = arithmetic.pick(mine, Float32(LOWEST), values[i])
            numbers[i] = arithmetic.pick(mine, Int32(NOBODY), numbers[i])
        cute.arch.sync_threads()


def _block_max(value: Any, shared: Any, tid: Any) -> Any:
    for step in range(5):
        value = _larger(value, cute.arch.shuffle_sync_bfly(value, 1 << step))
    ptx.shared_store_f32(shared + (tid // 32) * 4, value)
    cute.arch.sync_threads()
    for warp in range(WARPS):
        value = _larger(value, ptx.shared_load_f32(shared + warp * 4))
    cute.arch.sync_threads()
    return value


def _block_sum(value: Any, shared: Any, tid: Any) -> Any:
    value = cute.arch.warp_reduction_sum(value)
    ptx.shared_store_f32(shared + (tid // 32) * 4, value)
    cute.arch.sync_threads()
    total = Float32(0.0)
    for warp in range(WARPS):
        total = total + ptx.shared_load_f32(shared + warp * 4)
    cute.arch.sync_threads()
    return total


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
            largest = _larger(largest, value)
            own = _penalised(value, ptx.load_32(counts + at.to(Int64) * 4), penalty)
            wins = own > key
            key, number = arithmetic.pick(wins, own, key), arithmetic.pick(wins, at, number)
            # fmax takes the number where the other is NaN.
            values[i] = cute.arch.fmax(value, Float32(LOWEST))
            numbers[i] = at
    largest = _block_max(largest, shared, tid)
    base = cute.arch.fmax(largest, Float32(LOWEST))
    total = Float32(0.0)
    for i in cutlass.range_constexpr(A_THREAD):
        weight = arithmetic.exponential(values[i] - base)
        total = total + arithmetic.pick(numbers[i] < NOBODY, weight, Float32(0.0))
    total = _block_sum(total, shared, tid)
    key, number = _best_key(key, number, shared, tid)
    _highest(values, numbers, shared, best_at, tid)
    if tid == 0:
        ptx.store_f32(maxima + block.to(Int64) * 4, largest)
        ptx.store_f32(sums + block.to(Int64) * 4, total)
        low, high = _halves(key)
        ptx.store_128(keys + block.to(Int64) * 16, [low, high, number, Int32(0)])
    if tid < 2 * TOP:
        word = ptx.shared_load_32(best_at + tid * 4)
        ptx.store_32(tops + (block * 2 * TOP + tid).to(Int64) * 4, word)


def scan() -> Any:
    """The kernel's host side."""
    return host(_scan_kernel, THREADS)


@cute.kernel
def _end_kernel(
    logits: Int64,
    given: Int64,
    maxima: Int64,
    sums: Int64,
    tops: Int64,
    keys: Int64,
    residual: Int64,
    records: Int64,
    stops: Int64,
    token: Int64,
    position: Int64,
    number: Int64,
    alive: Int64,
    history: Int64,
    counts: Int64,
    window: Int64,
    blocks: Int32,
    layers: Int32,
    slots: Int32,
    vocab: Int32,
):
    tid, _, _ = cute.arch.thread_idx()
    shared = cute.arch.get_dyn_smem(Int32, alignment=128).toint()
    best_at = shared + 4 * WARPS * 4
    cute.arch.griddepcontrol_launch_dependents()
    cute.arch.griddepcontrol_wait()
    there = tid < blocks
    mine = cutlass.min(tid, blocks - 1).to(Int64)
    own = ptx.load_f32(maxima + mine * 4)
    largest = _block_max(own, shared, tid)
    base = cute.arch.fmax(largest, Float32(LOWEST))
    weight = ptx.load_f32(sums + mine * 4) * arithmetic.exponential(
        cute.arch.fmax(own, Float32(LOWEST)) - base
    )
    total = _block_sum(arithmetic.pick(there, weight, Float32(0.0)), shared, tid)
    words = ptx.load_128(keys + mine * 16)
    _, chosen = _best_key(_whole(words[0], words[1]), words[2], shared, tid)
    values = cute.make_rmem_tensor((A_THREAD,), Float32)
    numbers = cute.make_rmem_tensor((A_THREAD,), Int32)
    for i in cutlass.range_constexpr(A_THREAD):
        candidate = i * THREADS + tid
        values[i] = Float32(LOWEST)
        numbers[i] = Int32(NOBODY)
        if candidate < blocks * TOP:
            at = tops + ((candidate // TOP) * 2 * TOP + candidate % TOP).to(Int64) * 4
            values[i] = ptx.load_f32(at)
            numbers[i] = ptx.load_32(at + TOP * 4)
    _highest(values, numbers, shared, best_at, tid)
    if given != 0:
        chosen = ptx.load_64(given)[0]
    chosen = cutlass.min(cutlass.max(chosen, 0), vocab - 1)
    log_total = base + arithmetic.logarithm(total)
    step = ptx.load_64(number)[0]
    width = 3 + 2 * TOP + layers
    record = records + ((step % slots) * width).to(Int64) * 8
    if tid < TOP:
        _store_whole(record + (3 + tid).to(Int64) * 8, ptx.shared_load_32(best_at + (TOP + tid) * 4))
        value = ptx.shared_load_f32(best_at + tid * 4)
        reported = arithmetic.pick(value > LOWEST, value - log_total, Float32(-cutlass.Float32.inf))
        _store_double(record + (3 + TOP + tid).to(Int64) * 8, reported)
    for layer in cutlass.range(tid, layers, THREADS, unroll=1):
        value = ptx.load_f32(residual + layer.to(Int64) * 4)
        _store_double(record + (3 + 2 * TOP + layer).to(Int64) * 8, value)
    going = ptx.load_u8(alive)
    place = ptx.load_64(position)[0]
    outcome = arithmetic.pick(ptx.load_u8(stops + chosen.to(Int64)) != 0, Int32(STOPPED), Int32(CHOSEN))
    outcome = arithmetic.pick(largest == -cutlass.Float32.inf, Int32(NOTHING), outcome)
    outcome = arithmetic.pick(largest == cutlass.Float32.inf, Int32(INFINITE), outcome)
    outcome = arithmetic.pick(largest != largest, Int32(NOT_A_NUMBER), outcome)
    outcome = arithmetic.pick(going != 0, outcome, Int32(SKIPPED))
    cute.arch.sync_threads()
    if tid == 0:
        _store_whole(record, outcome)
        _store_whole(record + 8, chosen)
        _store_double(record + 16, ptx.load_f32(logits + chosen.to(Int64) * 4) - log_total)
        ptx.store_64(position, [place + going, Int32(0)])
        ptx.store_64(number, [step + going, Int32(0)])
        if outcome == CHOSEN:
            ptx.store_64(token, [chosen, Int32(0)])
            _enter(chosen, place + 1, history, counts, ptx.load_64(window))
        else:
            ptx.store_u8(alive, Int32(0))


@cute.jit
def _enter(token: Int32, place: Int32, history: Int64, counts: Int64, window: cutlass.Constexpr):
    """The token that will be fed at `place` into the history, and the counts of the last ids."""
    ptx.store_32(history + place.to(Int64) * 4, token)
    at = counts + token.to(Int64) * 4
    ptx.store_32(at, ptx.load_32(at) + 1)
    leaving = place - window[0]
    if (window[1] == 0) & (leaving >= 0):
        old = counts + ptx.load_32(history + leaving.to(Int64) * 4).to(Int64) * 4
        ptx.store_32(old, ptx.load_32(old) - 1)


def end() -> Any:
    """The kernel's host side."""
    return host(_end_kernel, THREADS)
