"""RoPE and YaRN against their formulae in float64."""

import cmath
import math

import pytest
import torch

from dsv4chat.kernels.rope import frequencies, rotate_, rotations


def _yarn(i: int, dim: int, theta: float, factor: float, length: int, fast: float, slow: float) -> float:
    def dimension(rotations: float) -> float:
        return dim * math.log(length / (2 * math.pi * rotations)) / (2 * math.log(theta))

    low, high = max(math.floor(dimension(fast)), 0), min(math.ceil(dimension(slow)), dim - 1)
    ramp = min(max((i - low) / (high - low), 0), 1)
    frequency = theta ** (-2 * i / dim)
    return frequency / factor * ramp + frequency * (1 - ramp)


def test_plain_frequencies_are_powers_of_theta() -> None:
    exact = torch.tensor([10000.0 ** (-2 * i / 64) for i in range(32)], dtype=torch.float64)
    torch.testing.assert_close(frequencies(64, 10000.0).double(), exact, rtol=1e-6, atol=0)


def test_yarn_leaves_fast_pairs_and_divides_slow_ones() -> None:
    settings = {"factor": 16.0, "original_length": 65536, "beta_fast": 32.0, "beta_slow": 1.0}
    freqs = frequencies(64, 160000.0, **settings)
    exact = [_yarn(i, 64, 160000.0, 16.0, 65536, 32.0, 1.0) for i in range(32)]
    torch.testing.assert_close(freqs.double(), torch.tensor(exact, dtype=torch.float64), rtol=1e-6, atol=0)
    plain = frequencies(64, 160000.0)
    # DeepSeek-V4: pairs up to 15 as they are, from 25 on divided by 16.
    assert torch.equal(freqs[:16], plain[:16])
    assert torch.equal(freqs[25:], plain[25:] / 16)
    assert torch.all((freqs[16:25] < plain[16:25]) & (freqs[16:25] > plain[16:25] / 16))


def test_equal_ends_of_the_ramp_do_not_divide_by_zero() -> None:
    freqs = frequencies(4, 10000.0, factor=16.0, original_length=8, beta_fast=32.0, beta_slow=1.0)
    assert torch.isfinite(freqs).all()


@pytest.mark.parametrize("shape", [(7, 24), (7, 3, 24)])
def test_rotation_turns_interleaved_pairs_of_the_last_channels_only(shape: tuple[int, ...]) -> None:
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(1))
    freqs = frequencies(8, 10000.0)
    positions = torch.arange(100, 107)
    turned = rotate_(x.clone(), rotations(positions, freqs))
    assert torch.equal(turned[..., :16], x[..., :16])
    for row in range(7):
        for pair in range(4):
            angle = float(torch.tensor(float(positions[row])) * freqs[pair])
            flat, result = x[row].view(-1, 24)[0], turned[row].view(-1, 24)[0]
            exact = complex(flat[16 + 2 * pair], flat[17 + 2 * pair]) * cmath.exp(1j * angle)
            assert abs(complex(result[16 + 2 * pair], result[17 + 2 * pair]) - exact) < 1e-6


def test_the_conjugate_rotation_undoes_it() -> None:
    x = torch.randn(5, 2, 16, generator=torch.Generator().manual_seed(2))
    table = rotations(torch.arange(1000, 1005), frequencies(8, 160000.0))
    torch.testing.assert_close(rotate_(rotate_(x.clone(), table), table.conj()), x)
