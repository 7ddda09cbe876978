"""Which operations are used where: PyTorch's without a GPU, and the reason is said."""

import pytest
import torch

from dsv4chat.kernels import step_operations as plain
from dsv4chat.kernels.cute.operations import KernelError, operations
from dsv4chat.kernels.packed import pack

CPU = torch.device("cpu")


def test_a_cpu_gets_pytorchs_operations_without_a_word():
    said = []
    ops = operations("auto", CPU, said.append)
    assert ops.name == "torch"
    assert said == []


def test_asking_for_kernels_on_a_cpu_is_an_error_that_says_so():
    with pytest.raises(KernelError, match="NVIDIA GPUs, not on cpu"):
        operations("cute", CPU)


def test_pytorchs_operations_are_made_from_packed_matrices():
    ops = operations("torch", CPU)
    matrix = torch.randn(24, 16)
    linear = ops.linear(pack([matrix[:20], matrix[20:]]))
    assert isinstance(linear, plain.Linear)
    x = torch.randn(2, 16)
    assert torch.allclose(linear(x), x @ matrix.T, atol=1e-5)
    assert isinstance(ops.router(None, None, 2, 1.0), plain.Router)
    assert ops.pair(pack([matrix]), pack([matrix])) is None
    shared = ops.experts(pack([matrix])[0], pack([matrix])[0], 10.0)
    assert ops.router_and_shared(pack([matrix])[0], shared) is None
    assert not shared.settles
    assert not linear.settles
