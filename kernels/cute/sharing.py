"""How the tiles of a matrix are shared out between blocks and warps, so that all are busy to the end."""

from dataclasses import dataclass

from dsv4chat.kernels.cute.arrange import Matrix
from dsv4chat.kernels.cute.driver import Number
from dsv4chat.kernels.cute.machine import Machine

WARPS = 8  # of a block
ROUND_COST = 0.5  # what ending a tile takes, in units


def split(machine: Machine, tiles: int, units: int, slots: int, shared: int, most: int) -> tuple[int, int]:
    """As `shared_out`, for each of `slots` matrices. most: blocks a multiprocessor takes by its registers."""
    return shared_out(max(1, machine.blocks_at_once(shared, most) // slots), tiles, units)


def shared_out(blocks: int, tiles: int, units: int) -> tuple[int, int]:
    """(how many of `blocks` to use, logarithm of how many warps share a tile), so that the last round is as
    full as can be.
    """
    best = (0.0, 1, 0)
    for bits in (3, 2, 1, 0):
        wk = 1 << bits
        if wk > units:
            continue
        at_once = WARPS // wk
        used = min(blocks, -(-tiles // at_once))
        rounds = -(-tiles // (used * at_once))
        cost = rounds * (-(-units // wk) + ROUND_COST)
        if best[0] == 0 or cost < best[0]:
            best = (cost, used, bits)
    return best[1], best[2]


@dataclass(frozen=True)
class Portions:
    """How blocks share the tiles of a matrix with one row of activations: `portion` each, of the first `rest`
    blocks one more; cut: units instead of tiles, so that a result comes in two parts. Without blocks: as with
    several rows.
    """

    blocks: int
    portion: int
    rest: int
    cut: bool = False

    @staticmethod
    def of(blocks: int, tiles: int, units: int, cut: bool = False) -> "Portions":
        """For up to `blocks` blocks; cut: whether that is allowed, where whole tiles come out uneven."""
        blocks = min(blocks, tiles)
        if cut and tiles % blocks:
            return Portions(blocks, *divmod(tiles * units, blocks), cut=True)
        blocks = -(-tiles // -(-tiles // blocks))  # as few as end with the others
        return Portions(blocks, *divmod(tiles, blocks))

    @staticmethod
    def for_one_row(
        matrix: Matrix, blocks: int, cut: bool = False, a_tile: int = 16, rows: int | None = None
    ) -> "Portions":
        """Of up to `blocks` blocks: `one_row` is for NVFP4, and for what is cut. a_tile: rows of a tile, of
        `rows` instead of all.
        """
        cut = cut and matrix.format in ("fp8", "nvfp4")
        share = Portions.of(blocks, -(-(rows or matrix.rows) // a_tile), matrix.units, cut)
        return share if share.cut or matrix.format == "nvfp4" else Portions(0, 0, 0)

    def kernel(self, matrix: Matrix, family: str) -> str:
        """Name of the kernel."""
        return matrix.kernel(family) + ("_one" if self.blocks else "")

    @property
    def numbers(self) -> list[Number]:
        """As a kernel's arguments."""
        return [Number(self.portion), Number(self.rest)]
