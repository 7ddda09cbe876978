"""Weight formats: what codes and scales mean, conversion, and the classes around them."""

import time
from fractions import Fraction

import numpy as np
import pytest
import torch

from dsv4chat.kernels.formats import FormatError, FP8Weight, MXFP4Weight, NVFP4Weight, format_name, to_tensor
from tests.support import reference_formats as reference
from tests.support.weight_values import fp8_values, mxfp4_values, nvfp4_values, spread_matrix

E2M1 = [Fraction(value) for value in (0, 0.5, 1, 1.5, 2, 3, 4, 6)]


# ---- decoding ----------------------------------------------------------------------------------------


def test_nvfp4_decodes_every_code_under_every_scale() -> None:
    # Row r has block scale byte r (NaN bytes left out) and all 16 codes in order.
    bytes_ = torch.tensor([byte for byte in range(256) if byte not in (0x7F, 0xFF)], dtype=torch.uint8)
    codes = torch.tensor([[low | (low + 1) << 4 for low in range(0, 16, 2)]] * len(bytes_), dtype=torch.uint8)
    scales = bytes_.view(torch.float8_e4m3fn)[:, None]
    for scale_2 in (1.0, 0.1, 1.2345678e-5, 3e-39, 2e30):
        shared = torch.tensor(scale_2)
        values = NVFP4Weight(codes, scales, shared).dequantize()
        for row, byte in enumerate(bytes_.tolist()):
            for column in range(16):
                sign = -1 if column >= 8 else 1
                exact = (
                    sign * E2M1[column % 8] * Fraction(reference.e4m3_value(byte)) * Fraction(float(shared))
                )
                # float(Fraction) rounds once to float64, exact here; float32 rounds the second time.
                assert values[row, column].item() == np.float32(float(exact)), (byte, column, scale_2)


def test_the_even_column_is_the_low_nibble() -> None:
    codes = torch.zeros(1, 16, dtype=torch.uint8)
    codes[0, 0] = 0x71
    weight = MXFP4Weight(codes, torch.tensor([[127]], dtype=torch.uint8))
    assert weight.dequantize()[0, :3].tolist() == [0.5, 6.0, 0.0]


def test_mxfp4_decodes_every_power_of_two() -> None:
    scales = torch.arange(253, dtype=torch.uint8)[:, None]
    generator = torch.Generator().manual_seed(0)
    codes = torch.randint(0, 256, (253, 16), generator=generator, dtype=torch.uint8)
    weight = MXFP4Weight(codes, scales)
    assert torch.equal(weight.dequantize().double(), mxfp4_values(weight))


def test_fp8_decodes_every_byte_in_every_tile() -> None:
    codes = torch.arange(256, dtype=torch.uint8).repeat(300, 2)[:, :400]
    codes[(codes & 0x7F) == 0x7F] = 0
    scales = torch.arange(100, 112, dtype=torch.uint8).view(3, 4)
    weight = FP8Weight(codes.view(torch.float8_e4m3fn), scales)
    assert torch.equal(weight.dequantize().double(), fp8_values(weight))
    factors = torch.rand(3, 4) + 0.1
    scaled = FP8Weight(codes.view(torch.float8_e4m3fn), factors).dequantize()
    wanted = reference.decode_fp8(codes.numpy(), factors.double().numpy())
    assert torch.equal(scaled, torch.from_numpy(wanted).float())


@pytest.mark.parametrize("kind", [NVFP4Weight, MXFP4Weight, FP8Weight])
def test_bfloat16_values_are_the_float32_values_rounded(kind: type) -> None:
    weight = kind.quantize(spread_matrix(130, 192))
    assert torch.equal(weight.dequantize(torch.bfloat16), weight.dequantize().bfloat16())
    assert torch.equal(to_tensor(weight, torch.bfloat16), weight.dequantize(torch.bfloat16))


# ---- MXFP4 to NVFP4 ----------------------------------------------------------------------------------


def mxfp4_with_exponents(exponents: list[int], seed: int = 0) -> MXFP4Weight:
    """A row a given exponent, with random codes."""
    generator = torch.Generator().manual_seed(seed)
    codes = torch.randint(0, 256, (len(exponents), 32), generator=generator, dtype=torch.uint8)
    scales = torch.tensor(exponents, dtype=torch.int32)[:, None].repeat(1, 2) + 127
    return MXFP4Weight(codes, scales.to(torch.uint8))


@pytest.mark.parametrize("top", [-100, -9, 0, 8, 100])
@pytest.mark.parametrize("span", [0, 1, 17])
def test_mxfp4_converts_without_loss_up_to_a_span_of_17(top: int, span: int) -> None:
    exponents = sorted({top - span, top - span // 2, top})
    weight = mxfp4_with_exponents(exponents)
    converted = NVFP4Weight.from_mxfp4(weight)
    assert converted is not None
    assert torch.equal(converted.codes, weight.codes)
    assert converted.scale_2.item() == 2.0 ** (top - 8)
    assert torch.equal(nvfp4_values(converted), mxfp4_values(weight))
    assert torch.equal(converted.dequantize(), weight.dequantize())


def test_a_wider_span_is_not_converted() -> None:
    assert NVFP4Weight.from_mxfp4(mxfp4_with_exponents([-18, 0])) is None
    assert NVFP4Weight.from_mxfp4(mxfp4_with_exponents([-17, 0])) is not None


def test_blocks_of_zeros_do_not_count_in_the_span() -> None:
    weight = mxfp4_with_exponents([-60, 0, 60])
    weight.codes[0] = 0x80  # zeros and minus zeros
    weight.codes[2] = 0x08
    converted = NVFP4Weight.from_mxfp4(weight)
    assert converted is not None
    assert torch.equal(converted.dequantize(), weight.dequantize())
    weight.codes.fill_(0)
    nothing = NVFP4Weight.from_mxfp4(weight)
    assert nothing is not None
    assert torch.equal(nothing.dequantize(), torch.zeros(3, 64))


# ---- the classes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "nbytes"),
    [
        (NVFP4Weight, 256 * 192 // 2 + 256 * 12 + 4),
        (MXFP4Weight, 256 * 96 + 256 * 6),
        (FP8Weight, 256 * 192 + 4),
    ],
)
def test_shape_bytes_and_rows(kind: type, nbytes: int) -> None:
    weight = kind.quantize(spread_matrix(256, 192))
    assert weight.shape == (256, 192)
    assert weight.nbytes == nbytes
    assert torch.equal(weight.rows(128, 200).dequantize(), weight.dequantize()[128:200])
    assert weight.rows(128, 256).codes.data_ptr() != weight.codes.data_ptr()
    assert (
        weight.rows(128, 256).codes.untyped_storage().data_ptr() == weight.codes.untyped_storage().data_ptr()
    )
    assert torch.equal(weight.to("cpu").dequantize(), weight.dequantize())
    assert format_name(weight) == kind.__name__[: -len("Weight")]
    assert format_name(torch.zeros(1, dtype=torch.bfloat16)) == "bfloat16"


def test_parts_that_do_not_fit_together_are_refused() -> None:
    codes = torch.zeros(4, 16, dtype=torch.uint8)
    with pytest.raises(FormatError, match="NVFP4"):
        NVFP4Weight(codes, torch.zeros(4, 1).to(torch.float8_e4m3fn), torch.tensor(1.0))
    with pytest.raises(FormatError, match="NVFP4"):
        NVFP4Weight(codes, torch.zeros(4, 2), torch.tensor(1.0))
    with pytest.raises(FormatError, match="MXFP4"):
        MXFP4Weight(codes, torch.zeros(4, 2, dtype=torch.uint8))
    with pytest.raises(FormatError, match="FP8"):
        FP8Weight(torch.zeros(129, 4).to(torch.float8_e4m3fn), torch.ones(1, 1))
    for kind, columns in ((NVFP4Weight, 24), (MXFP4Weight, 48)):
        with pytest.raises(FormatError, match="multiple"):
            kind.quantize(torch.ones(2, columns))
    with pytest.raises(FormatError, match="multiples of 128"):
        FP8Weight.quantize(torch.ones(256, 4)).rows(64, 128)


def test_twenty_million_weights_decode_well_under_a_second() -> None:
    weight = NVFP4Weight(
        torch.randint(0, 256, (4096, 2560), dtype=torch.uint8),
        torch.rand(4096, 320).to(torch.float8_e4m3fn),
        torch.tensor(0.01),
    )
    weight.dequantize()
    # Processor time, which other work on the machine does not lengthen.
    start = time.process_time()
    weight.dequantize()
    assert time.process_time() - start < 0.6
