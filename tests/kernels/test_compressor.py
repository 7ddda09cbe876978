"""Pooling against float64 sums, channel by channel."""

import torch

from dsv4chat.kernels.compressor import overlapped, pool


def test_a_block_is_the_gate_weighted_mean_of_its_rows() -> None:
    generator = torch.Generator().manual_seed(0)
    kv, gate = torch.randn(3, 6, 4, generator=generator), torch.randn(3, 6, 4, generator=generator) * 20
    pooled = pool(kv, gate)
    for block in range(3):
        for channel in range(4):
            weight = gate[block, :, channel].double().exp()
            exact = (weight * kv[block, :, channel].double()).sum() / weight.sum()
            assert abs(float(pooled[block, channel]) - float(exact)) < 1e-5


def test_rows_of_weight_zero_do_not_count() -> None:
    kv, gate = torch.randn(1, 4, 2), torch.randn(1, 4, 2)
    gate[:, :2] = -torch.inf
    torch.testing.assert_close(pool(kv, gate), pool(kv[:, 2:], gate[:, 2:]))


def test_overlap_takes_the_first_group_of_the_block_before_and_the_second_of_its_own() -> None:
    blocks = torch.arange(3 * 2 * 4, dtype=torch.float32).view(3, 2, 4)
    previous = torch.full((2, 2), -1.0)
    rows = overlapped(blocks, previous)
    assert rows.shape == (3, 4, 2)
    assert torch.equal(rows[0, :2], previous)
    assert torch.equal(rows[1, :2], blocks[0, :, :2])
    assert torch.equal(rows[2, 2:], blocks[2, :, 2:])
