"""Loading machine code and launching kernels through the CUDA driver, with ctypes.

Launches go to PyTorch's current stream and may be captured into a CUDA graph. By default a launch is
programmatic: its blocks may start while the kernel before it drains, and wait inside, before they read what
it wrote (`griddepcontrol.wait`).
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from torch import Tensor

from dsv4chat.kernels.cute.store import Built

_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_CARVEOUT = 9  # CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
_LARGE_CLUSTER = 14  # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
_CLUSTER = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
_PROGRAMMATIC = 6  # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
_DEFAULT_SHARED = 48 * 1024

Address = ctypes.c_uint64
Number = ctypes.c_int32
Real = ctypes.c_float


def address(tensor: Tensor | None) -> Address:
    """Where a tensor begins, as a kernel's argument; 0 for None."""
    return Address(0 if tensor is None else tensor.data_ptr())


class DriverError(RuntimeError):
    """The CUDA driver refused something."""


class _Attribute(ctypes.Structure):
    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", ctypes.c_uint * 16))


class _Config(ctypes.Structure):
    _fields_ = (
        ("grid_x", ctypes.c_uint),
        ("grid_y", ctypes.c_uint),
        ("grid_z", ctypes.c_uint),
        ("block_x", ctypes.c_uint),
        ("block_y", ctypes.c_uint),
        ("block_z", ctypes.c_uint),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", ctypes.c_uint),
    )


@cache
def _cuda() -> Any:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise DriverError("The NVIDIA driver's library libcuda.so.1 is not there.") from error


def _check(status: int, what: str) -> None:
    if status != 0:
        text = ctypes.c_char_p()
        _cuda().cuGetErrorString(status, ctypes.byref(text))
        raise DriverError(f"{what} failed: {(text.value or b'error').decode()} ({status}).")


@dataclass
class Kernel:
    """A loaded kernel."""

    name: str
    function: ctypes.c_void_p
    parameters: tuple[int, ...]
    module: ctypes.c_void_p
    shared: int = _DEFAULT_SHARED

    def launch(
        self,
        grid: tuple[int, int],
        threads: int,
        shared: int,
        stream: int,
        arguments: Sequence[Any],
        programmatic: bool = True,
        cluster: int = 1,
    ) -> None:
        """Run with `shared` bytes of dynamic shared memory. cluster: neighbouring blocks that run together.

        arguments: `Address`, `Number` and `Real` values, in the kernel's order.
        """
        sizes = tuple(ctypes.sizeof(argument) for argument in arguments)
        if sizes != self.parameters:
            raise DriverError(f"{self.name} takes parameters of {self.parameters} bytes, not {sizes}.")
        if shared > self.shared:
            _check(
                _cuda().cuFuncSetAttribute(self.function, _MAX_DYNAMIC_SHARED, shared),
                f"{shared} bytes of shared memory for {self.name}",
            )
            self.shared = shared
        wanted = [_Attribute(_PROGRAMMATIC, b"", (1,))] if programmatic else []
        if cluster > 1:
            wanted.append(_Attribute(_CLUSTER, b"", (cluster, 1, 1)))
        attributes = (_Attribute * 2)(*wanted)
        config = _Config(grid[0], grid[1], 1, threads, 1, 1, shared, stream, attributes, len(wanted))
        pointers = (ctypes.c_void_p * len(arguments))(
            *(ctypes.cast(ctypes.pointer(argument), ctypes.c_void_p) for argument in arguments)
        )
        _check(
            _cuda().cuLaunchKernelEx(ctypes.byref(config), self.function, pointers, None),
            f"The launch of {self.name}",
        )


def load(built: Built) -> Kernel:
    """Load one kernel into the current CUDA context."""
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    _check(_cuda().cuModuleLoadData(ctypes.byref(module), built.cubin), f"Loading {built.name}")
    _check(
        _cuda().cuModuleGetFunction(ctypes.byref(function), module, built.entry.encode()),
        f"Finding {built.entry}",
    )
    _check(_cuda().cuFuncSetAttribute(function, _CARVEOUT, 100), f"The shared memory of {built.name}")
    _check(_cuda().cuFuncSetAttribute(function, _LARGE_CLUSTER, 1), f"The clusters of {built.name}")
    return Kernel(built.name, function, built.parameters, module)
