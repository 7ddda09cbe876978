"""The end of a step, the second of two launches: the token, the record of it, and the next step's start.

The blocks' results of `sampler_scan_kernel` are put together; the token is given or the penalised maximum.
Then what became of it, its record to the host's memory, and the state for the step that feeds it.
Log-probabilities are float32.
"""

from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import arithmetic, ptx, reductions
from dsv4chat.kernels.cute.hosting import host
from dsv4chat.kernels.cute.reductions import LOWEST, NOBODY
from dsv4chat.kernels.cute.sampler_scan_kernel import A_THREAD, THREADS, TOP, WARPS

# What became of a step; `runtime.gpu.sampler` has the same.
CHOSEN, STOPPED, NOT_A_NUMBER, INFINITE, NOTHING, SKIPPED = range(6)


def _store_double(address: Any, value: Any) -> None:
    """A Float32 as float64."""
    ptx.asm("{ .reg .f64 d; cvt.f64.f32 d, $1; st.global.f64 [$0], d; }", [], [address, value], volatile=True)


def _store_whole(address: Any, value: Any) -> None:
    """An Int32 as float64."""
    ptx.asm(
        "{ .reg .f64 d; cvt.rn.f64.s32 d, $1; st.global.f64 [$0], d; }", [], [address, value], volatile=True
    )


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
    largest = reductions.block_max(own, shared, tid, WARPS)
    base = cute.arch.fmax(largest, Float32(LOWEST))
    weight = ptx.load_f32(sums + mine * 4) * arithmetic.exponential(
        cute.arch.fmax(own, Float32(LOWEST)) - base
    )
    total = reductions.block_sum(arithmetic.pick(there, weight, Float32(0.0)), shared, tid, WARPS)
    cute.arch.sync_threads()
    words = ptx.load_128(keys + mine * 16)
    _, chosen = reductions.best_key(arithmetic.whole(words[0], words[1]), words[2], shared, tid, WARPS)
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
    reductions.highest(values, numbers, A_THREAD, TOP, shared, best_at, tid, WARPS)
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
