"""Quantising weights: every midpoint, extreme values, and the definition in exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from dsv4chat.kernels.formats import FormatError, FP8Weight, MXFP4Weight, NVFP4Weight
from tests.support import reference_formats as reference
from tests.support.weight_values import mxfp4_values, nvfp4_values, spread_matrix

MIDPOINTS = {0.25: 0.0, 0.75: 1.0, 1.25: 1.0, 1.75: 2.0, 2.5: 2.0, 3.5: 4.0, 5.0: 4.0}
E2M1 = [Fraction(value) for value in (0, 0.5, 1, 1.5, 2, 3, 4, 6)]


# ---- rounding to 4 bits ------------------------------------------------------------------------------


def rounded(values: list[float], scale_2: float) -> list[float]:
    """`values` in units of block scale x scale_2, rounded by NVFP4 beside a 6 that fixes the scale at 448."""
    step = float(np.float32(scale_2)) * 448
    row = torch.zeros(1, 16, dtype=torch.float64)
    row[0, 0] = 6 * step
    row[0, 1 : 1 + len(values)] = torch.tensor(values, dtype=torch.float64) * step
    weight = NVFP4Weight.quantize(row, scale_2=scale_2)
    assert weight.scales.float().item() == 448
    return (nvfp4_values(weight)[0, 1 : 1 + len(values)] / step).tolist()


@pytest.mark.parametrize("scale_2", [1.0, 0.125, 1.2345678e-5, 7e-3])
def test_midpoints_go_to_the_even_code(scale_2: float) -> None:
    assert rounded(list(MIDPOINTS), scale_2) == list(MIDPOINTS.values())
    assert rounded([-point for point in MIDPOINTS], scale_2) == [-value for value in MIDPOINTS.values()]


@pytest.mark.parametrize("scale_2", [1.0, 0.125, 1.2345678e-5, 7e-3])
def test_values_next_to_a_midpoint_go_to_their_own_side(scale_2: float) -> None:
    for point in MIDPOINTS:
        below = max(float(value) for value in E2M1 if value < point)
        above = min(float(value) for value in E2M1 if value > point)
        near = [point * (1 - 2**-40), point * (1 + 2**-40)]
        assert rounded(near, scale_2) == [below, above]


def test_values_a_double_rounding_misplaces_are_placed_right() -> None:
    # Rounding to three significant bits first would put these on the far side of a midpoint.
    values = [2.5625, 2.7, 3.5, 3.6, 3.74, 5.1, 5.0625, 5.25, 2.45, 3.4, 4.9]
    assert rounded(values, 1.0) == [3.0, 3.0, 4.0, 4.0, 4.0, 6.0, 6.0, 6.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("seed", range(3))
def test_nvfp4_codes_are_the_nearest_for_their_scales(seed: int, dtype: torch.dtype) -> None:
    matrix = spread_matrix(20, 96, seed).to(dtype)
    weight = NVFP4Weight.quantize(matrix)
    steps = reference.E4M3_CODES[weight.scales.view(torch.uint8).numpy()] * float(weight.scale_2)
    blocks = matrix.double().numpy().reshape(20, 6, 16)
    for row, block, column in np.ndindex(20, 6, 16):
        code = int(weight.codes[row, (block * 16 + column) // 2]) >> 4 * (column % 2) & 15
        if steps[row, block] == 0:
            assert code & 7 == 0
            continue
        exact = abs(Fraction(blocks[row, block, column])) / Fraction(steps[row, block])
        distances = [abs(exact - value) for value in E2M1]
        nearest = [index for index in range(8) if distances[index] == min(distances)]
        assert code & 7 == next((index for index in nearest if index % 2 == 0), nearest[0])
        assert code >> 3 == (1 if np.signbit(blocks[row, block, column]) else 0)


def test_nvfp4_block_scales_are_the_nearest_e4m3() -> None:
    matrix = spread_matrix(64, 96, seed=5)
    weight = NVFP4Weight.quantize(matrix)
    assert weight.scale_2.item() == np.float32(float(matrix.abs().max()) / (6 * 448))
    largest = matrix.view(64, 6, 16).abs().amax(dim=-1).double() / 6 / weight.scale_2.double()
    wanted = reference.nearest_e4m3(largest.numpy())
    wanted[(wanted == 0) & (largest.numpy() > 0)] = 1  # never zero while the block has a value
    assert np.array_equal(weight.scales.view(torch.uint8).numpy(), wanted)


def test_nvfp4_is_close_on_ordinary_weights() -> None:
    matrix = torch.randn(256, 512, generator=torch.Generator().manual_seed(1)) * 0.02
    error = (NVFP4Weight.quantize(matrix).dequantize() - matrix).norm() / matrix.norm()
    assert 0.08 < error < 0.11  # 9.5 % is what 4-bit floating point costs on a normal distribution


# ---- extreme values ----------------------------------------------------------------------------------


def test_blocks_of_zeros_stay_zeros() -> None:
    matrix = torch.zeros(3, 256)
    matrix[1, :32] = 1e-3
    for weight in (NVFP4Weight.quantize(matrix), MXFP4Weight.quantize(matrix), FP8Weight.quantize(matrix)):
        values = weight.dequantize()
        assert torch.equal(values == 0, matrix == 0)
        assert torch.isfinite(values).all()
    for kind in (NVFP4Weight, MXFP4Weight, FP8Weight):
        assert torch.equal(kind.quantize(torch.zeros(2, 64)).dequantize(), torch.zeros(2, 64))


def test_one_huge_outlier_spoils_its_own_block_only() -> None:
    matrix = torch.randn(4, 64, generator=torch.Generator().manual_seed(2))
    matrix[2, 40] = 3e4
    weight = NVFP4Weight.quantize(matrix)
    values = weight.dequantize()
    assert values[2, 40] == pytest.approx(3e4, rel=1e-6)
    # The other blocks keep their own scales as far down as E4M3 reaches: in steps of 2^-9 x scale_2. A value
    # is off by half the largest gap between codes (1), or cut by what the scale was rounded down.
    others = torch.ones(4, 4, dtype=torch.bool)
    others[2, 2] = False
    step = weight.scale_2 * 2**-9
    error = (values - matrix).view(4, 4, 16).abs().amax(-1)[others]
    largest = matrix.view(4, 4, 16).abs().amax(-1)[others]
    assert (error <= largest / 6 * 17 / 16 + 3 * step).all()
    assert torch.equal(values.double(), nvfp4_values(weight).float().double())


def test_scales_do_not_overflow_at_the_edge_of_float32() -> None:
    largest = torch.finfo(torch.float32).max
    for peak, kinds in (
        (largest, (NVFP4Weight,)),  # rounding up to 2^128 would leave float32 in the others
        (largest / 2, (NVFP4Weight, FP8Weight, MXFP4Weight)),
        (1e38, (NVFP4Weight, FP8Weight, MXFP4Weight)),
    ):
        matrix = torch.zeros(128, 128)
        matrix[0, 0], matrix[1, 1], matrix[2, 2] = peak, -peak / 2, 1.0
        for kind in kinds:
            values = kind.quantize(matrix).dequantize().double()
            assert torch.isfinite(values).all(), kind
            assert abs(values[0, 0] / peak - 1) < 0.25
            assert abs(values[1, 1] / (-peak / 2) - 1) < 0.25


def test_float32_subnormals_survive() -> None:
    matrix = torch.zeros(128, 128)
    matrix[0, 0], matrix[0, 1], matrix[5, 64] = 6e-40, -3e-40, 1e-42
    values = NVFP4Weight.quantize(matrix).dequantize()
    assert torch.isfinite(values).all()
    assert values[0, 0] == pytest.approx(6e-40, rel=0.2)
    assert values[0, 1] == pytest.approx(-3e-40, rel=0.2)
    for kind in (FP8Weight, MXFP4Weight):
        assert torch.isfinite(kind.quantize(matrix).dequantize()).all()


def test_values_beyond_a_given_scale_are_cut_not_wrapped() -> None:
    matrix = torch.tensor([[1e6, -1e6, 3.0] + [0.0] * 13])
    values = NVFP4Weight.quantize(matrix, scale_2=1.0).dequantize()
    assert values[0, :2].tolist() == [6 * 448, -6 * 448]


def test_small_blocks_beside_large_ones_do_not_vanish() -> None:
    # The block's own scale would round to zero in E4M3; the smallest scale still holds half its values.
    matrix = torch.zeros(1, 32)
    matrix[0, 0], matrix[0, 16] = 6 * 448.0, 6 * 2.0**-11
    values = NVFP4Weight.quantize(matrix, scale_2=1.0).dequantize()
    assert values[0, 16] == 1.5 * 2.0**-9


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("kind", [NVFP4Weight, MXFP4Weight, FP8Weight])
def test_nan_and_infinity_are_refused(kind: type, value: float) -> None:
    matrix = torch.ones(2, 64)
    matrix[1, 3] = value
    with pytest.raises(FormatError, match="NaN or infinity"):
        kind.quantize(matrix)


# ---- FP8 and MXFP4 -----------------------------------------------------------------------------------


def test_fp8_rounds_every_midpoint_to_even() -> None:
    # All half-way points between neighbouring E4M3 values, the float32 values beside them, and all values.
    table = reference.E4M3_CODES[:127]
    middles = (table[1:] + table[:-1]) / 2
    around = np.stack([np.nextafter(middles.astype(np.float32), np.float32(d)) for d in (-1e9, 1e9)])
    values = np.concatenate([middles, *around, table])
    # Every tile has a 448, which makes its scale 1.
    tiles = torch.zeros(1, 128 * 8)
    per_tile = 100
    for tile, start in enumerate(range(0, len(values), per_tile)):
        part = torch.from_numpy(values[start : start + per_tile]).float()
        tiles[0, tile * 128] = 448
        tiles[0, tile * 128 + 1 : tile * 128 + 1 + len(part)] = part
    for sign in (1, -1):
        weight = FP8Weight.quantize(tiles * sign)
        used = weight.scales[0, : -(-len(values) // per_tile)]
        assert (used == 127).all()
        wanted = reference.nearest_e4m3((tiles * sign).double().numpy())
        assert np.array_equal(weight.codes.view(torch.uint8).numpy() & 0x7F, wanted & 0x7F)
        assert torch.equal(weight.dequantize().double(), torch.from_numpy(reference.E4M3_CODES[wanted]))


@pytest.mark.parametrize("shape", [(128, 128), (1, 1), (300, 416), (129, 127)])
def test_fp8_equals_the_definition_on_any_shape(shape: tuple[int, int]) -> None:
    matrix = spread_matrix(*shape, seed=3)
    matrix[0, 0] = 1.0
    matrix = torch.where(matrix == 0, 1e-3, matrix)
    weight = FP8Weight.quantize(matrix)
    codes, scales = reference.encode_fp8(matrix.numpy())
    assert np.array_equal(weight.scales.numpy(), scales)
    assert np.array_equal(weight.codes.view(torch.uint8).numpy(), codes)
    assert weight.shape == matrix.shape


def test_power_of_two_scales_are_exact_at_their_edges() -> None:
    # The largest value that fits a scale, and the next float32 above it.
    for power in (-100, -20, 0, 13, 90):
        for limit, kind, size in ((448.0, FP8Weight, 128), (6.0, MXFP4Weight, 32)):
            edge = torch.tensor(limit * 2.0**power)
            above = torch.nextafter(edge, torch.tensor(float("inf")))
            for value, byte in ((edge, 127 + power), (above, 128 + power)):
                matrix = torch.zeros(1, size)
                matrix[0, 0] = value
                assert kind.quantize(matrix).scales.item() == byte


def test_mxfp4_equals_the_definition() -> None:
    matrix = spread_matrix(70, 192, seed=4)
    matrix = torch.where(matrix == 0, 1e-3, matrix)
    weight = MXFP4Weight.quantize(matrix)
    codes, scales = reference.encode_mxfp4(matrix.numpy())
    assert np.array_equal(weight.scales.numpy(), scales)
    assert np.array_equal(weight.codes.numpy(), codes)
    assert torch.equal(weight.dequantize().double(), mxfp4_values(weight))
