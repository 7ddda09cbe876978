"""NVFP4 codes with their bits in another order."""

import pytest
import torch

from dsv4chat.kernels.codes import E2M1_VALUES, decode_e2m1
from dsv4chat.kernels.cute.spread_order import HALVES, SHIFTS
from dsv4chat.kernels.nvfp4 import NVFP4Weight
from dsv4chat.kernels.packed import pack
from dsv4chat.kernels.spread import decode_spread, spread_

VALUES = [*E2M1_VALUES, *(-value for value in E2M1_VALUES)]


def halves_of(spread: int, pair: int) -> list[float]:
    """As the kernel gets them, in whole numbers."""
    left, added = SHIFTS[pair]
    moved = spread << left & 0xFFFFFFFF if left > 0 else spread >> -left
    word = (moved ^ (spread if added else 0)) & HALVES & 0xFFFFFFFF
    halves = torch.tensor([word & 0xFFFF, word >> 16], dtype=torch.int32).to(torch.int16)
    return (halves.view(torch.float16).double() * 2**14).tolist()


def test_words_in_order_are_as_many_as_words_stored():
    """Each of the 32 bits alone, and no bit: linear, so they must be independent."""
    stored = torch.cat([torch.zeros(1, dtype=torch.int32), 1 << torch.arange(32, dtype=torch.int32)])
    words = spread_(stored.view(torch.uint8)).view(torch.int32).tolist()
    assert words[0] == 0
    independent: dict[int, int] = {}
    for word in words[1:]:
        left = word & 0xFFFFFFFF
        while left and left.bit_length() in independent:
            left ^= independent[left.bit_length()]
        assert left
        independent[left.bit_length()] = left


@pytest.mark.parametrize("place", range(8))
@pytest.mark.parametrize("others", [0x00000000, 0xFFFFFFFF, 0x5A3C96E1, 0x80000001])
def test_shifts_under_a_mask_make_halves_of_a_code(place, others):
    """Whatever its neighbours are, a code becomes 2^-14 times its value."""
    for code in range(16):
        word = (others & ~(15 << 4 * place)) | code << 4 * place
        stored = torch.tensor([list(word.to_bytes(4, "little"))], dtype=torch.uint8)
        spread = int.from_bytes(bytes(spread_(stored.clone())[0].tolist()), "little")
        assert halves_of(spread, place // 2)[place % 2] == VALUES[code]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_decoding_gives_the_values_of_the_stored_codes(dtype):
    codes = torch.randint(0, 256, (37, 64), dtype=torch.uint8)
    assert torch.equal(decode_spread(spread_(codes.clone()), dtype), decode_e2m1(codes, dtype))


def test_a_matrix_keeps_its_values_in_the_other_order():
    weight = NVFP4Weight.quantize(torch.randn(48, 64))
    (packed,) = pack([weight])
    (changed,) = pack([weight])
    changed = changed.arranged(spread=True)
    assert changed.spread
    assert not torch.equal(changed.codes, packed.codes)
    again = changed.arranged(spread=True)
    assert again.codes is changed.codes
    assert torch.equal(again.values(torch.float32), packed.values(torch.float32))
    parts = (packed, changed)
    for a, b in (
        parts,
        [p.part(5, 21) for p in parts],
        [p.split(3) for p in parts],
        [p.split(3)[1] for p in parts],
    ):
        assert torch.equal(a.values(torch.float32), b.values(torch.float32))
    both = packed.empty(2)
    assert not both.spread
    assert changed.empty(2).spread
