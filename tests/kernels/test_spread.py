"""NVFP4 codes with their bits in another order."""

import pytest
import torch

from dsv4chat.kernels.codes import E2M1_VALUES, decode_e2m1
from dsv4chat.kernels.cute.spread_order import HALVES, PLACES, STEPS
from dsv4chat.kernels.nvfp4 import NVFP4Weight
from dsv4chat.kernels.packed import pack
from dsv4chat.kernels.spread import decode_spread, spread_

VALUES = [*E2M1_VALUES, *(-value for value in E2M1_VALUES)]


def test_every_bit_has_a_place_of_its_own():
    bits = [bit for sign, size in PLACES for bit in (sign, size, size + 1, size + 2)]
    assert sorted(bits) == list(range(16))


@pytest.mark.parametrize("place", range(8))
@pytest.mark.parametrize("others", [0x00000000, 0xFFFFFFFF, 0x5A3C96E1])
def test_a_mask_and_a_multiplication_make_halves_of_a_code(place, others):
    """As the kernel does it, in whole numbers: whatever its neighbours are, a code becomes 2^-14 times its
    value.
    """
    for code in range(16):
        word = (others & ~(15 << 4 * place)) | code << 4 * place
        stored = torch.tensor([list(word.to_bytes(4, "little"))], dtype=torch.uint8)
        spread = int.from_bytes(bytes(spread_(stored.clone())[0].tolist()), "little")
        mask, factor = (0xFFFFFFFF, 1) if place < 2 else STEPS[place // 2 - 1]
        # The kernel leaves the first mask out where the last one is enough.
        for first in (mask, 0xFFFFFFFF) if place < 4 else (mask,):
            pair = ((spread & first) * factor & 0xFFFFFFFF) & (HALVES & 0xFFFFFFFF)
            halves = torch.tensor([pair & 0xFFFF, pair >> 16], dtype=torch.int32).to(torch.int16)
            value = halves.view(torch.float16)[place % 2].double() * 2**14
            assert float(value) == VALUES[code]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_decoding_gives_the_values_of_the_stored_codes(dtype):
    codes = torch.randint(0, 256, (37, 64), dtype=torch.uint8)
    assert torch.equal(decode_spread(spread_(codes.clone()), dtype), decode_e2m1(codes, dtype))


def test_a_matrix_keeps_its_values_in_the_other_order():
    weight = NVFP4Weight.quantize(torch.randn(48, 64))
    (packed,) = pack([weight])
    (changed,) = pack([weight])
    changed = changed.in_spread_order()
    assert changed.spread
    assert not torch.equal(changed.codes, packed.codes)
    assert changed.in_spread_order() is changed
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
