"""What follows the input projections on a CuTe DSL kernel: `step_rows.CacheRows` in one launch."""

import torch
from torch import Tensor

from dsv4chat.kernels.cute.driver import Address, Number, Real, address
from dsv4chat.kernels.cute.machine import Machine
from dsv4chat.kernels.kv_rows import Fp4Keys, Fp8Rows, Rows
from dsv4chat.kernels.step_rows import BlockWeights, Moment, OpenRows, RowWeights

D = 512
ROPE_BYTES = 128
KEY = 128
THREADS = 512
SHARED_BYTES = 4 * (2 * (THREADS // 32) + KEY)


def fits(weights: RowWeights, format: Rows, key_format: Rows) -> bool:
    """Whether the kernel takes these sizes and this storage."""
    rows = isinstance(format, Fp8Rows) and format.rope_bytes == ROPE_BYTES and weights.norm.shape[0] == D
    if weights.key is None:
        return rows
    return rows and isinstance(key_format, Fp4Keys) and weights.key.norm.shape[0] == KEY


class CacheRows:
    """`step_rows.CacheRows` for FP8 rows of 448 + 64 channels and 4-bit keys of 128."""

    def __init__(self, machine: Machine, weights: RowWeights) -> None:
        self.machine, self.eps = machine, weights.eps
        self.norm, self.low_norm = (part.float().contiguous() for part in (weights.norm, weights.low_norm))
        self.block, self.key = _float(weights.block), _float(weights.key)

    def __call__(
        self,
        moment: Moment,
        low: Tensor,
        kv: Tensor,
        ring: Tensor,
        values: Tensor,
        block: tuple[Tensor, Tensor, OpenRows] | None = None,
        key: tuple[Tensor, Tensor, OpenRows] | None = None,
    ) -> Tensor:
        out = torch.empty(low.shape, dtype=torch.bfloat16, device=low.device)
        compressors = 0 if block is None else 1 if key is None else 2
        arguments = [
            address(kv), address(self.norm), address(moment.rotation), address(moment.block_rotation),
            address(moment.position), address(moment.alive), address(ring), address(values),
            *_addresses(self.block, block), *_addresses(self.key, key),
            address(low), address(self.low_norm), address(out), Number(ring.shape[0]),
            Number(1 if self.block is None else self.block.ape.shape[0]), Number(low.shape[1]),
            Real(self.eps),
        ]  # fmt: skip
        self.machine.launch("rows", (2 + compressors, 1), THREADS, SHARED_BYTES, arguments)
        return out


def _float(weights: BlockWeights | None) -> BlockWeights | None:
    if weights is None:
        return None
    return BlockWeights(weights.ape.float().contiguous(), weights.norm.float().contiguous())


def _addresses(weights: BlockWeights | None, part: tuple[Tensor, Tensor, OpenRows] | None) -> list[Address]:
    if weights is None or part is None:
        return [Address(0)] * 7
    kv, gate, open_rows = part
    tensors: list[torch.Tensor | None] = [
        kv, gate, weights.ape, weights.norm, open_rows.rows, open_rows.previous, open_rows.stored
    ]  # fmt: skip
    return [address(tensor) for tensor in tensors]
