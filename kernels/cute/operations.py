"""Choosing between the PyTorch operations and the CuTe DSL kernels."""

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor

from dsv4chat.kernels import step_index, step_rows, step_start
from dsv4chat.kernels import step_operations as plain
from dsv4chat.kernels.cute import (
    attending,
    builder,
    connection,
    experts,
    indexing,
    pairs,
    products,
    routing,
    rows,
    sampling,
    starting,
    store,
)
from dsv4chat.kernels.cute.arrange import matrix
from dsv4chat.kernels.cute.driver import DriverError
from dsv4chat.kernels.cute.machine import Machine, architecture_of
from dsv4chat.kernels.kv_rows import Rows
from dsv4chat.kernels.packed import Packed

Choice = Literal["torch", "cute", "auto"]
Say = Callable[[str], None]

Linear = plain.Linear | products.Linear
Grouped = plain.Grouped | products.Grouped
Experts = plain.Experts | experts.Experts
Connection = plain.Connection | connection.Connection
Router = plain.Router | routing.Router
Attention = plain.Attention | attending.Attention
Index = step_index.Index | indexing.Index
Start = step_start.Start | starting.Start
CacheRows = step_rows.CacheRows | rows.CacheRows


class KernelError(RuntimeError):
    """The kernels cannot be used here; the message says why and what to do."""


class Operations:
    """Makes the operations of a decode step.

    machine: None for PyTorch's.
    An operation whose weights no kernel takes (MXFP4, float32, odd columns) is PyTorch's all the same.
    """

    def __init__(self, machine: Machine | None) -> None:
        self.machine = machine

    @property
    def name(self) -> str:
        """ "torch" or "cute"."""
        return "torch" if self.machine is None else "cute"

    def start(self, weights: step_start.StartWeights) -> Start:
        """The embedding and the rotations. See `step_start.Start`."""
        if self.machine is None or not starting.fits(weights):
            return step_start.Start(weights)
        return starting.Start(self.machine, weights)

    def linear(self, parts: Sequence[Packed]) -> Linear:
        """Matrices with the same input, one below the other. See `step_operations.Linear`."""
        ready = [matrix(part, self.machine.spread) for part in parts] if self.machine is not None else []
        fitting = [one for one in ready if one is not None]
        if self.machine is None or len(fitting) < len(parts):
            return plain.Linear(parts)
        return products.Linear(self.machine, fitting)

    def pair(self, first: Sequence[Packed], other: Sequence[Packed]) -> pairs.Pair | None:
        """Two stacks with the same input in one launch; None where each has to be a `linear` of its own."""
        if self.machine is None or len(first) != 1 or len(other) != 1:
            return None
        one, two = (matrix(part, self.machine.spread) for part in (first[0], other[0]))
        if one is None or two is None or not pairs.Pair.fits(one, two):
            return None
        return pairs.Pair(self.machine, one, two)

    def router_and_shared(self, router: Packed, shared: Experts) -> pairs.RouterAndShared | None:
        """Logits and the shared expert's hidden layer in one launch; None where that cannot be."""
        if self.machine is None or not isinstance(shared, experts.Experts):
            return None
        ready = matrix(router)
        if ready is None or not pairs.RouterAndShared.fits(ready, shared.gate_up):
            return None
        return pairs.RouterAndShared(self.machine, ready, shared)

    def choice_and_shared(self, choice: Router, shared: Experts) -> pairs.ChoiceAndShared | None:
        """The choice and the shared expert's result in one launch; None where that cannot be."""
        if not isinstance(choice, routing.Router) or not isinstance(shared, experts.Experts):
            return None
        if self.machine is None or not pairs.ChoiceAndShared.fits(shared.down):
            return None
        return pairs.ChoiceAndShared(self.machine, choice, shared)

    def grouped(self, packed: Packed) -> Grouped:
        """A block-diagonal matrix (groups, rows, columns). See `step_operations.Grouped`."""
        ready = matrix(packed, self.machine.spread) if self.machine is not None else None
        if self.machine is None or ready is None:
            return plain.Grouped(packed)
        return products.Grouped(self.machine, ready)

    def experts(self, gate_up: Packed, down: Packed, limit: float) -> Experts:
        """Routed experts, or a shared one. See `step_operations.Experts`."""
        if self.machine is None:
            return plain.Experts(gate_up, down, limit)
        first, second = (matrix(part, self.machine.spread) for part in (gate_up, down))
        if first is None or second is None or not experts.one_factor_each(second):
            return plain.Experts(gate_up, down, limit)
        return experts.Experts(self.machine, first, second, limit)

    def connection(self, weights: plain.ConnectionWeights) -> Connection:
        """What lies between two sublayers. See `step_operations.Connection`."""
        if self.machine is None or not connection.fits(weights):
            return plain.Connection(weights)
        return connection.Connection(self.machine, weights)

    def router(self, bias: Tensor | None, table: Tensor | None, picks: int, scaling: float) -> Router:
        """Who goes to which expert. See `step_operations.Router`."""
        if self.machine is None or picks > routing.MOST_PICKS:
            return plain.Router(bias, table, picks, scaling)
        return routing.Router(self.machine, bias, table, picks, scaling)

    def attention(self, sizes: plain.AttentionSizes, format: Rows) -> Attention:
        """One token's attention. See `step_operations.Attention`."""
        if self.machine is None or not attending.fits(sizes, format):
            return plain.Attention(sizes, format)
        return attending.Attention(self.machine, sizes)

    def cache_rows(self, weights: step_rows.RowWeights, format: Rows, key_format: Rows) -> CacheRows:
        """What a token leaves in the cache. See `step_rows.CacheRows`."""
        if self.machine is None or not rows.fits(weights, format, key_format):
            return step_rows.CacheRows(weights, format, key_format)
        return rows.CacheRows(self.machine, weights)

    def index(self, sizes: step_index.IndexSizes, format: Rows) -> Index:
        """Which blocks a token attends to. See `step_index.Index`."""
        if self.machine is None or not indexing.fits(sizes, format):
            return step_index.Index(sizes, format)
        return indexing.Index(self.machine, sizes)

    def sampling(self, vocab: int) -> sampling.Sampling | None:
        """The end of a step; None where PyTorch has to do it."""
        if self.machine is None or not sampling.Sampling.fits(vocab):
            return None
        return sampling.Sampling(self.machine)


def operations(
    choice: Choice,
    device: torch.device,
    say: Say | None = None,
    *,
    programmatic: bool = True,
) -> Operations:
    """The operations to use on a device.

    "torch": PyTorch's. "cute": all kernels, built now if need be; raises KernelError where that cannot be.
    "auto": the kernels where they can be had, else PyTorch's, and `say` is told why.
    """
    if choice == "torch":
        return Operations(None)
    try:
        return Operations(_machine(device, say, programmatic))
    except (KernelError, builder.BuildError, DriverError) as error:
        if choice == "cute":
            raise KernelError(str(error)) from error
        if say is not None and device.type == "cuda":
            say(f"Using PyTorch's operations instead of the kernels. {error}")
        return Operations(None)


def here() -> str | None:
    """The architecture of the GPU here; None without one, or when there are no kernels for it."""
    return architecture_of(torch.device("cuda", 0)) if torch.cuda.is_available() else None


def _machine(device: torch.device, say: Say | None, programmatic: bool) -> Machine:
    if device.type != "cuda":
        raise KernelError(f"The kernels run on NVIDIA GPUs, not on {device.type}.")
    architecture = architecture_of(device)
    if architecture is None:
        major, minor = torch.cuda.get_device_capability(device)
        raise KernelError(f"There are no kernels for compute capability {major}.{minor}.")
    build = store.find(architecture)
    if build is None:
        if say is not None and builder.dsl_version() is not None:
            say(f"Building the kernels for {architecture}, once.")

        def progress(done: int, total: int, name: str) -> None:
            if say is not None:
                say(f"Kernel {done} of {total}: {name}")

        build = builder.build(architecture, progress)
    machine = Machine(device, build, programmatic)
    machine.load_all()
    return machine
