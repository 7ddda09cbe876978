"""Hyper-connections against their formulae, one number at a time in float64."""

import math
from typing import Any

import pytest
import torch

from dsv4chat.kernels import hyper_connections as mhc
from dsv4chat.kernels.unrolled_mhc import make_gates


def _exact_gates(
    mix: list[float], scale: list[float], base: list[float], s: int, eps: float, rounds: int
) -> tuple[list[float], list[float], list[list[float]]]:
    def sigmoid(x: float) -> float:
        return 1 / (1 + math.exp(-x))

    pre = [sigmoid(mix[i] * scale[0] + base[i]) + eps for i in range(s)]
    post = [2 * sigmoid(mix[i] * scale[1] + base[i]) for i in range(s, 2 * s)]
    logits = [m * scale[2] + b for m, b in zip(mix[2 * s :], base[2 * s :], strict=True)]
    comb = []
    for i in range(s):
        row = [math.exp(x - max(logits[i * s : (i + 1) * s])) for x in logits[i * s : (i + 1) * s]]
        comb.append([x / sum(row) + eps for x in row])

    def divide_columns() -> None:
        sums = [sum(comb[i][j] for i in range(s)) + eps for j in range(s)]
        for i in range(s):
            comb[i] = [x / total for x, total in zip(comb[i], sums, strict=True)]

    divide_columns()
    for _ in range(rounds - 1):
        for i in range(s):
            total = sum(comb[i]) + eps
            comb[i] = [x / total for x in comb[i]]
        divide_columns()
    return pre, post, comb


def _float64(values: Any) -> torch.Tensor:
    return torch.as_tensor(values, dtype=torch.float64)


@pytest.mark.parametrize("streams", [2, 4])
def test_gates_equal_their_formulae(streams: int) -> None:
    generator = torch.Generator().manual_seed(streams)
    width = (2 + streams) * streams
    mix = torch.randn(6, width, generator=generator) * 3
    scale, base = torch.rand(3, generator=generator) + 0.5, torch.randn(width, generator=generator)
    pre, post, comb = mhc.weights(mix, scale, base, streams, 1e-6, 20)
    gates = make_gates(streams, 1e-6, 20)
    for row in range(6):
        exact = _exact_gates(mix[row].tolist(), scale.tolist(), base.tolist(), streams, 1e-6, 20)
        for value, wanted in zip((pre[row], post[row], comb[row]), exact, strict=True):
            torch.testing.assert_close(value.double(), _float64(wanted), rtol=2e-6, atol=2e-6)
        # The unrolled form takes scaled and biased mixes.
        widths = [streams, streams, streams * streams]
        scaled = mix[row].double() * scale.double().repeat_interleave(torch.tensor(widths)) + base.double()
        unrolled_pre, mixing = gates(scaled.tolist())
        matrix = torch.tensor(mixing, dtype=torch.float64).view(streams, streams + 1)
        for value, wanted in zip((unrolled_pre, matrix[:, -1], matrix[:, :-1].T), exact, strict=True):
            torch.testing.assert_close(_float64(value), _float64(wanted), rtol=1e-12, atol=1e-12)


def test_columns_sum_to_one() -> None:
    logits = torch.randn(50, 4, 4, generator=torch.Generator().manual_seed(3)) * 4
    comb = mhc.sinkhorn(logits, 1e-6, 20)
    torch.testing.assert_close(comb.sum(1), torch.ones(50, 4), rtol=0, atol=1e-5)


def test_extreme_mixes_neither_overflow_nor_raise() -> None:
    for extreme in (1e4, -1e4):
        mix = torch.full((1, 24), extreme)
        pre, post, comb = mhc.weights(mix, torch.ones(3), torch.zeros(24), 4, 1e-6, 20)
        unrolled_pre, mixing = make_gates(4, 1e-6, 20)(mix[0].tolist())
        matrix = torch.tensor(mixing).view(4, 5)
        assert torch.isfinite(matrix).all()
        torch.testing.assert_close(torch.tensor(unrolled_pre), pre[0])
        torch.testing.assert_close(matrix[:, 4], post[0])
        torch.testing.assert_close(matrix[:, :4].T, comb[0])


def test_damaged_mixes_come_out_damaged_instead_of_raising() -> None:
    for bad in (float("nan"), float("inf")):
        _, mixing = make_gates(4, 1e-6, 20)([bad] * 24)
        assert any(math.isnan(x) for x in mixing)


def test_streams_pass_a_sublayer_as_the_formula_says() -> None:
    generator = torch.Generator().manual_seed(4)
    streams = torch.randn(3, 4, 8, generator=generator) * 1000
    pre, post = torch.rand(3, 4, generator=generator), torch.rand(3, 4, generator=generator)
    comb, out = torch.rand(3, 4, 4, generator=generator), torch.randn(3, 8, generator=generator)
    x = torch.einsum("ni,nid->nd", pre.double(), streams.double())
    torch.testing.assert_close(mhc.collapse(streams, pre).double(), x, rtol=1e-5, atol=1e-3)
    after = post.double()[:, :, None] * out.double()[:, None] + torch.einsum(
        "nij,nid->njd", comb.double(), streams.double()
    )
    torch.testing.assert_close(mhc.expand(streams, post, comb, out).double(), after, rtol=1e-5, atol=1e-3)


def test_mixes_and_head_normalise_all_streams_together() -> None:
    generator = torch.Generator().manual_seed(5)
    streams = torch.randn(3, 4, 8, generator=generator) * 50
    fn = torch.randn(4, 32, generator=generator)
    flat = streams.double().flatten(1)
    mix = flat @ fn.double().T / (flat.square().mean(1, keepdim=True) + 1e-6).sqrt()
    torch.testing.assert_close(mhc.mixes(streams, fn, 1e-6).double(), mix, rtol=1e-5, atol=1e-5)
    scale, base = torch.tensor([0.7]), torch.randn(4, generator=generator)
    pre = torch.sigmoid(mix * 0.7 + base.double()) + 1e-6
    exact = torch.einsum("ni,nid->nd", pre, streams.double())
    torch.testing.assert_close(
        mhc.head(streams, fn, scale, base, 1e-6, 1e-6).double(), exact, rtol=1e-5, atol=1e-4
    )
