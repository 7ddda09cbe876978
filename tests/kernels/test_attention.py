"""Attention with a sink against float64 sums, key by key."""

import torch

from dsv4chat.kernels import attention


def _exact(query: torch.Tensor, rows: torch.Tensor, shown: torch.Tensor, sink: torch.Tensor) -> torch.Tensor:
    """query (h, d), rows (r, d), shown (r,) bool, sink (h,) -> (h, d), all in float64."""
    rows = rows[shown].double()
    scores = query.double() @ rows.T
    highest = torch.maximum(scores.amax(1), sink.double())
    weights = (scores - highest[:, None]).exp()
    return weights @ rows / (weights.sum(1) + (sink.double() - highest).exp())[:, None]


def _case(scale: float = 1.0) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(5, 3, 8, generator=generator) * scale
    rows = torch.randn(11, 8, generator=generator)
    shown = torch.rand(5, 11, generator=generator) < 0.5
    shown[:, 2] = True
    return query, rows, shown, torch.randn(3, generator=generator) * 2


def _mask(shown: torch.Tensor) -> torch.Tensor:
    full = torch.cat([shown, torch.ones(shown.shape[0], 1, dtype=torch.bool)], dim=1)
    return torch.zeros(full.shape).masked_fill(~full, -torch.inf)


def test_the_sink_takes_weight_and_adds_no_value() -> None:
    for scale in (1.0, 300.0):  # with 300, scores reach far beyond what exp can hold
        query, rows, shown, sink = _case(scale)
        out = attention.dense(query, attention.with_sink_row(rows), _mask(shown), sink)
        for t in range(5):
            torch.testing.assert_close(
                out[t].double(), _exact(query[t], rows, shown[t], sink), rtol=1e-4, atol=1e-5
            )


def test_a_huge_sink_silences_and_does_not_overflow() -> None:
    query, rows, shown, _ = _case()
    out = attention.dense(query, attention.with_sink_row(rows), _mask(shown), torch.full((3,), 1e4))
    assert torch.equal(out, torch.zeros_like(out))


def test_rows_of_its_own_count_like_shared_ones() -> None:
    query, rows, shown, sink = _case()
    chosen = torch.tensor([[5, 7, 9], [6, 8, 10], [5, 6, 7], [8, 9, 10], [5, 9, 10]])
    valid = torch.tensor([[True, True, False]] * 5)
    window = attention.with_sink_row(rows[:5])
    own_mask = torch.zeros(5, 3).masked_fill(~valid, -torch.inf)
    out = attention.selected(query, window, _mask(shown[:, :5]), sink, rows[chosen], own_mask)
    for t in range(5):
        seen = shown[t].clone()
        seen[5:] = False
        seen[chosen[t][valid[t]]] = True
        torch.testing.assert_close(out[t].double(), _exact(query[t], rows, seen, sink), rtol=1e-5, atol=1e-6)
