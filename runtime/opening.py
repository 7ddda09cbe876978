"""From a model's name to its weights on a device: "demo", a folder, or "random:flash" and the like.

On CUDA the weights stay in their stored formats and the model gets a decode step of its own; elsewhere they
become plain tensors.
"""

import os
from collections.abc import Callable
from pathlib import Path

import torch

from dsv4chat.assets import demo_path
from dsv4chat.kernels.cute.operations import Choice, KernelError, Operations, operations
from dsv4chat.runtime.checkpoint import Checkpoint
from dsv4chat.runtime.errors import EngineError
from dsv4chat.runtime.gpu.loading import PackedLoader
from dsv4chat.runtime.gpu.step import DecodeStep
from dsv4chat.runtime.loading import Loader, WeightSource
from dsv4chat.runtime.model import Model
from dsv4chat.runtime.random_weights import PREFIX, random_source

KERNELS = ("auto", "torch", "cute")


def source_of(
    name: str | Path, device: torch.device, layers: int | None = None, mix: str | None = None
) -> tuple[WeightSource, Path]:
    """Where the weights come from, and the model's folder ("random:..." is in none).

    layers, mix: for random weights alone, see `random_weights`. Raises ConfigError, CheckpointError, or
    EngineError for values that do not fit.
    """
    if str(name).startswith(PREFIX):
        return random_source(str(name), device, layers, mix), Path(str(name))
    if layers is not None or mix is not None:
        raise EngineError("Layers and mix can be chosen for random weights only, like random:flash.")
    # Unlike Path's, this leaves the home of nobody as it is: a folder that is not there, which is told below.
    folder = demo_path() if str(name) == "demo" else Path(os.path.expanduser(name))
    return Checkpoint.open(folder), folder


def load_model(
    source: WeightSource,
    device: torch.device,
    dtype: torch.dtype,
    progress: Callable[[int, int, int, int], None] | None = None,
    kernels: str = "auto",
    say: Callable[[str], None] | None = None,
) -> Model:
    """The weights on the device, and on CUDA a decode step over `kernels`: auto | torch | cute.

    say: hears what becomes of the kernels. Raises EngineError where kernels are asked for and cannot be had.
    """
    on_cuda = device.type == "cuda"
    chosen = step_operations(kernels, device, dtype, say)  # before the weights: building may fail
    model = Model.load(source, device, dtype, progress, PackedLoader if on_cuda else Loader)
    if on_cuda:
        model.decode_step = DecodeStep(model, chosen)
    return model


def step_operations(
    kernels: str, device: torch.device, dtype: torch.dtype, say: Callable[[str], None] | None = None
) -> Operations:
    """The operations of the decode step. auto: the kernels for bfloat16 on CUDA, where they can be had."""
    if kernels not in KERNELS:
        raise EngineError(f"kernels is {kernels!r}; it must be auto, torch or cute.")
    choice: Choice = "cute" if kernels == "cute" else "auto"
    if kernels == "torch" or (kernels == "auto" and (device.type != "cuda" or dtype != torch.bfloat16)):
        choice = "torch"
    try:
        return operations(choice, device, say)
    except KernelError as error:
        raise EngineError(str(error)) from error
