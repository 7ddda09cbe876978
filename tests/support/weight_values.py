"""Values of the runtime's quantised weights, computed from their stored parts by definition."""

import torch

from dsv4chat.kernels.formats import FP8Weight, MXFP4Weight, NVFP4Weight
from tests.support import reference_formats as reference


def spread_matrix(rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    """Rows of very different magnitude, with some zeros."""
    generator = torch.Generator().manual_seed(seed)
    matrix = torch.randn(rows, columns, generator=generator)
    matrix *= torch.exp2(torch.randint(-12, 12, (rows, 1), generator=generator).float())
    return matrix * (torch.rand(rows, columns, generator=generator) > 0.1)


def nvfp4_values(weight: NVFP4Weight) -> torch.Tensor:
    """Exact float64 values (out, in)."""
    scales = weight.scales.view(torch.uint8).numpy()
    return torch.from_numpy(reference.decode_nvfp4(weight.codes.numpy(), scales, float(weight.scale_2)))


def mxfp4_values(weight: MXFP4Weight) -> torch.Tensor:
    """Exact float64 values (out, in)."""
    return torch.from_numpy(reference.decode_mxfp4(weight.codes.numpy(), weight.scales.numpy()))


def fp8_values(weight: FP8Weight) -> torch.Tensor:
    """Exact float64 values (out, in), for power-of-two scales."""
    codes = weight.codes.view(torch.uint8).numpy()
    return torch.from_numpy(reference.decode_fp8(codes, reference.E8M0_CODES[weight.scales.numpy()]))
