"""Two products of one input in one launch, one of the matrices in bfloat16: `pair_kernel`."""

from collections.abc import Sequence

import torch
from torch import Tensor

from dsv4chat.kernels.cute.arrange import Matrix
from dsv4chat.kernels.cute.driver import Number, Real, address
from dsv4chat.kernels.cute.experts import Experts
from dsv4chat.kernels.cute.machine import Machine
from dsv4chat.kernels.cute.products import KINDS, MOST_ROWS, THREADS, launch_linear, prefetched, shared_bytes
from dsv4chat.kernels.cute.routing import Router
from dsv4chat.kernels.cute.sharing import Portions, shared_out

PAIR_BLOCKS = 2
ROUTER_BLOCKS = 24  # at least: a warp with few units is the sooner done


def _most_rows(matrix: Matrix) -> int:
    """Rows of activations that the kernels here take."""
    return 1 if matrix.format == "nvfp4" else MOST_ROWS


class Pair:
    """Two matrices with the same input, the first NVFP4 or FP8, the other bfloat16, in one launch."""

    def __init__(self, machine: Machine, first: Matrix, other: Matrix) -> None:
        self.machine, self.first, self.other = machine, first, other

    @staticmethod
    def fits(first: Matrix, other: Matrix) -> bool:
        """Whether there is a kernel for these."""
        whole = first.exact and other.exact and first.columns == other.columns
        return whole and first.format in ("nvfp4", "fp8") and other.format == "bf16"

    def __call__(self, x: Tensor, ahead: Sequence[Tensor] = ()) -> tuple[Tensor, Tensor]:
        """x (n, columns) -> (n, rows) float32 of the one and of the other. ahead: as in `launch_linear`."""
        n, pair = x.shape[0], (self.first, self.other)
        outs = [x.new_empty((n, one.rows), dtype=torch.float32) for one in pair]
        x = x if x.stride(-1) == 1 else x.contiguous()
        shared = max(shared_bytes(one.format, one.units, n) for one in pair)
        if n > _most_rows(self.first) or shared > self.machine.shared_most:
            for one, out in zip(pair, outs, strict=True):
                launch_linear(self.machine, one, x, out, slots=1, ahead=ahead)
            return outs[0], outs[1]
        first, other = pair
        resident = self.machine.blocks_at_once(shared, PAIR_BLOCKS)
        share = max(1, round(resident * first.nbytes / (first.nbytes + other.nbytes)))
        blocks, wk_bits = shared_out(share, -(-first.rows // 16), first.units)
        more, other_wk_bits = shared_out(max(1, resident - blocks), -(-other.rows // 16), other.units)
        own = Portions.for_one_row(first, share) if n == 1 else Portions(0, 0, 0)
        blocks = own.blocks or blocks
        addresses, lines = prefetched(ahead)
        arguments = [
            address(x), address(outs[0]), address(first.codes), address(first.scales),
            address(first.factors), address(outs[1]), address(other.codes), *addresses,
            Number(KINDS[x.dtype]), Number(x.stride(0)), Number(n), Number(first.columns),
            Number(first.rows), Number(wk_bits), *own.numbers, Number(blocks), Number(other.rows),
            Number(other_wk_bits), *lines,
        ]  # fmt: skip
        self.machine.launch(f"pair_{first.format}", (blocks + more, 1), THREADS, shared, arguments)
        return outs[0], outs[1]


class RouterAndShared:
    """The router's logits, from a bfloat16 matrix, and the shared expert's hidden layer in one launch."""

    def __init__(self, machine: Machine, router: Matrix, shared: Experts) -> None:
        self.machine, self.router, self.shared = machine, router, shared

    @staticmethod
    def fits(router: Matrix, gate_up: Matrix) -> bool:
        """Whether there is a kernel for these."""
        return Pair.fits(gate_up, router)

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor] | None:
        """x (n, d) -> logits (n, experts) float32, hidden (n, inner) half; None for too many rows."""
        n, router, matrix, inner = x.shape[0], self.router, self.shared.gate_up, self.shared.inner
        bytes_needed = max(shared_bytes(one.format, one.units, n) for one in (router, matrix))
        if n > _most_rows(matrix) or bytes_needed > self.machine.shared_most:
            return None
        x = x if x.stride(-1) == 1 else x.contiguous()
        logits = x.new_empty((n, router.rows), dtype=torch.float32)
        hidden = x.new_empty((n, inner), dtype=torch.float16)
        resident = self.machine.blocks_at_once(bytes_needed, PAIR_BLOCKS)
        share = max(1, round(resident * router.nbytes / (router.nbytes + matrix.nbytes)))
        blocks, router_wk_bits = shared_out(max(share, ROUTER_BLOCKS), -(-router.rows // 16), router.units)
        more, wk_bits = shared_out(max(1, resident - blocks), -(-inner // 8), matrix.units)
        rest = max(1, resident - blocks)
        own = Portions.for_one_row(matrix, rest, a_tile=8, rows=inner) if n == 1 else Portions(0, 0, 0)
        more = own.blocks or more
        arguments = [
            address(x), address(logits), address(router.codes), address(hidden), address(matrix.codes),
            address(matrix.scales), address(matrix.factors), Number(KINDS[x.dtype]), Number(x.stride(0)),
            Number(n), Number(matrix.columns), Number(router.rows), Number(router_wk_bits),
            Number(blocks), Number(inner), Number(wk_bits), *own.numbers, Real(self.shared.limit),
        ]  # fmt: skip
        self.machine.launch(f"router_{matrix.format}", (blocks + more, 1), THREADS, bytes_needed, arguments)
        return logits, hidden


class ChoiceAndShared:
    """The router's choice, and the shared expert's result from its hidden layer: one launch, one token."""

    def __init__(self, machine: Machine, choice: Router, shared: Experts) -> None:
        self.machine, self.choice, self.shared = machine, choice, shared

    @staticmethod
    def fits(down: Matrix) -> bool:
        """Whether there is a kernel for this."""
        return down.exact and down.format in ("nvfp4", "fp8")

    def __call__(
        self, logits: Tensor, tokens: Tensor, hidden: Tensor
    ) -> tuple[Tensor, Tensor, Tensor] | None:
        """logits (n, experts), hidden (n, inner) half -> ids and weights (n, picks), as of `Router`, and the
        result (1, d), perhaps in two parts; None unless n is 1.
        """
        n, matrix, choice = hidden.shape[0], self.shared.down, self.choice
        bytes_needed = shared_bytes(matrix.format, matrix.units, n)
        if n > 1 or bytes_needed > self.machine.shared_most:
            return None
        logits = logits.contiguous()
        ids, weights = choice.outputs(logits)
        resident = max(1, self.machine.blocks_at_once(bytes_needed, PAIR_BLOCKS) - n)
        own = Portions.of(resident, -(-matrix.rows // 16), matrix.units, cut=True)
        out = hidden.new_empty((2 if own.cut else n, matrix.rows), dtype=torch.float32)
        arguments = [
            address(logits), address(choice.bias), address(choice.table), address(tokens), address(ids),
            address(weights), address(hidden), address(out), address(matrix.codes), address(matrix.scales),
            address(matrix.factors), Number(logits.shape[1]), Number(choice.picks), Number(n),
            Number(matrix.columns), Number(matrix.rows), *own.numbers, Number(own.cut),
            Real(choice.scaling),
        ]  # fmt: skip
        grid = (n + own.blocks, 1)
        self.machine.launch(f"choice_{matrix.format}", grid, THREADS, bytes_needed, arguments)
        return ids, weights, out
