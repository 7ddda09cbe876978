"""NVFP4 codes in the order of `kernels.cute.spread_order`, in PyTorch."""

import torch
from torch import Tensor

from dsv4chat.kernels.cute.spread_order import HALVES, SHIFTS

UNSCALE = 2.0**14
CHUNK = 1 << 22  # words worked on at once


def spread_(codes: Tensor) -> Tensor:
    """Codes u8 (..., bytes), bytes a multiple of 4, as stored -> in that order, in place."""
    words = codes.view(torch.int32).view(-1)
    for start in range(0, words.shape[0], CHUNK):
        part = words[start : start + CHUNK]
        part.copy_(_solved(*(_halves(part >> (8 * pair)) for pair in range(4))))
    return codes


def _halves(words: Tensor) -> Tensor:
    """The two codes of each word's lowest byte as the bits of halves."""
    result = (words & 0x07) << 9
    result |= ((words >> 3) & 1) << 15
    result |= ((words >> 4) & 0x07) << 25
    return result.bitwise_or_((words >> 7) << 31)


def _solved(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    """The words w whose w << 6, w << 9, w ^ (w >> 3) and w ^ (w << 2) are a to d under the mask.

    Bits of w are found one after the other, in both halves at once; what a shift to the right brings from the
    sign is masked away.
    """
    w = ((a >> 6) & 0x02380238) | ((b >> 9) & 0x00470047)  # 3 to 5 and 9; 0 to 2 and 6
    w |= (c & ~0x7FFF7FFF) ^ ((w >> 3) & 0x00008000)  # 15, of the lower half with 18
    w |= ((d ^ w) >> 2) & 0x20002000  # 13, with 15
    w |= ((c ^ w) & 0x02000200) << 3  # 12, with 9
    w |= (d & 0x08000800) ^ ((w & 0x02000200) << 2)  # 11, with 9
    w |= (c & 0x04000400) ^ ((w & 0x20002000) >> 3)  # 10, with 13
    w |= ((c ^ w) & 0x08000800) << 3  # 14, with 11
    w |= ((d ^ w) >> 2) & 0x01800180  # 7 and 8, with 9 and 10
    return w


def decode_spread(codes: Tensor, dtype: torch.dtype) -> Tensor:
    """Codes u8 (rows, columns / 2) in that order -> (rows, columns) of `dtype`."""
    words = codes.contiguous().view(torch.int32)
    pairs = [(_shifted(words, by) ^ (words if added else 0)) & HALVES for by, added in SHIFTS]
    halves = torch.stack(pairs, -1).view(torch.float16).flatten(1)
    return (halves.float() * UNSCALE).to(dtype)


def _shifted(words: Tensor, left: int) -> Tensor:
    """Zeros come in on either side."""
    return words << left if left >= 0 else (words >> -left) & ((1 << (32 + left)) - 1)
