"""Codes of eight rows side by side."""

import pytest
import torch

from dsv4chat.kernels.fp8 import FP8Weight
from dsv4chat.kernels.grouping import group_, groupable, grouped_scales, ungrouped
from dsv4chat.kernels.nvfp4 import NVFP4Weight
from dsv4chat.kernels.packed import pack


@pytest.mark.parametrize("shape", [(8, 128), (8, 384), (40, 128), (3, 16, 256)])
@pytest.mark.parametrize("chunk", [1 << 27, 1024])
def test_a_piece_of_a_row_goes_where_it_belongs_and_comes_back(shape, chunk, monkeypatch):
    monkeypatch.setattr("dsv4chat.kernels.grouping.CHUNK", chunk)
    stored = torch.randint(0, 256, shape, dtype=torch.uint8)
    codes = group_(stored.clone())
    pieces = codes.view(-1, 128)
    rows, units = stored.view(-1, shape[-1]), shape[-1] // 128
    for row in range(rows.shape[0]):
        for unit in range(units):
            place = (row // 8 * units + unit) * 8 + row % 8
            assert torch.equal(pieces[place], rows[row, unit * 128 : unit * 128 + 128])
    assert torch.equal(ungrouped(codes), stored)
    assert not torch.equal(codes, stored) or units == 1


def test_what_has_no_whole_groups_or_units_is_not_groupable():
    assert groupable(torch.empty(8, 128, dtype=torch.uint8))
    assert not groupable(torch.empty(12, 128, dtype=torch.uint8))
    assert not groupable(torch.empty(8, 192, dtype=torch.uint8))
    assert not groupable(torch.empty(8, 128, dtype=torch.bfloat16))


def test_scales_follow_their_codes():
    quads = torch.randint(0, 256, (2, 16, 48), dtype=torch.uint8)
    grouped = grouped_scales(quads).view(2, 2, 3, 8, 16)
    for expert in range(2):
        for row in range(16):
            for unit in range(3):
                expected = quads[expert, row, unit * 16 : unit * 16 + 16]
                assert torch.equal(grouped[expert, row // 8, unit, row % 8], expected)


@pytest.mark.parametrize("quantise", [NVFP4Weight.quantize, FP8Weight.quantize])
def test_a_matrix_keeps_its_values_and_its_parts(quantise):
    weight = quantise(torch.randn(768, 512))
    (packed,), (changed,) = pack([weight]), pack([type(weight)(*(t.clone() for t in tensors_of(weight)))])
    changed = changed.arranged(spread=True)
    assert changed.grouped
    assert changed.shape == packed.shape
    both = [packed, changed]
    count = packed.empty(2), changed.empty(2)
    for room, one in zip(count, both, strict=True):
        room.put(0, one)
        room.put(1, one)
    for a, b in (
        both,
        [one.part(256, 520) for one in both],
        [one.part(5, 21) for one in both],
        [one.part(256, 301) for one in both],
        [one.split(3) for one in both],
        [one.split(3)[1] for one in both],
        [one.split(64) for one in both],
        [one.split(256)[1] for one in both],
        [room[torch.tensor([1, 0])] for room in count],
    ):
        assert torch.equal(a.values(torch.float32), b.values(torch.float32))


def tensors_of(weight):
    if isinstance(weight, FP8Weight):
        return weight.codes, weight.scales
    return weight.codes, weight.scales, weight.scale_2
