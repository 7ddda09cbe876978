"""What of a matrix is a block's in `one_row`: a run of units, numbered tile after tile."""

from dataclasses import dataclass
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import arithmetic, ptx
from dsv4chat.kernels.cute.units import wide


@dataclass(frozen=True)
class Run:
    """A block's units, numbered tile after tile; all Int32 of the kernel.

    units: of a tile; first, last: the run; k: columns of a row. Where a tile's columns are those of several
    matrices, its picks, one behind the other: row_units of each; pick_of(unit); and bases(pick), where its
    codes and scales begin.
    """

    units: Any
    first: Any
    last: Any
    k: Any
    row_units: Any = None
    pick_of: Any = None
    bases: Any = None

    def holds(self, tile: Any) -> Any:
        """Whether some of the tile, which is not before the run, is this block's."""
        return tile * self.units < self.last

    def begun(self, tile: Any) -> Any:
        """Whether the tile's first unit is this block's."""
        return tile * self.units >= self.first

    def whole(self, tile: Any) -> Any:
        """Whether the tile is this block's alone."""
        return (tile * self.units >= self.first) & ((tile + 1) * self.units <= self.last)


def run_of(block: Any, shares: tuple[Any, Any, Any], units: Any, k: Any, *picks: Any) -> Run:
    """Block number `block`. shares: portion, rest, split: `portion` tiles, of the first `rest` blocks one
    more; with split, units.
    """
    portion, rest, split = shares
    grain = arithmetic.pick(split == 0, units, Int32(1))
    first = block * portion + cutlass.min(block, rest)
    count = portion + (block < rest).to(Int32)
    return Run(units, first * grain, (first + count) * grain, k, *picks)


@cute.jit
def store_part(
    run: cutlass.Constexpr, split: Int32, tile: Int32, there: Any, at: Int64, stride: Int32, value: Float32
):
    """A row's sum, `there` or nothing; of a tile that is not cut the other part is zero."""
    if there:
        begun = run.begun(tile)
        part = at + wide(arithmetic.pick(begun, Int32(0), stride)) * 4
        ptx.store_f32(part, value)
        if (split != 0) & run.whole(tile):
            ptx.store_f32(at + wide(stride) * 4, Float32(0.0))
