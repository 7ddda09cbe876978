"""`down`: out of the hidden layers that `gate_up_kernel` left, the experts of a token added up.

    out[n, row] = add[n, row] + sum over picks of w2[expert] hidden[n * picks + pick]

The picks are further columns of one long row. settled: ids were there before the kernel launched last let
this one start, so that it may ask for weights before the kernel before it ends.
"""

from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import activations, arithmetic, gemv, one_row, ptx, runs
from dsv4chat.kernels.cute.hosting import host
from dsv4chat.kernels.cute.prefetching import prefetch
from dsv4chat.kernels.cute.units import STAGE_BYTES, rows_at, units_of, wide

STAGES = 3  # beside the hidden layers of all picks
MOST_PICKS = 32
FACTORS = MOST_PICKS * 16  # behind where each pick's codes and scales begin
PICKS_BYTES = FACTORS + MOST_PICKS * 4
PICKS_AT_ONCE = 9  # a thread's part of six picks of 3,072
PICK_BITS = 20  # unit * ceil(2^20 / units) >> 20 is unit // units, for the few hundred units there can be


@cute.jit
def _stage_picks(
    ids: Int64,
    factors: Int64,
    codes: Int64,
    scales: Int64,
    codes_expert: Int64,
    scales_expert: Int64,
    first: Int32,
    picks: Int32,
    to: Int32,
    tid: Int32,
) -> Float32:
    """Where each pick's matrix begins into shared memory, with room for MOST_PICKS; thread `pick` gets its
    factor, 0 where there are none, perhaps later: nobody waits for it here.
    """
    expert = ptx.load_shared_by_all(ids + (first + cutlass.min(tid, picks - 1)).to(Int64) * 4)
    if tid < picks:
        begin = [codes + wide(expert) * codes_expert, scales + wide(expert) * scales_expert]
        ptx.shared_store_128(to + tid * 16, [word for one in begin for word in arithmetic.words_of(one)])
    wanted = ((factors != 0) & (tid < picks)).to(Int32)
    return ptx.load_f32_if(factors + wide(expert * 4), wanted)


@cute.kernel
def _down_kernel(
    fmt: cutlass.Constexpr,
    exact: cutlass.Constexpr,
    hidden: Int64,
    out: Int64,
    add: Int64,
    ids: Int64,
    codes: Int64,
    scales: Int64,
    factors: Int64,
    codes_expert: Int64,
    scales_expert: Int64,
    ahead: Int64,
    also_ahead: Int64,
    picks: Int32,
    d: Int32,
    k: Int32,
    portion: Int32,
    rest: Int32,
    split: Int32,
    add_stride: Int32,
    pick_factor: Int32,
    ahead_lines: Int32,
    also_lines: Int32,
    settled: Int32,
):
    _, token, _ = cute.arch.block_idx()
    tid, _, _ = cute.arch.thread_idx()
    lane = tid & 31
    shared = ptx.kept(cute.arch.get_dyn_smem(Int32, alignment=128).toint())
    units = units_of(fmt, k)
    picks_at = shared + one_row.sums_bytes(fmt, units) + gemv.WARPS * STAGES * STAGE_BYTES
    x_shared = picks_at + PICKS_BYTES
    x_row_bytes = units * (fmt.unit * 2)
    # With settled ids gate_up was launched after they were complete, and so was this kernel.
    if settled == 0:
        cute.arch.griddepcontrol_wait()
    own_factor = _stage_picks(
        ids, factors, codes, scales, codes_expert, scales_expert, token * picks, picks, picks_at, tid
    )
    cute.arch.sync_threads()

    def pick_of(unit: Any) -> Any:
        return (unit * pick_factor) >> PICK_BITS

    def bases(pick: Any) -> Any:
        words = ptx.shared_load_128(picks_at + pick * 16)
        return arithmetic.whole(*words[:2]), arithmetic.whole(*words[2:])

    def locate(tile: Any, unit: Any) -> Any:
        def row(r: Any) -> Any:
            return Int64(0), Int64(0), cutlass.min(tile * 16 + r, d - 1)

        # An expert's matrix is less than 2 GiB.
        return [distance.to(Int32) for distance in rows_at(fmt, exact, lane, row, (unit, k, units))]

    def begin() -> None:
        cute.arch.griddepcontrol_wait()
        # Only now, so that the next kernel need not wait for what came before this one.
        cute.arch.griddepcontrol_launch_dependents()
        # Asked for before the weights, and not waited for until now.
        if tid < picks:
            value = arithmetic.pick(factors != 0, own_factor, Float32(1.0))
            ptx.shared_store_f32(picks_at + FACTORS + tid * 4, value)
        source = hidden + (token * picks).to(Int64) * k.to(Int64) * 2
        if cutlass.const_expr(exact):
            # Whole units: the picks are one long row, all of it asked for at once.
            activations.stage(
                fmt,
                source,
                Int32(1),
                k,
                Int32(1),
                picks * k,
                x_shared,
                x_row_bytes,
                units * picks,
                PICKS_AT_ONCE,
            )
        else:
            activations.stage(fmt, source, Int32(1), k, picks, k, x_shared, x_row_bytes, units)
        block, _, _ = cute.arch.block_idx()
        blocks, tokens, _ = cute.arch.grid_dim()
        worker, workers = token * blocks + block, tokens * blocks
        prefetch(ahead, ahead_lines, worker, workers, gemv.THREADS)
        prefetch(also_ahead, also_lines, worker, workers, gemv.THREADS)
        cute.arch.sync_threads()

    def factor(unit: Any) -> Any:
        return ptx.shared_load_f32(picks_at + FACTORS + pick_of(unit) * 4)

    block, _, _ = cute.arch.block_idx()
    run = runs.run_of(block, (portion, rest, split), units * picks, k, units, pick_of, bases)

    def hold(tile: Any, row: Any) -> Any:
        number = cutlass.min(tile * 16 + row, d - 1)
        there = (add != 0) & run.begun(tile)
        at = add + (token * d + number).to(Int64) * 4
        first = ptx.load_f32_if(at, there.to(Int32))
        return first + ptx.load_f32_if(at + add_stride.to(Int64) * 4, (there & (add_stride != 0)).to(Int32))

    def store(tile: Any, row: Any, total: Any, held: Any) -> None:
        number = tile * 16 + row
        there = run.holds(tile) & (number < d)
        at = out + (token * d + number).to(Int64) * 4
        runs.store_part(run, split, tile, there, at, d, total + held)

    one_row.walk(
        fmt, exact, STAGES, locate, begin, hold, factor, store, run, shared, x_shared,
        x_shared + x_row_bytes * picks, False,
    )  # fmt: skip


def down(fmt: Any, exact: bool) -> Any:
    """The kernel's host side."""
    return host(_down_kernel, gemv.THREADS, fmt, exact, blocks=2)
