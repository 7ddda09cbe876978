"""Weights as the decode step reads them: on the device in their stored formats, those with one input stacked.

Each tensor is copied to its place in the stack before the next one is read; nothing is held twice but the
matrix on its way. MXFP4 becomes NVFP4 where that loses nothing; where there are kernels, codes are put in
the order they want (`Packed.arranged`). Plain matrices that have to be precise (compressors, router, head)
keep their stored type: bfloat16 values times a bfloat16 input, summed in float32, are what float32 arithmetic
makes of them.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from dsv4chat.kernels.cute.machine import architecture_of, wants_spread
from dsv4chat.kernels.formats import MXFP4Weight, NVFP4Weight, Weight, format_name
from dsv4chat.kernels.linear import Stack
from dsv4chat.kernels.packed import Matrix, Packed, PackedStack, pack
from dsv4chat.runtime.errors import CheckpointError
from dsv4chat.runtime.loading import Loader

HELD = (torch.bfloat16, torch.float32)


class PackedLoader(Loader):
    """A loader that leaves quantised matrices as they are stored."""

    packed = True

    def matrix(self, name: str) -> Matrix:
        (packed,) = pack([self._kernel_format(self._weight(name))])
        return self._arranged(packed)

    def head(self, name: str) -> Stack:
        return self._stack([self._weight(name, precise=True)], torch.float32)

    def stacked(self, names: Sequence[str], rows: Sequence[int], columns: int, dtype: torch.dtype) -> Stack:
        return self._stack([self._weight(name) for name in names], dtype)

    def stacks(
        self, plain: Sequence[tuple[str, int]], precise: Sequence[tuple[str, int]], columns: int
    ) -> list[Stack]:
        stacks: list[Stack] = [self._stack([self._weight(name) for name, _ in plain], self.dtype)]
        if precise:
            weights = [self._weight(name, precise=True) for name, _ in precise]
            stacks.append(self._stack(weights, torch.float32))
        return stacks

    def experts(self, prefix: str) -> tuple[Matrix, Matrix]:
        before = self.bytes_done, self.tensors_done, self.parameters
        packed = self._experts(prefix, self._kernel_format)
        if packed is None:  # one of them does not fit into NVFP4: all stay as they are
            self.bytes_done, self.tensors_done, self.parameters = before
            packed = self._experts(prefix, lambda weight: weight)
        assert packed is not None
        gate_up, down = packed
        return self._arranged(gate_up), self._arranged(down)

    def _experts(self, prefix: str, prepared: Callable[[Weight], Weight]) -> tuple[Packed, Packed] | None:
        """All experts' matrices as `prepared`; None if that is MXFP4 for one and NVFP4 for another."""
        gate_up = down = None
        seen: set[str] = set()
        count = self.config.num_experts
        for expert in range(count):
            parts = [self._weight(f"{prefix}.experts.{expert}.w{i}.weight") for i in (1, 2, 3)]
            ready = [prepared(part) for part in parts]
            seen |= {format_name(part) for part in ready}
            if {"MXFP4", "NVFP4"} <= seen:
                return None
            gate_up = _put(gate_up, pack([ready[0], ready[2]]), expert, count)
            down = _put(down, pack([ready[1]]), expert, count)
        assert gate_up is not None
        assert down is not None
        return gate_up, down

    def _kernel_format(self, weight: Weight) -> Weight:
        """MXFP4 as NVFP4, for which there are kernels, where that loses nothing."""
        if not isinstance(weight, MXFP4Weight):
            return weight
        return NVFP4Weight.from_mxfp4(weight) or weight

    def _arranged(self, packed: Packed) -> Packed:
        """Codes in the order the device's kernels want."""
        if self.device.type != "cuda" or architecture_of(self.device) is None:
            return packed
        return packed.arranged(wants_spread(self.device))

    def _weight(self, name: str, precise: bool = False) -> Weight:
        """One weight on the device. A plain one in the model's type, or as it is stored if `precise`."""
        weight = self.source.read(name)
        self.count(weight.nbytes, weight.shape.numel())
        if not isinstance(weight, Tensor):
            return weight.to(self.device)
        stored = weight.dtype if weight.dtype in HELD else torch.float32
        # bfloat16 in memory is exact for a float32 model as well.
        keep = precise or (stored == torch.bfloat16)
        return weight.to(self.device, stored if keep else self.dtype)

    def _stack(self, weights: Sequence[Weight], out: torch.dtype) -> PackedStack:
        parts = [self._arranged(part) for part in pack([self._kernel_format(one) for one in weights])]
        sums = self.dtype
        if any(part.format == "plain" and part.codes.dtype == torch.float32 for part in parts):
            sums = torch.float32
        return PackedStack(parts, [weight.shape[0] for weight in weights], sums, out)


def _put(all_: Packed | None, one: Sequence[Packed], index: int, count: int) -> Packed:
    """One expert's matrix into its place among `count`, which are made when the first one comes."""
    if len(one) != 1 or (all_ is not None and one[0].format != all_.format):
        raise CheckpointError(
            "The experts of one layer are stored in several formats; use a checkpoint that has them in one."
        )
    if all_ is None:
        all_ = one[0].empty(count)
    all_.put(index, one[0])
    return all_
