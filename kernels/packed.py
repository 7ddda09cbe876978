"""Matrices as a GPU holds them: in the format they are stored in, those with the same input stacked.

At batch 1 a step is bound by the weights it reads, so a 4-bit matrix stays in 4 bits. What is kept of a
format is exact: codes times scales have few enough bits for bfloat16, and the one float32 factor of an NVFP4
matrix is applied to the product, row by row. The products here are PyTorch's, over values made on the fly.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dsv4chat.kernels.codes import decode_e2m1, e8m0_values
from dsv4chat.kernels.formats import MXFP4Weight, NVFP4Weight, Weight
from dsv4chat.kernels.fp8 import TILE
from dsv4chat.kernels.grouping import ROWS, group_, groupable, ungrouped
from dsv4chat.kernels.linear import Stack, product, products
from dsv4chat.kernels.spread import decode_spread, spread_

FORMATS = ("NVFP4", "MXFP4", "FP8", "plain")
SCALED_COLUMNS = {"NVFP4": 16, "MXFP4": 32, "FP8": TILE}


@dataclass(frozen=True)
class Packed:
    """One matrix (rows, columns), or as many of one shape (e, rows, columns), in one format.

    codes and scales have the layouts of `formats`, with the same leading axis; scales is None for "plain".
    row_factor: (rows,) or (e, rows) float32, multiplies the product's rows; None where every factor is 1.
    spread: the bits of NVFP4 codes lie in the order of `spread`. grouped: rows of codes lie in the order of
    `grouping`.
    """

    format: str
    codes: Tensor
    scales: Tensor | None = None
    row_factor: Tensor | None = None
    spread: bool = False
    grouped: bool = False

    @property
    def shape(self) -> torch.Size:
        """(rows, columns) or (e, rows, columns)."""
        shape = self.codes.shape
        return torch.Size((*shape[:-1], 2 * shape[-1])) if self.format in ("NVFP4", "MXFP4") else shape

    @property
    def nbytes(self) -> int:
        """Bytes of codes, scales and factors."""
        return sum(t.nbytes for t in (self.codes, self.scales, self.row_factor) if t is not None)

    def part(self, start: int, stop: int) -> "Packed":
        """Rows start..stop of one matrix, as views; FP8 on tiles' edges only, else as plain values; grouped
        ones on groups' edges only, else of a copy in rows.
        """
        if self.format == "FP8" and start % TILE:
            return _unpacked(self).part(start, stop)
        if self.grouped and (start % ROWS or stop % ROWS):
            return self._in_rows().part(start, stop)
        step = TILE if self.format == "FP8" else 1
        scales = None if self.scales is None else self.scales[start // step : -(-stop // step)]
        factor = None if self.row_factor is None else self.row_factor[start:stop]
        return replace(self, codes=self.codes[start:stop], scales=scales, row_factor=factor)

    def empty(self, count: int) -> "Packed":
        """Room for `count` matrices like this one."""

        def make(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.new_empty((count, *tensor.shape))

        codes = make(self.codes)
        assert codes is not None
        return replace(self, codes=codes, scales=make(self.scales), row_factor=make(self.row_factor))

    def put(self, index: int, one: "Packed") -> None:
        """Write a matrix of the same kind, in the same order, to place `index`."""
        assert (one.format, one.spread, one.grouped) == (self.format, self.spread, self.grouped)
        for place, tensor in (
            (self.codes, one.codes),
            (self.scales, one.scales),
            (self.row_factor, one.row_factor),
        ):
            if place is not None and tensor is not None:
                place[index].copy_(tensor)

    def __getitem__(self, index: Tensor | int) -> "Packed":
        """Those of the matrices that `index` names: a number, or (k,) of them on the device."""

        def pick(tensor: Tensor | None) -> Tensor | None:
            if tensor is None:
                return None
            if isinstance(index, int):
                return tensor[index]
            # index_select knows fewer types than there are formats.
            raw = tensor.view(torch.uint8) if tensor.element_size() == 1 else tensor
            return raw.index_select(0, index).view(tensor.dtype)

        codes = pick(self.codes)
        assert codes is not None
        return replace(self, codes=codes, scales=pick(self.scales), row_factor=pick(self.row_factor))

    def split(self, groups: int) -> "Packed":
        """A matrix of groups * rows rows as (groups, rows, columns)."""
        whole, rows = self, self.codes.shape[0] // groups
        if self.format == "FP8" and rows % TILE:
            whole = _unpacked(self)
        elif self.grouped and rows % ROWS:
            whole = self._in_rows()

        def view(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.view(groups, -1, *tensor.shape[1:])

        codes = view(whole.codes)
        assert codes is not None
        return replace(whole, codes=codes, scales=view(whole.scales), row_factor=view(whole.row_factor))

    def values(self, dtype: torch.dtype) -> Tensor:
        """Codes times scales, without `row_factor`: exact in bfloat16 (FP8 with float32 scales: rounded)."""
        if self.scales is None:
            return self.codes.to(dtype)
        if self.grouped:
            return self._in_rows().values(dtype)
        *lead, columns = self.shape
        if self.format == "FP8":
            factors = e8m0_values(self.scales) if self.scales.dtype == torch.uint8 else self.scales
            rows = factors.repeat_interleave(TILE, -2)[..., : lead[-1], :]
            return self.codes.to(dtype) * rows.repeat_interleave(TILE, -1)[..., :columns].to(dtype)
        decode = decode_spread if self.spread else decode_e2m1
        nibbles = decode(self.codes.flatten(0, -2), dtype)
        scales = e8m0_values(self.scales) if self.format == "MXFP4" else self.scales
        blocks = nibbles.view(*lead, -1, SCALED_COLUMNS[self.format])
        return (blocks * scales.to(dtype)[..., None]).view(*lead, columns)

    def arranged(self, spread: bool) -> "Packed":
        """With codes in the order the kernels want, changed in place: whoever shares them must not go on.

        NVFP4 and FP8 are grouped where that can be. spread: NVFP4 codes come in the order of `spread` too.
        """
        codes = self.codes
        spread = spread and self.format == "NVFP4" and not self.spread
        group = self.format in ("NVFP4", "FP8") and not self.grouped and groupable(codes)
        if spread:
            codes = spread_(codes)
        if group:
            codes = group_(codes)
        return replace(self, codes=codes, spread=self.spread or spread, grouped=self.grouped or group)

    def _in_rows(self) -> "Packed":
        return replace(self, codes=ungrouped(self.codes), grouped=False)

    def dense(self, dtype: torch.dtype) -> Tensor:
        """All factors multiplied in, rounded once to `dtype`."""
        if self.row_factor is None:
            return self.values(dtype)
        return (self.values(torch.float32) * self.row_factor[..., None]).to(dtype)

    def multiply(self, x: Tensor) -> Tensor:
        """x (n, columns) float32 or bfloat16 -> x W^T (n, rows) float32, sums in float32."""
        result = product(x, self.values(x.dtype))
        return result if self.row_factor is None else result * self.row_factor

    def multiply_each(self, x: Tensor) -> Tensor:
        """The e matrices with a row each, x (e, columns), or all with one (1, columns): (e, rows) float32."""
        values = self.values(x.dtype)
        result = products(x.expand(values.shape[0], -1), values)
        return result if self.row_factor is None else result * self.row_factor


Matrix = Tensor | Packed


def dense(matrix: Matrix, dtype: torch.dtype) -> Tensor:
    """The values of a matrix as a plain tensor of `dtype`."""
    return matrix.to(dtype) if isinstance(matrix, Tensor) else matrix.dense(dtype)


def pack(weights: Sequence[Weight]) -> list[Packed]:
    """Matrices with the same columns, one below the other: one `Packed` for each run of one format.

    FP8 tiles of 128 rows that would not fall on a tile's edge become bfloat16 (float32 where the scales are).
    """
    forms = [_parts(weight) for weight in weights]
    if any(form.format == "FP8" and form.shape[0] % TILE for form in forms[:-1]):
        forms = [_unpacked(form) if form.format == "FP8" else form for form in forms]
    runs: list[list[Packed]] = []
    for form in forms:
        last = runs[-1][-1] if runs else None
        if last is not None and last.format == form.format and last.codes.dtype == form.codes.dtype:
            runs[-1].append(form)
        else:
            runs.append([form])
    return [_joined(run) for run in runs]


def _parts(weight: Weight) -> Packed:
    if isinstance(weight, Tensor):
        return Packed("plain", weight)
    if isinstance(weight, NVFP4Weight):
        factor = weight.scale_2.expand(weight.shape[0])
        return Packed("NVFP4", weight.codes, weight.scales, factor)
    return Packed("MXFP4" if isinstance(weight, MXFP4Weight) else "FP8", weight.codes, weight.scales)


def _unpacked(form: Packed) -> Packed:
    assert form.scales is not None
    return Packed("plain", form.values(torch.bfloat16 if form.scales.dtype == torch.uint8 else torch.float32))


def _joined(run: Sequence[Packed]) -> Packed:
    """One below the other; always in memory of its own."""

    def join(tensors: Sequence[Tensor | None]) -> Tensor | None:
        present = [tensor for tensor in tensors if tensor is not None]
        if not present:
            return None
        # cat knows fewer types than there are formats.
        raw = [t.view(torch.uint8) if t.element_size() == 1 else t for t in present]
        return torch.cat(raw).view(present[0].dtype)

    codes = join([form.codes for form in run])
    assert codes is not None
    scales = join([form.scales for form in run])
    return Packed(run[0].format, codes, scales, join([form.row_factor for form in run]))


def as_packed(matrix: Matrix) -> Packed:
    """Any matrix, a plain tensor as one that is packed "plain"."""
    return Packed("plain", matrix) if isinstance(matrix, Tensor) else matrix


class PackedStack:
    """Row-stacked matrices in any formats, used as `linear.Stacked` is.

    dtype: of what is multiplied; out: of the results.
    """

    def __init__(
        self, parts: Sequence[Packed], sizes: Sequence[int], dtype: torch.dtype, out: torch.dtype
    ) -> None:
        self.parts = list(parts)
        self.sizes = list(sizes)
        self.dtype = dtype
        self.out = out

    def __call__(self, x: Tensor) -> list[Tensor]:
        """x (n, in) -> one (n, size) view for each matrix, of the type `out`."""
        return [part.to(self.out) for part in self.multiply(x)]

    def multiply(self, x: Tensor) -> list[Tensor]:
        """x (n, in) -> one (n, size) float32 view for each matrix."""
        x = x.to(self.dtype)
        results = [part.multiply(x) for part in self.parts]
        return list(torch.split(results[0] if len(results) == 1 else torch.cat(results, 1), self.sizes, 1))

    def select(self, first: int, last: int) -> Packed:
        """The matrices first..last (excluded), one below the other; of several formats as plain values."""
        start, stop = sum(self.sizes[:first]), sum(self.sizes[:last])
        above = 0
        for part in self.parts:
            if above <= start and stop <= above + part.shape[0]:
                return part.part(start - above, stop - above)
            above += part.shape[0]
        return Packed("plain", self.weight[start:stop].clone())

    @property
    def weight(self) -> Tensor:
        """The values of all matrices, (sum of sizes, in), made on the fly."""
        return torch.cat([part.dense(self.dtype) for part in self.parts])

    @property
    def nbytes(self) -> int:
        """Bytes of all parts."""
        return sum(part.nbytes for part in self.parts)


def as_packed_stack(stack: Stack) -> PackedStack:
    """Any stack; of a plain one the same memory."""
    if isinstance(stack, PackedStack):
        return stack
    weight = stack.weight
    return PackedStack([Packed("plain", weight)], stack.sizes, weight.dtype, weight.dtype)
