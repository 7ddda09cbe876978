"""How a product is shared out between blocks and warps."""

import pytest

from dsv4chat.kernels.cute import experts, sharing


class Machine:
    """As much of a GPU as sharing out asks for."""

    def __init__(self, processors=132):
        self.processors = processors

    def blocks_at_once(self, shared, most):
        return self.processors * max(1, min(most, 233472 // (shared + 1024)))


@pytest.mark.parametrize("tiles", [1, 2, 15, 96, 128, 256, 300, 2048, 8080])
@pytest.mark.parametrize("units", [1, 2, 3, 4, 16, 28, 64])
@pytest.mark.parametrize("slots", [1, 6, 8, 48, 400])
def test_every_warp_of_a_tile_has_a_unit_and_no_block_is_without_a_tile(tiles, units, slots):
    blocks, bits = sharing.split(Machine(), tiles, units, slots, 100_000, 2)
    warps = 1 << bits
    at_once = sharing.WARPS // warps
    assert warps <= min(units, sharing.WARPS)
    assert blocks >= 1
    assert (blocks - 1) * at_once < tiles


@pytest.mark.parametrize("blocks", [1, 24, 100, 264])
@pytest.mark.parametrize("tiles", [1, 16, 24, 96, 164, 448])
def test_blocks_are_never_more_than_there_are(blocks, tiles):
    used, bits = sharing.shared_out(blocks, tiles, 28)
    assert 1 <= used <= blocks
    # With all of a block's warps on a tile there would be as many rounds as a lone block has tiles.
    rounds = -(-tiles // (used * (sharing.WARPS >> bits)))
    assert rounds * -(-28 // (1 << bits)) <= -(-tiles // used) * 28


@pytest.mark.parametrize("blocks", [1, 24, 264])
@pytest.mark.parametrize("tiles", [1, 16, 96, 256, 448, 4608])
@pytest.mark.parametrize("units", [1, 4, 28, 72])
@pytest.mark.parametrize("cut", [False, True])
def test_one_row_is_shared_out_evenly(blocks, tiles, units, cut):
    """Every unit is some block's, no block has none, and a tile is cut at most once."""
    share = sharing.Portions.of(blocks, tiles, units, cut)
    assert 1 <= share.blocks <= min(blocks, tiles)
    assert share.portion >= 1
    grain = 1 if share.cut else units
    counts = [(share.portion + (block < share.rest)) * grain for block in range(share.blocks)]
    assert sum(counts) == tiles * units
    assert max(counts) - min(counts) <= grain
    if share.cut:
        assert cut
        assert min(counts) >= units
    else:
        assert not cut or tiles % min(blocks, tiles) == 0
        assert max(counts) == -(-tiles // min(blocks, tiles)) * units


def test_a_large_matrix_fills_the_machine():
    blocks, _ = sharing.split(Machine(), 8080, 28, 1, 100_000, 2)
    assert blocks == 264


def test_a_pick_is_found_by_one_multiplication():
    """unit * ceil(2^20 / units) >> 20 == unit // units, for all the units 32 picks can have."""
    for units in range(1, 129):
        factor = -(-(1 << experts.PICK_BITS) // units)
        assert all((unit * factor) >> experts.PICK_BITS == unit // units for unit in range(32 * units))
        assert 32 * units * factor < 1 << 31
