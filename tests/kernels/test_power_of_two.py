"""Block scales against exact rational arithmetic."""

from fractions import Fraction

import numpy as np
import torch

from dsv4chat.kernels.power_of_two import scale_byte, scale_value


def test_the_scale_is_the_smallest_power_of_two_that_covers_the_largest_value() -> None:
    rng = np.random.default_rng(0)
    for limit in (448.0, 6.0):
        # Around limit * 2^k, where a logarithm of a rounded quotient may err, and anywhere else.
        edges = np.float32(limit) * np.float32(2.0) ** np.arange(-40, 60).astype(np.float32)
        values = np.concatenate(
            [
                edges,
                np.nextafter(edges, np.float32(np.inf)),
                np.nextafter(edges, np.float32(0)),
                (10.0 ** rng.uniform(-12, 20, 500)).astype(np.float32),
            ]
        ).astype(np.float32)
        scales = scale_value(scale_byte(torch.from_numpy(values), limit))
        for value, scale in zip(values.tolist(), scales.tolist(), strict=True):
            exact = Fraction(value) / Fraction(limit)
            assert exact <= Fraction(scale), (value, scale)
            assert exact > Fraction(scale) / 2, (value, scale)


def test_zero_and_the_smallest_values_get_a_normal_scale() -> None:
    tiny = torch.tensor([0.0, 1e-45, 1.2e-38])
    scales = scale_value(scale_byte(tiny, 6.0))
    assert torch.isfinite(scales).all()
    assert (scales >= 2.0**-126).all()


def test_bytes_are_biased_exponents() -> None:
    assert scale_byte(torch.tensor([448.0, 449.0, 224.0]), 448.0).tolist() == [127, 128, 126]
    assert scale_value(torch.tensor([127, 128, 1, 254], dtype=torch.uint8)).tolist() == [
        1.0,
        2.0,
        2.0**-126,
        2.0**127,
    ]
