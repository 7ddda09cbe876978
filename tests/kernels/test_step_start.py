"""The beginning of a decode step: PyTorch's version, and the kernel against float64 where there is a GPU."""

import pytest
import torch

from dsv4chat.kernels.cute.operations import operations
from dsv4chat.kernels.rope import frequencies
from dsv4chat.kernels.step_start import Start, StartWeights

POSITIONS = (0, 1, 3, 4, 127, 128, 4095, 65537, 999_999, 1_048_575)


def weights(device: torch.device) -> StartWeights:
    table = torch.randn(50, 256, device=device).bfloat16()
    plain = frequencies(64, 10000.0, device=device)
    compressed = frequencies(64, 160000.0, factor=16, original_length=65536, device=device)
    return StartWeights(table, plain, compressed, 4, (4, 128))


def check(start: object, given: StartWeights, error: float) -> None:
    device = given.embedding.device
    for position in POSITIONS:
        token = position % 50
        begun = start(torch.tensor([token], device=device), torch.tensor([position], device=device))
        assert torch.equal(begun.streams, given.embedding[token].expand(1, 4, -1))
        tables = [(begun.plain, given.plain, position), (begun.compressed, given.compressed, position)]
        assert list(begun.blocks) == [4, 128]
        tables += [(begun.blocks[r], given.compressed, position // r * r) for r in (4, 128)]
        for table, frequency, place in tables:
            # The angle is a float32 product by definition; its sine and cosine are not.
            angle = (torch.tensor(float(place), device=device) * frequency).double()
            exact = torch.polar(torch.ones_like(angle), angle)
            assert table.shape == (1, 32)
            assert float((table[0] - exact).abs().max()) < error


def test_the_rotations_are_those_of_the_position_and_its_blocks() -> None:
    given = weights(torch.device("cpu"))
    check(Start(given), given, 2e-7)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_kernel_begins_a_step_as_pytorch_does() -> None:
    given = weights(torch.device("cuda"))
    start = operations("cute", torch.device("cuda")).start(given)
    assert type(start) is not Start
    check(start, given, 2e-6)
