"""The layouts the kernels read, element by element, and the number facts their decoding rests on."""

import pytest
import torch

from dsv4chat.kernels.codes import E2M1_VALUES
from dsv4chat.kernels.cute.arrange import matrix, quad_scales
from dsv4chat.kernels.cute.products import prefetched
from dsv4chat.kernels.fp8 import FP8Weight
from dsv4chat.kernels.mxfp4 import MXFP4Weight
from dsv4chat.kernels.nvfp4 import NVFP4Weight
from dsv4chat.kernels.packed import pack


@pytest.mark.parametrize("columns", [32, 256, 512, 800, 1536])
def test_a_lane_finds_the_scales_of_its_two_chunks_together(columns):
    blocks = columns // 16
    scales = torch.randint(0, 127, (3, blocks), dtype=torch.uint8).view(torch.float8_e4m3fn)
    quads, raw = quad_scales(scales), scales.view(torch.uint8)
    assert quads.shape == (3, -(-columns // 256) * 16)
    for unit in range(quads.shape[1] // 16):
        for lane in range(4):
            for chunk in range(2):
                for half in range(2):
                    block = unit * 16 + (chunk * 4 + lane) * 2 + half  # a chunk is 32 columns, two blocks
                    here = quads[:, unit * 16 + lane * 4 + chunk * 2 + half]
                    expected = raw[:, block] if block < blocks else torch.zeros(3, dtype=torch.uint8)
                    assert torch.equal(here, expected)


def test_a_matrix_shares_its_codes_and_keeps_a_factor_a_row():
    (packed,) = pack(
        [NVFP4Weight.quantize(torch.randn(20, 64)), NVFP4Weight.quantize(torch.randn(4, 64) * 9)]
    )
    ready = matrix(packed)
    assert ready.codes.data_ptr() == packed.codes.data_ptr()
    assert (ready.rows, ready.columns, ready.exact, ready.units) == (24, 64, False, 1)
    assert torch.equal(ready.factors, packed.row_factor)
    assert ready.kernel("linear") == "linear_nvfp4_ragged"


def test_codes_are_copied_only_to_change_their_order():
    (packed,) = pack([NVFP4Weight.quantize(torch.randn(20, 64))])
    before = packed.codes.clone()
    copy = matrix(packed, spread=True)
    assert torch.equal(packed.codes, before)
    changed = packed.arranged(spread=True)
    assert torch.equal(copy.codes, changed.codes)
    assert matrix(changed, spread=True).codes.data_ptr() == changed.codes.data_ptr()


def test_whole_units_come_in_groups_of_rows_with_their_scales():
    """Byte by byte: a unit of eight rows is 1 kB of codes, and of NVFP4 128 bytes of scales."""
    for quantise in (NVFP4Weight.quantize, FP8Weight.quantize):
        (packed,) = pack([quantise(torch.randn(24, 768))])
        before, ready = packed.codes.view(torch.uint8).clone(), matrix(packed)
        assert torch.equal(packed.codes.view(torch.uint8), before)
        assert ready.exact
        units = before.shape[1] // 128
        assert ready.units == units
        codes = ready.codes.view(torch.uint8).view(3, units, 8, 128)
        scales = None
        if ready.format == "nvfp4":
            scales = ready.scales.view(3, units, 8, 16), quad_scales(packed.scales)
        for row in range(24):
            for unit in range(units):
                here = codes[row // 8, unit, row % 8]
                assert torch.equal(here, before[row, unit * 128 : unit * 128 + 128])
                if scales is not None:
                    grouped, quads = scales
                    here = grouped[row // 8, unit, row % 8]
                    assert torch.equal(here, quads[row, unit * 16 : unit * 16 + 16])
        arranged = packed.arranged(spread=False)
        assert matrix(arranged).codes.data_ptr() == packed.codes.data_ptr()


@pytest.mark.parametrize(("rows", "columns"), [(20, 256), (24, 288)])
def test_other_matrices_stay_in_rows(rows, columns):
    (packed,) = pack([NVFP4Weight.quantize(torch.randn(rows, columns))])
    ready = matrix(packed)
    assert not ready.exact
    assert ready.codes.data_ptr() == packed.codes.data_ptr()
    assert torch.equal(ready.scales, quad_scales(packed.scales))


@pytest.mark.parametrize("quantise", [NVFP4Weight.quantize, FP8Weight.quantize, torch.Tensor.bfloat16])
def test_the_first_rows_of_a_matrix_are_what_its_upper_part_would_be_in_the_same_memory(quantise):
    above, below = torch.randn(256, 512), torch.randn(128, 512) * 5
    (both,), (alone,) = pack([quantise(above), quantise(below)]), pack([quantise(above)])
    whole = matrix(both)
    first, expected = whole.first(256), matrix(alone)
    assert (first.rows, first.columns, first.format) == (256, 512, expected.format)
    assert first.codes.data_ptr() == whole.codes.data_ptr()
    for part in ("codes", "scales", "factors"):
        mine, other = getattr(first, part), getattr(expected, part)
        assert (mine is None) == (other is None), part
        if mine is not None:
            raw, wanted = (t.view(torch.uint8) if t.element_size() == 1 else t for t in (mine, other))
            assert torch.equal(raw, wanted), part


def test_the_first_rows_of_fp8_end_with_a_tile():
    whole = matrix(pack([FP8Weight.quantize(torch.randn(300, 128))])[0])
    assert [whole.first(rows).rows for rows in (1, 128, 129, 299)] == [128, 128, 256, 300]
    assert [len(whole.first(rows).scales) for rows in (1, 128, 129, 299)] == [1, 1, 2, 3]
    assert not whole.exact
    assert not whole.first(1).exact  # its memory is in rows


def test_what_is_fetched_ahead_is_two_runs_of_memory_and_neighbours_are_one():
    room, other, third = torch.zeros(1024), torch.zeros(40), torch.zeros(8)
    upper, lower = room[:1000], room[1000:]
    addresses, lines = prefetched([upper, lower, other, third])
    assert [address.value for address in addresses] == [room.data_ptr(), other.data_ptr()]
    assert [number.value for number in lines] == [1024 * 4 // 128, 2]  # 160 bytes are two lines
    addresses, lines = prefetched([])
    assert [address.value or 0 for address in addresses] == [0, 0]
    assert [number.value for number in lines] == [0, 0]


def test_tile_scales_become_float32_factors():
    weight = FP8Weight.quantize(torch.randn(256, 384))
    (packed,) = pack([weight])
    ready = matrix(packed)
    assert ready.scales.dtype == torch.float32
    assert torch.equal(ready.scales, weight.factors())
    assert ready.kernel("down") == "down_fp8"


@pytest.mark.parametrize(
    "weight",
    [
        torch.randn(8, 64),  # float32
        MXFP4Weight.quantize(torch.randn(8, 64)),
        NVFP4Weight.quantize(torch.randn(8, 48)),  # not a multiple of a chunk
        torch.randn(8, 60).bfloat16(),
    ],
    ids=["float32", "mxfp4", "nvfp4 of 48 columns", "bfloat16 of 60 columns"],
)
def test_what_no_kernel_takes_is_left_to_pytorch(weight):
    (packed,) = pack([weight])
    assert matrix(packed) is None


def test_codes_times_scales_are_exact_halves():
    """The products the tensor cores get, in the kernels' units, subnormal or not."""
    byte = torch.arange(127, dtype=torch.int16)
    scales = (byte << 7).view(torch.float16)  # what PRMT and a shift make of an E4M3 byte
    values = byte.to(torch.uint8).view(torch.float8_e4m3fn).double()
    assert torch.equal(scales.double() * 2.0**8, values)
    on_hopper = scales * torch.tensor(2.0**15, dtype=torch.float16)
    assert torch.equal(on_hopper.double(), values * 2.0**7)
    for unit, factors in ((2.0**-14, on_hopper), (1.0, scales)):
        exact = torch.tensor(E2M1_VALUES).double()[:, None] * unit * factors.double()
        assert torch.equal(exact.half().double(), exact)
