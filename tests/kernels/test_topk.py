"""Exact top-k against sorting by (value, index)."""

import numpy as np
import pytest
import torch

from dsv4chat.kernels.topk import highest, top_k


def _sorted_choice(row: list[float], k: int) -> list[int]:
    return sorted(sorted(range(len(row)), key=lambda i: (-row[i], i))[:k])


@pytest.mark.parametrize(("columns", "k"), [(1, 1), (7, 3), (40, 39), (100, 10), (8192, 1024)])
def test_the_highest_are_chosen_and_ties_go_to_the_lowest_index(columns: int, k: int) -> None:
    generator = torch.Generator().manual_seed(columns)
    # Few distinct values, zeros of both signs among them: most boundaries are ties.
    scores = torch.randint(-3, 4, (6, columns), generator=generator).float() * 0.5
    scores[1] = torch.randn(columns, generator=generator)
    scores[2] = -0.0
    scores[3, ::2] = -torch.inf
    chosen = top_k(scores, k)
    for row in range(6):
        wanted = _sorted_choice(scores[row].tolist(), k)
        assert chosen[row].tolist() == wanted
        if k < columns:
            assert highest(scores[row].numpy(), k).tolist() == wanted


def test_a_damaged_row_still_gives_valid_indices() -> None:
    scores = torch.tensor([[float("nan"), 1.0, float("nan"), 2.0], [float("nan")] * 4])
    chosen = top_k(scores, 3)
    assert chosen[0].tolist() == [0, 1, 3]
    assert chosen[1].tolist() == [0, 1, 2]
    assert np.all(highest(scores[1].numpy(), 3) < 4)
