"""How a block stores a row, a channel a thread: `kv_rows.Fp8Rows` of 448 + 64 channels, `Fp4Keys` of 128."""

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import arithmetic, encode, ptx

D = 512
ROPE = 64
ROW_BYTES = 584
KEY = 128
KEY_BYTES = 68


@cute.jit
def store_row(value: Float32, channel: Int32, row: Int64, shared: Int32, tid: Int32):
    """One channel of an FP8 row to `row`; returns the rounded value. All threads of the block."""
    largest = cute.arch.warp_reduction_max(arithmetic.magnitude(value))
    ptx.shared_store_f32(shared + (tid // 32) * 4, largest)
    cute.arch.sync_threads()
    group = tid // 64
    largest = cute.arch.fmax(
        ptx.shared_load_f32(shared + group * 8), ptx.shared_load_f32(shared + group * 8 + 4)
    )
    byte = encode.scale_byte(cute.arch.fmax(largest, Float32(1e-4)), encode.E4M3_LARGEST)
    code = encode.e4m3_code(value * arithmetic.bits_to_f32((254 - byte) << 23))
    plain = encode.e4m3_value(code) * arithmetic.bits_to_f32(byte << 23)
    turned = arithmetic.round_bf16(value)
    inside = channel < D - ROPE
    if inside:
        ptx.store_u8(row + (2 * ROPE + channel).to(Int64), code)
        if (channel & 63) == 0:
            ptx.store_u8(row + (2 * ROPE + D - ROPE + group).to(Int64), byte)
    else:
        ptx.store_bf16(row + ((channel - (D - ROPE)) * 2).to(Int64), value)
    return arithmetic.pick(inside, plain, turned)


@cute.jit
def store_key(value: Float32, tid: Int32, row: Int64, shared: Int32):
    """An index key, a channel in each of the first 128 threads: rotated, rounded to 4 bits, packed."""
    for step in cutlass.range_constexpr(5):
        other = cute.arch.shuffle_sync_bfly(value, 1 << step)
        value = arithmetic.pick((tid & (1 << step)) == 0, value + other, other - value)
    for far in cutlass.range_constexpr(2):
        stride = 32 << far
        if tid < KEY:
            ptx.shared_store_f32(shared + tid * 4, value)
        cute.arch.sync_threads()
        other = ptx.shared_load_f32(shared + ((tid & (KEY - 1)) ^ stride) * 4)
        value = arithmetic.pick((tid & stride) == 0, value + other, other - value)
        cute.arch.sync_threads()
    value = value * KEY**-0.5
    largest = cute.arch.warp_reduction_max(arithmetic.magnitude(value))
    byte = encode.scale_byte(largest, encode.E2M1_LARGEST)
    byte = arithmetic.pick(arithmetic.f32_to_bits(largest) == 0, Int32(124), byte)
    code = encode.e2m1_code(value * arithmetic.bits_to_f32((254 - byte) << 23))
    upper = cute.arch.shuffle_sync_bfly(code, 1)
    if tid < KEY:
        if (tid & 1) == 0:
            ptx.store_u8(row + (tid // 2).to(Int64), code | (upper << 4))
        if (tid & 31) == 0:
            ptx.store_u8(row + (KEY // 2 + tid // 32).to(Int64), byte)
