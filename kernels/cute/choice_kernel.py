"""The choice of experts and the shared expert's way out of its hidden layer, in one launch.

The first blocks choose, a token each; the others are `linear_kernel.product`. The next kernel starts when the
choice is made and everything before this kernel is complete.
"""

from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import gemv
from dsv4chat.kernels.cute.hosting import host
from dsv4chat.kernels.cute.linear_kernel import product
from dsv4chat.kernels.cute.router_kernel import choose


@cute.kernel
def _kernel(
    fmt: cutlass.Constexpr,
    logits: Int64,
    bias: Int64,
    table: Int64,
    tokens: Int64,
    ids: Int64,
    weights: Int64,
    hidden: Int64,
    out: Int64,
    codes: Int64,
    scales: Int64,
    factors: Int64,
    experts: Int32,
    picks: Int32,
    rows: Int32,
    k: Int32,
    matrix_rows: Int32,
    portion: Int32,
    rest: Int32,
    split: Int32,
    scaling: Float32,
):
    block, _, _ = cute.arch.block_idx()
    blocks, _, _ = cute.arch.grid_dim()
    zero, one, none = Int32(0), Int32(1), Int64(0)
    if block < rows:
        choose(False, logits, bias, table, tokens, ids, weights, experts, picks, scaling, block)
    else:
        product(
            fmt, True, True, hidden, out, codes, scales, factors, none, none, none, none, one, k, zero,
            matrix_rows, matrix_rows, rows, k, zero, portion, rest, split, zero, zero, one, zero, zero,
            block - rows, blocks - rows,
        )  # fmt: skip


def choice(fmt: Any) -> Any:
    """The kernel's host side."""
    return host(_kernel, gemv.THREADS, fmt, blocks=2)
