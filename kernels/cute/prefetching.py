"""Bringing into L2 what a later kernel reads first, so that its loads do not queue behind weights."""

import cutlass
import cutlass.cute as cute
from cutlass import Int32, Int64

from dsv4chat.kernels.cute import ptx

LINE_BYTES = 128


@cute.jit
def prefetch(start: Int64, lines: Int32, block: Int32, blocks: Int32, threads: cutlass.Constexpr):
    """`lines` lines from `start` on, by all threads of `blocks` blocks."""
    tid, _, _ = cute.arch.thread_idx()
    for line in cutlass.range(block * threads + tid, lines, blocks * threads, unroll=1):
        ptx.prefetch(start + (line * LINE_BYTES).to(Int64))
