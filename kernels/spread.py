"""NVFP4 codes in the order of `kernels.cute.spread_order`, in PyTorch."""

import torch
from torch import Tensor

from dsv4chat.kernels.cute.spread_order import HALVES, PLACES, STEPS

UNSCALE = 2.0**14
CHUNK = 1 << 24  # words worked on at once


def spread_(codes: Tensor) -> Tensor:
    """Codes u8 (..., bytes), bytes a multiple of 4, as stored -> in that order, in place."""
    words = codes.view(torch.int32).view(-1)
    for start in range(0, words.shape[0], CHUNK):
        part = words[start : start + CHUNK]
        part.copy_(_spread_words(part))
    return codes


def _spread_words(words: Tensor) -> Tensor:
    result = torch.zeros_like(words)
    for pair, (sign, size) in enumerate(PLACES):
        byte = words >> (8 * pair)
        result |= (byte & 0x07) << size
        result |= ((byte >> 3) & 1) << sign
        result |= ((byte >> 4) & 0x07) << (size + 16)
        result |= ((byte >> 7) & 1) << (sign + 16)
    return result


def decode_spread(codes: Tensor, dtype: torch.dtype) -> Tensor:
    """Codes u8 (rows, columns / 2) in that order -> (rows, columns) of `dtype`."""
    words = codes.contiguous().view(torch.int32)
    pairs = [words & HALVES]
    for mask, factor in STEPS:
        pairs.append(((words & mask) * factor) & HALVES)
    halves = torch.stack(pairs, -1).view(torch.float16).flatten(1)
    return (halves.float() * UNSCALE).to(dtype)
