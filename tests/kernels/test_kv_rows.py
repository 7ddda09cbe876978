"""Stored rows of the cache against a float64 computation of the same rounding."""

import math

import numpy as np
import pytest
import torch

from dsv4chat.kernels import hadamard
from dsv4chat.kernels.kv_rows import Fp4Keys, Fp8Rows, PlainRows, Rows
from dsv4chat.kernels.single_row import single_row
from tests.support.reference_formats import E2M1_CODES, E4M3_CODES, nearest_e2m1, nearest_e4m3

E4M3_POSITIVE = E4M3_CODES[:127]  # 0 .. 448


def _exact_scale(amax: float, limit: float) -> float:
    """2^ceil(log2(amax / limit)) by search."""
    exponent = -126
    while math.ldexp(limit, exponent) < amax:
        exponent += 1
    return math.ldexp(1.0, exponent)


def exact_fp8(rows: np.ndarray, rope_dim: int) -> np.ndarray:
    """Rounded values (n, d) float64 of float32 rows (n, d)."""
    result = torch.from_numpy(rows).to(torch.bfloat16).double().numpy()
    plain = rows.shape[1] - rope_dim
    for row in range(rows.shape[0]):
        for start in range(0, plain, 64):
            stop = min(start + 64, plain)
            group = rows[row, start:stop].astype(np.float64)
            scale = _exact_scale(max(np.abs(group).max(), float(np.float32(1e-4))), 448.0)
            result[row, start:stop] = E4M3_CODES[nearest_e4m3(group / scale)] * scale
    return result


def exact_fp4(rotated: np.ndarray) -> np.ndarray:
    result = np.empty(rotated.shape)
    for row in range(rotated.shape[0]):
        for start in range(0, rotated.shape[1], 32):
            group = rotated[row, start : start + 32].astype(np.float64)
            scale = _exact_scale(np.abs(group).max(), 6.0)
            result[row, start : start + 32] = E2M1_CODES[nearest_e2m1(group / scale)] * scale
    return result


def _rows(d: int, seed: int = 0) -> np.ndarray:
    """Ordinary rows, rows of very different sizes, zeros, and one huge outlier."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(40, d))
    rows[10:20] *= 10.0 ** rng.uniform(-9, 6, size=(10, 1))
    rows[20:25] *= 10.0 ** rng.uniform(-6, 3, size=(5, d))
    rows[25] = 0
    rows[26, d // 3] = 1e6
    rows[27] = 1e-7
    return rows.astype(np.float32)


def _check_single(format: Rows, d: int, rows: np.ndarray) -> None:
    """The decode step's form gives the same bytes and values."""
    single = single_row(format, d)
    stored = format.store(torch.from_numpy(rows))
    for row, bytes_of_row in zip(rows, stored, strict=True):
        single.round(row)
        assert torch.equal(single.stored[0], bytes_of_row)
        assert torch.equal(single.values, format.load(bytes_of_row[None]))


@pytest.mark.parametrize(
    ("d", "rope_dim"), [(512, 64), (64, 16), (32, 8), (160, 32), (130, 2), (16, 16), (64, 0)]
)
def test_fp8_rows_are_e4m3_by_groups_of_64_and_bfloat16(d: int, rope_dim: int) -> None:
    rows = _rows(d)
    format = Fp8Rows(d, rope_dim)
    stored = format.store(torch.from_numpy(rows))
    assert stored.dtype == torch.uint8
    assert np.array_equal(format.load(stored).double().numpy(), exact_fp8(rows, rope_dim))
    if rope_dim:
        _check_single(format, d, rows)


def test_fp8_rounds_every_midpoint_and_subnormal_to_nearest_even() -> None:
    steps = E4M3_POSITIVE
    midpoints = (steps[1:] + steps[:-1]) / 2
    near = np.concatenate([midpoints * (1 - 1e-6), midpoints, midpoints * (1 + 1e-6), steps])
    values = np.concatenate([near, -near])
    rows = np.zeros((len(values), 72), np.float32)
    rows[:, 0] = 448.0  # fixes the scale at 1
    rows[:, 1] = values
    format = Fp8Rows(72, 8)
    loaded = format.load(format.store(torch.from_numpy(rows)))[:, 1].double().numpy()
    assert np.array_equal(loaded, E4M3_CODES[nearest_e4m3(rows[:, 1].astype(np.float64))])
    _check_single(format, 72, rows[::7])


def test_small_groups_keep_the_smallest_scale() -> None:
    rows = np.full((1, 64), 1e-9, np.float32)
    format = Fp8Rows(64, 16)
    scale = 2.0 ** math.ceil(math.log2(1e-4 / 448))
    loaded = format.load(format.store(torch.from_numpy(rows)))[0, :48].double().numpy()
    assert np.array_equal(loaded, E4M3_CODES[nearest_e4m3(rows[0, :48] / scale)] * scale)


def test_a_v4_row_takes_584_bytes() -> None:
    assert Fp8Rows(512, 64).width == 584
    assert Fp4Keys(128).width == 68


@pytest.mark.parametrize("d", [2, 16, 32, 128])
def test_keys_are_rotated_then_rounded_to_four_bits(d: int) -> None:
    rows = _rows(d, seed=1)
    format = Fp4Keys(d)
    rotated = (torch.from_numpy(rows) @ hadamard.matrix(d)).numpy()
    loaded = format.load(format.store(torch.from_numpy(rows)))
    assert np.array_equal(loaded.double().numpy(), exact_fp4(rotated))
    queries = torch.from_numpy(rows).view(4, 10, d)
    assert torch.equal(format.query(queries).view(-1, d), loaded)


def test_four_bits_round_every_midpoint_to_the_even_code() -> None:
    midpoints = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0])
    near = np.concatenate(
        [np.nextafter(np.float32(midpoints), 0), midpoints, np.nextafter(np.float32(midpoints), 9)]
    )
    values = np.concatenate([near, -near, E2M1_CODES]).astype(np.float32)
    rows = np.zeros((len(values), 32), np.float32)
    rows[:, 0] = 6.0  # fixes the scale at 1
    rows[:, 1] = values
    format = Fp4Keys(32)
    format.rotation = torch.eye(32)
    loaded = format.load(format.store(torch.from_numpy(rows)))[:, 1].double().numpy()
    assert np.array_equal(loaded, E2M1_CODES[nearest_e2m1(values.astype(np.float64))])
    assert loaded[7:14].tolist() == [0.0, 1.0, 1.0, 2.0, 2.0, 4.0, 4.0]
    _check_single(format, 32, rows)


def test_single_queries_are_rounded_like_many() -> None:
    query = torch.randn(8, 32, generator=torch.Generator().manual_seed(0))
    format = Fp4Keys(32)
    rotated = (query @ format.rotation).numpy()
    assert np.array_equal(single_row(format, 32).query(query.numpy()), exact_fp4(rotated).astype(np.float32))


def test_plain_rows_come_back_as_stored() -> None:
    rows = _rows(24)
    for dtype in (torch.float32, torch.bfloat16):
        format = PlainRows(24, dtype)
        loaded = format.load(format.store(torch.from_numpy(rows)))
        assert torch.equal(loaded, torch.from_numpy(rows).to(dtype).float())
        _check_single(format, 24, rows)


@pytest.mark.parametrize("d", [1, 2, 8, 64])
def test_the_rotation_is_orthogonal_and_made_of_equal_magnitudes(d: int) -> None:
    matrix = hadamard.matrix(d).double()
    torch.testing.assert_close(matrix @ matrix, torch.eye(d, dtype=torch.float64), rtol=0, atol=1e-6)
    assert torch.allclose(matrix.abs(), torch.full((d, d), d**-0.5, dtype=torch.float64))


def test_a_rotation_needs_a_power_of_two() -> None:
    with pytest.raises(ValueError, match="power of two"):
        hadamard.matrix(24)
