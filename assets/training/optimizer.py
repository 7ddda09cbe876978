"""Muon for matrices, AdamW for the rest, both with f32 masters of weights that run in 16 bits.

Muon: momentum (Nesterov), orthogonalised by five Newton-Schulz steps, scaled by 0.2 * sqrt(max(rows,
columns)) so that an entry moves about as far as AdamW would move it. Matrices of one shape are updated as
one batch. After a step the model's weights are the rounded masters: 16 bits, or, towards the end, what
NVFP4 makes of them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dsv4chat.assets.training.model import TrainableModel
from dsv4chat.assets.training.parameters import FOUR_BIT, ORTHOGONAL
from dsv4chat.assets.training.rounding import nvfp4

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def orthogonalise(gradient: Tensor, steps: int = 5) -> Tensor:
    """Nearly orthogonal matrices (n, rows, columns), rows <= columns, from any; bf16 on a GPU."""
    a, b, c = _COEFFICIENTS
    x = gradient.bfloat16() if gradient.is_cuda else gradient
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        square = x @ x.transpose(-2, -1)
        x = a * x + (b * square + c * (square @ square)) @ x
    return x.float()


@dataclass
class _Matrix:
    """One parameter as a batch of matrices in its group: rows [first, first + count)."""

    parameter: nn.Parameter
    groups: int  # rows split into this many separate matrices (o_groups for wo_a), else 1
    turned: bool  # stored with more rows than columns: handled transposed
    first: int = 0
    count: int = 0

    def matrices(self, tensor: Tensor) -> Tensor:
        """(n, rows, columns) view of a tensor of the parameter's shape, rows <= columns."""
        shape = tensor.shape
        flat = tensor.reshape(-1, shape[-2] // self.groups, shape[-1])
        return flat.transpose(1, 2) if self.turned else flat

    def restore(self, matrices: Tensor) -> Tensor:
        """The inverse of `matrices`."""
        flat = matrices.transpose(1, 2) if self.turned else matrices
        return flat.reshape(self.parameter.shape)


class _Group:
    """All matrices of one shape: masters and momentum (n, rows, columns) f32."""

    def __init__(self, members: list[_Matrix]) -> None:
        self.members = members
        parts = [member.matrices(member.parameter.detach()).float() for member in members]
        first = 0
        for member, part in zip(members, parts, strict=True):
            member.first, member.count = first, part.shape[0]
            first += part.shape[0]
        self.master = torch.cat(parts).contiguous()
        self.momentum = torch.zeros_like(self.master)

    def step(self, rate: Tensor, momentum: float, decay: float) -> None:
        gradient = torch.cat([m.matrices(m.parameter.grad).float() for m in self.members])
        self.momentum.lerp_(gradient, 1 - momentum)
        update = orthogonalise(gradient.lerp_(self.momentum, momentum))
        scale = 0.2 * max(self.master.shape[1:]) ** 0.5
        self.master.mul_(1 - rate * decay).sub_(update * (rate * scale))

    def values(self, member: _Matrix) -> Tensor:
        """The member's master in the parameter's shape, f32."""
        return member.restore(self.master[member.first : member.first + member.count])


class Optimizer:
    """The training step's second half. Learning rates are given a step at a time, see `Schedule`."""

    def __init__(
        self,
        model: TrainableModel,
        *,
        momentum: float = 0.95,
        decay: float = 0.1,
        compile_with: Callable[[Callable], Callable] | None = None,
    ) -> None:
        self.momentum, self.decay = momentum, decay
        self._nvfp4 = (compile_with or (lambda function: function))(nvfp4)
        shapes: dict[tuple[int, ...], list[_Matrix]] = {}
        self._four_bit: dict[str, list[_Matrix]] = {name: [] for name in FOUR_BIT}
        others: list[nn.Parameter] = list(model.outer.values())
        for layer in model.layers:
            for name, parameter in layer.items():
                if name not in ORTHOGONAL:
                    others.append(parameter)
                    continue
                groups = model.config.o_groups if name == "wo_a" else 1
                matrix = _Matrix(parameter, groups, parameter.shape[-2] // groups > parameter.shape[-1])
                shapes.setdefault(tuple(matrix.matrices(parameter).shape[1:]), []).append(matrix)
                if name in FOUR_BIT:
                    self._four_bit[name].append(matrix)
        self.groups = [_Group(members) for members in shapes.values()]
        self._group_of = {id(member): group for group in self.groups for member in group.members}
        self._names = {
            id(parameter): f"{i}.{name}"
            for i, layer in enumerate(model.layers)
            for name, parameter in layer.items()
        }
        self._others = others
        self._masters = [p if p.dtype == torch.float32 else p.detach().float() for p in others]
        on_gpu = self._masters[0].is_cuda
        self._rate = torch.zeros((), device=self._masters[0].device)
        self._adam = torch.optim.AdamW(
            self._masters,
            lr=self._rate,
            betas=(0.9, 0.95),
            weight_decay=0.0,
            foreach=False,
            fused=on_gpu,
            capturable=on_gpu,
        )

    @torch.no_grad()
    def step(self, matrix_rate: Tensor, other_rate: Tensor, *, four_bit: bool) -> None:
        """Update the masters from the gradients, clear these, and write the model's weights.

        The rates are scalars on the model's device, so that a recorded step can be replayed with others.
        """
        for group in self.groups:
            group.step(matrix_rate, self.momentum, self.decay)
        for parameter, master in zip(self._others, self._masters, strict=True):
            if master is not parameter:
                master.grad = parameter.grad.float()
        self._rate.copy_(other_rate)
        self._adam.step()
        for group in self.groups:
            for member in group.members:
                member.parameter.grad = None
        for parameter in self._others:
            parameter.grad = None
        self.write(four_bit=four_bit)

    @torch.no_grad()
    def write(self, *, four_bit: bool) -> None:
        """Set the model's weights from the masters, rounded to NVFP4 where the checkpoint is, if
        `four_bit`.
        """
        rounded = set()
        if four_bit:
            for members in self._four_bit.values():
                values = torch.stack([self._group_of[id(m)].values(m) for m in members]) if members else ()
                for member, value in zip(members, self._nvfp4(values) if members else (), strict=True):
                    member.parameter.copy_(value)
                    rounded.add(id(member))
        for group in self.groups:
            for member in group.members:
                if id(member) not in rounded:
                    member.parameter.copy_(group.values(member))
        for parameter, master in zip(self._others, self._masters, strict=True):
            if master is not parameter:
                parameter.copy_(master)

    def trained(self) -> list[Tensor]:
        """What AdamW updates: f32 parameters and the f32 masters of 16-bit ones."""
        return self._masters

    @torch.no_grad()
    def masters(self) -> dict[str, Tensor]:
        """f32 values of every matrix Muon trains, keyed "layer.name", in the parameters' shapes."""
        return {
            self._names[id(member.parameter)]: group.values(member).clone()
            for group in self.groups
            for member in group.members
        }


@torch.no_grad()
def balance(bias: Tensor, load: Tensor, speed: Tensor, *, hash_layers: int) -> None:
    """Nudge the router's bias (layers, E) by `speed` (a scalar) towards equal load (layers, E); hash layers
    have none.
    """
    direction = torch.sign(load.mean(1, keepdim=True) - load)
    bias[hash_layers:] += speed * direction[hash_layers:]
