"""Two products of one input in one launch: a quantised matrix and one in bfloat16, each with its own blocks.

    pair     both are `linear_kernel.product`
    router   the bfloat16 one has the router's logits, the other the hidden layer of the shared expert

They are too small to fill the machine for long, and the second need not wait for the first. With NVFP4 they
take one row of activations.
"""

from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import gemv
from dsv4chat.kernels.cute.gate_up_kernel import enter
from dsv4chat.kernels.cute.hosting import host
from dsv4chat.kernels.cute.linear_kernel import product
from dsv4chat.kernels.cute.units import BF16, NVFP4


@cute.kernel
def _kernel(
    fmt: cutlass.Constexpr,
    x: Int64,
    out: Int64,
    codes: Int64,
    scales: Int64,
    factors: Int64,
    other_out: Int64,
    other_codes: Int64,
    ahead: Int64,
    also_ahead: Int64,
    x_kind: Int32,
    x_stride: Int32,
    rows: Int32,
    k: Int32,
    matrix_rows: Int32,
    wk_bits: Int32,
    portion: Int32,
    rest: Int32,
    first_blocks: Int32,
    other_rows: Int32,
    other_wk_bits: Int32,
    ahead_lines: Int32,
    also_lines: Int32,
):
    block, _, _ = cute.arch.block_idx()
    blocks, _, _ = cute.arch.grid_dim()
    zero, none = Int32(0), Int64(0)
    if block < first_blocks:
        product(
            fmt, True, fmt is NVFP4, x, out, codes, scales, factors, none, none, ahead, also_ahead, x_kind,
            x_stride, zero, matrix_rows, matrix_rows, rows, k, wk_bits, portion, rest, zero, ahead_lines,
            also_lines, zero, zero, zero, block, first_blocks,
        )  # fmt: skip
    else:
        product(
            BF16, True, False, x, other_out, other_codes, none, none, none, none, none, none, x_kind,
            x_stride, zero, other_rows, other_rows, rows, k, other_wk_bits, zero, zero, zero,
            zero, zero, zero, zero, zero, block - first_blocks, blocks - first_blocks,
        )  # fmt: skip


def pair(fmt: Any) -> Any:
    """The kernel's host side."""
    return host(_kernel, gemv.THREADS, fmt, blocks=2)


@cute.kernel
def _router_kernel(
    fmt: cutlass.Constexpr,
    x: Int64,
    logits: Int64,
    router_codes: Int64,
    hidden: Int64,
    codes: Int64,
    scales: Int64,
    factors: Int64,
    x_kind: Int32,
    x_stride: Int32,
    rows: Int32,
    k: Int32,
    router_rows: Int32,
    router_wk_bits: Int32,
    router_blocks: Int32,
    inner: Int32,
    wk_bits: Int32,
    portion: Int32,
    rest: Int32,
    limit: Float32,
):
    block, _, _ = cute.arch.block_idx()
    blocks, _, _ = cute.arch.grid_dim()
    zero, one, none = Int32(0), Int32(1), Int64(0)
    if block < router_blocks:
        product(
            BF16, True, False, x, logits, router_codes, none, none, none, none, none, none, x_kind, x_stride,
            zero, router_rows, router_rows, rows, k, router_wk_bits, zero, zero, zero,
            zero, zero, zero, zero, zero, block, router_blocks,
        )  # fmt: skip
    else:
        enter(
            fmt, True, fmt is NVFP4, x, hidden, none, none, codes, scales, factors, none, none, zero, inner,
            x_kind, x_stride, rows, one, inner, k, wk_bits, portion, rest, zero, limit, zero,
            block - router_blocks, blocks - router_blocks,
        )  # fmt: skip


def router(fmt: Any) -> Any:
    """The kernel's host side."""
    return host(_router_kernel, gemv.THREADS, fmt, blocks=2)
