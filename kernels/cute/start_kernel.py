"""How a step begins: `step_start`, one launch. The last block has the rotations, a warp a table; the others
copy the token's embedding into every stream.

Angles are float32 products as everywhere; they are brought into a turn in float64, since the sine's
instruction is for small ones.
"""

import math
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import arithmetic, ptx
from dsv4chat.kernels.cute.hosting import host

STREAMS = 4
THREADS = 128
PAIRS = 32
A_THREAD = 8  # columns: 16 bytes of bfloat16
TABLES = THREADS // PAIRS  # plain, compressed, and the blocks of two ratios


def _turn(angle: Float32) -> Any:
    """Cosine and sine."""
    return ptx.asm(
        "{ .reg .f64 a, k; .reg .f32 r; cvt.f64.f32 a, $2;\n"
        f"mul.rn.f64 k, a, {1 / (2 * math.pi)!r}; cvt.rni.f64.f64 k, k;\n"
        f"fma.rn.f64 a, k, {-2 * math.pi!r}, a;\n"
        "cvt.rn.f32.f64 r, a; cos.approx.f32 $0, r; sin.approx.f32 $1, r; }",
        [Float32, Float32],
        [angle],
    )


@cute.kernel
def _kernel(
    embedding: Int64,
    token: Int64,
    position: Int64,
    plain: Int64,
    compressed: Int64,
    streams: Int64,
    tables: Int64,
    d: Int32,
    first_ratio: Int32,
    second_ratio: Int32,
):
    tid, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    blocks, _, _ = cute.arch.grid_dim()
    cute.arch.griddepcontrol_launch_dependents()
    cute.arch.griddepcontrol_wait()
    if block < blocks - 1:
        column = ((block * THREADS + tid) * A_THREAD).to(Int64)
        if column < d:
            row = ptx.load_64(token)[0].to(Int64) * d.to(Int64)
            words = ptx.load_128(embedding + (row + column) * 2)
            for stream in cutlass.range_constexpr(STREAMS):
                ptx.store_128(streams + (d.to(Int64) * stream + column) * 2, words)
    else:
        table = tid // PAIRS
        pair = (tid & (PAIRS - 1)).to(Int64)
        source = arithmetic.pick(table == 0, plain, compressed)
        ratio = arithmetic.pick(table == 2, first_ratio, arithmetic.pick(table == 3, second_ratio, Int32(1)))
        place = ptx.load_64(position)[0] // ratio * ratio
        cosine, sine = _turn(place.to(Float32) * ptx.load_f32(source + pair * 4))
        at = tables + (tid * 8).to(Int64)
        ptx.store_f32(at, cosine)
        ptx.store_f32(at + 4, sine)


def start() -> Any:
    """The kernel's host side."""
    return host(_kernel, THREADS)
