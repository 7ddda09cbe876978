"""RMSNorm against float64 arithmetic."""

import torch

from dsv4chat.kernels.norms import inverse_rms, rms_norm


def test_norm_equals_float64_arithmetic() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(5, 3, 64, generator=generator) * 30
    weight = torch.randn(64, generator=generator)
    exact = x.double() / (x.double().square().mean(-1, keepdim=True) + 1e-6).sqrt() * weight.double()
    torch.testing.assert_close(rms_norm(x, weight, 1e-6).double(), exact, rtol=1e-6, atol=1e-6)


def test_epsilon_keeps_a_zero_row_zero() -> None:
    assert torch.equal(rms_norm(torch.zeros(2, 8), torch.ones(8), 1e-6), torch.zeros(2, 8))
    torch.testing.assert_close(inverse_rms(torch.zeros(1, 8), 1e-6), torch.tensor([[1e3]]))


def test_sixteen_bit_input_is_normalised_in_float32_and_cast_once() -> None:
    x = torch.tensor([[3000.0, -1.0, 0.5, 200.0]], dtype=torch.bfloat16)
    weight = torch.tensor([1.1, 0.3, 2.0, 0.7])
    exact = x.double() / (x.double().square().mean(-1, keepdim=True) + 1e-6).sqrt() * weight.double()
    assert torch.equal(rms_norm(x, weight, 1e-6), exact.to(torch.bfloat16))
