"""One weight as it is stored: which tensors of which files, in which format, and how to read it.

The format is told by the types and by what stands beside the matrix, never by a file's name or the config:

    NVFP4   codes u8 (out, in/2)   scale E4M3 (out, in/16) and scale_2 float32 ()
    MXFP4   codes i8 (out, in/2)   scale E8M0 (out, in/32)
    FP8     E4M3 (out, in)         scale E8M0 or float32 (ceil(out/128), ceil(in/128))
    plain   bf16, f16, f32         none
    table   any integers           none

Packed codes come as u8 or i8, E8M0 bytes as F8_E8M0 or u8.
"""

from dataclasses import dataclass
from typing import Literal

import torch

from dsv4chat.kernels.formats import FormatError, FP8Weight, MXFP4Weight, NVFP4Weight, QuantizedWeight, Weight
from dsv4chat.kernels.fp8 import TILE
from dsv4chat.runtime.errors import CheckpointError
from dsv4chat.runtime.shapes import Shape
from dsv4chat.runtime.shards import DTYPES, Entry

Form = Literal["plain", "table", "NVFP4", "MXFP4", "FP8"]

_PLAIN = ("BF16", "F16", "F32", "F64")
_PACKED = ("U8", "I8")
_POWERS = ("F8_E8M0", "U8")


@dataclass
class StoredWeight:
    """Where one weight lies. fused: (expert, first row, last row + 1) in a tensor that holds all experts."""

    value: Entry
    scale: Entry | None = None
    scale_2: Entry | None = None
    fused: tuple[int, int, int] | None = None

    @property
    def entries(self) -> list[Entry]:
        """The stored tensors it consists of."""
        return [entry for entry in (self.value, self.scale, self.scale_2) if entry is not None]

    @property
    def nbytes(self) -> int:
        """Stored bytes, scales included."""
        if self.fused is not None:
            experts, rows = self.value.shape[0], self.value.shape[1]
            return self.value.nbytes // experts * (self.fused[2] - self.fused[1]) // rows
        return sum(entry.nbytes for entry in self.entries)

    def add_scale(self, part: str, entry: Entry) -> None:
        """Put a scale ("scale" or "scale_2") beside the matrix. Raises CheckpointError if it has one."""
        other: Entry | None = getattr(self, part)
        if other is not None:
            raise CheckpointError(
                f"{self.value.name} has two scales, {other.name} and {entry.name}; remove the wrong one."
            )
        setattr(self, part, entry)

    def form(self) -> Form:
        """The format. Raises CheckpointError if it is none of the known ones."""
        value, scale = self.value.dtype, self.scale
        if scale is None and self.scale_2 is None:
            if value in _PLAIN:
                return "plain"
            if self.value.name.endswith("tid2eid") and value in DTYPES and value.startswith(("I", "U")):
                return "table"
        elif scale is not None and len(scale.shape) == 2:
            if self.scale_2 is not None and value in _PACKED and scale.dtype == "F8_E4M3":
                return "NVFP4"
            if self.scale_2 is None and value in _PACKED and scale.dtype in _POWERS:
                return "MXFP4"
            if self.scale_2 is None and value == "F8_E4M3" and scale.dtype in (*_POWERS, "F32", "BF16"):
                return "FP8"
        beside = [f"{entry.name} ({entry.dtype} {list(entry.shape)})" for entry in self.entries[1:]]
        raise CheckpointError(
            f"{self.value.name} in {self.value.shard.path.name} is stored as {value} with "
            f"{' and '.join(beside) or 'no scale'}, a quantisation this runtime does not know; "
            "use a checkpoint in NVFP4, MXFP4, FP8 (128 x 128 tiles), bf16, f16 or f32."
        )

    def check(self, shape: Shape) -> None:
        """Compare with the (out, in) or other shape the configuration asks for. Raises CheckpointError."""
        form = self.form()
        table = self.value.name.endswith("tid2eid")
        if table != (form == "table"):
            raise CheckpointError(
                f"{self.value.name} holds {self.value.dtype}, but a table of integers is needed."
            )
        if self.fused is None:
            packed = form in ("NVFP4", "MXFP4")
            _check_shape(self.value, (*shape[:-1], shape[-1] // 2) if packed else shape)
        if self.scale is not None:
            across = {"NVFP4": 16, "MXFP4": 32, "FP8": TILE}[form]
            down = TILE if form == "FP8" else 1
            _check_shape(self.scale, (-(-shape[0] // down), -(-shape[1] // across)))
        if self.scale_2 is not None and (self.scale_2.dtype != "F32" or self.scale_2.shape != (1,)):
            _check_shape(self.scale_2, ())

    def read(self) -> Weight:
        """The weight; plain tensors and the parts of quantised ones are views of the mapped file."""
        value = self.value.tensor()
        if self.fused is not None:
            expert, start, stop = self.fused
            value = value[expert, start:stop]
        form = self.form()
        if form == "table":
            return value.to(torch.int64)
        if self.scale is None:
            return value
        try:
            return self._quantised(form, value, self.scale.tensor())
        except FormatError as error:
            raise CheckpointError(f"{self.value.name} in {self.value.shard.path.name}: {error}") from error

    def _quantised(self, form: Form, value: torch.Tensor, scale: torch.Tensor) -> QuantizedWeight:
        if self.scale_2 is not None:
            return NVFP4Weight(value.view(torch.uint8), scale, self.scale_2.tensor().view(()))
        if form == "MXFP4":
            return MXFP4Weight(value.view(torch.uint8), scale.view(torch.uint8))
        return FP8Weight(value, scale.view(torch.uint8) if scale.element_size() == 1 else scale.float())


def _check_shape(entry: Entry, wanted: Shape) -> None:
    if entry.shape != wanted:
        raise CheckpointError(
            f"{entry.name} in {entry.shard.path.name} has the shape {list(entry.shape)}, but config.json "
            f"asks for {list(wanted)}; use the config.json that belongs to the weights."
        )
