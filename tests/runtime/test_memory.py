"""Weights that cannot fit are refused before anything is read."""

from collections.abc import Iterator

import pytest
import torch

from dsv4chat.runtime.config import ModelConfig
from dsv4chat.runtime.errors import EngineError
from dsv4chat.runtime.geometries import geometry
from dsv4chat.runtime.gpu.loading import PackedLoader
from dsv4chat.runtime.loading import Loader
from dsv4chat.runtime.memory import memory_of, weights_as_tensors
from dsv4chat.runtime.model import Model

CPU = torch.device("cpu")


class TooLarge:
    """A source with more bytes than any machine has; reading from it fails the test."""

    bytes_total = 10**18

    def __init__(self, config: ModelConfig) -> None:
        self.config = config

    def names(self) -> Iterator[str]:
        raise AssertionError("read before the memory was asked for")

    def read(self, name: str) -> torch.Tensor:
        raise AssertionError("read before the memory was asked for")


def test_stored_weights_beyond_the_memory_are_refused_in_a_sentence() -> None:
    with pytest.raises(
        EngineError, match=r"need 1000000000 GB and this machine has \d+ GB; choose a smaller"
    ):
        Model.load(TooLarge(geometry("demo", 8)), CPU, torch.float32, loader=PackedLoader)


def test_plain_tensors_are_counted_by_their_own_size() -> None:
    config = geometry("pro", 61)
    # V4-Pro has 1.6 trillion parameters, the drafting layer included.
    assert 1.5e12 < weights_as_tensors(config, torch.bfloat16) / 2 < 1.65e12
    there = memory_of(CPU)
    if there is not None and there > 6e12:
        pytest.skip("this machine holds V4-Pro as float32")
    with pytest.raises(EngineError, match="fewer layers"):
        Model.load(TooLarge(config), CPU, torch.float32, loader=Loader)
