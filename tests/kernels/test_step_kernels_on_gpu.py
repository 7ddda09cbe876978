"""The kernels for cache rows and the indexer against their PyTorch versions, on a GPU, over many tokens."""

import math

import pytest
import torch

from dsv4chat.kernels.cute.operations import Operations, operations
from dsv4chat.kernels.kv_rows import Fp4Keys, Fp8Rows
from dsv4chat.kernels.step_index import Index, IndexSizes
from dsv4chat.kernels.step_rows import BlockWeights, CacheRows, Moment, OpenRows, RowWeights

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

D, KEY, LOW, WINDOW, PAIRS = 512, 128, 1536, 128, 32
TOKENS = 300


@pytest.fixture(scope="module")
def device() -> torch.device:
    return torch.device("cuda")


@pytest.fixture(scope="module")
def cute(device: torch.device) -> Operations:
    return operations("cute", device)


def rotation(position: int, device: torch.device) -> torch.Tensor:
    frequencies = 160000.0 ** (-torch.arange(PAIRS, device=device) / PAIRS)
    return torch.polar(torch.ones(PAIRS, device=device), position * frequencies)[None]


class State:
    """One layer's cache, everything that is not written poisoned."""

    def __init__(self, ratio: int, device: torch.device) -> None:
        csa = ratio == 4
        rows, keys = Fp8Rows(D, 2 * PAIRS), Fp4Keys(KEY, device)
        self.ring = torch.zeros(WINDOW, rows.width, dtype=torch.uint8, device=device)
        self.values = torch.full((WINDOW, D), torch.nan, device=device)
        self.open = self.key = None
        if ratio:
            blocks = TOKENS // ratio + 1
            self.open = open_rows(ratio, D, csa, torch.zeros(blocks, rows.width, device=device).byte())
        if csa:
            self.key = open_rows(ratio, KEY, True, torch.zeros(blocks, keys.width, device=device).byte())

    def tensors(self) -> dict[str, torch.Tensor]:
        found = {"ring": self.ring, "values": self.values}
        for name, part in (("open", self.open), ("key", self.key)):
            if part is not None:
                found |= {f"{name} rows": part.rows, f"{name} stored": part.stored}
                if part.previous is not None:
                    found[f"{name} previous"] = part.previous
        return found


def open_rows(ratio: int, d: int, overlap: bool, stored: torch.Tensor) -> OpenRows:
    device = stored.device
    previous = None
    if overlap:
        previous = torch.zeros(2, ratio, d, device=device)
        previous[1] = -torch.inf
    return OpenRows(torch.zeros(2, ratio, d * (1 + overlap), device=device), previous, stored)


@pytest.mark.parametrize("ratio", [0, 4, 128])
def test_cache_rows_are_those_of_pytorch(ratio: int, cute: Operations, device: torch.device) -> None:
    torch.manual_seed(ratio)
    csa = ratio == 4
    width, key_width = D * (1 + csa), 2 * KEY

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, device=device)

    block = BlockWeights(normal(ratio, width) * 0.5, 1 + 0.2 * normal(D)) if ratio else None
    key = BlockWeights(normal(ratio, key_width) * 0.5, 1 + 0.2 * normal(KEY)) if csa else None
    weights = RowWeights(1 + 0.2 * normal(D), 1 + 0.2 * normal(LOW), 1e-6, block, key)
    formats = Fp8Rows(D, 2 * PAIRS), Fp4Keys(KEY, device)
    plain, kernel = CacheRows(weights, *formats), cute.cache_rows(weights, *formats)
    assert type(kernel) is not CacheRows
    theirs, ours = State(ratio, device), State(ratio, device)
    for position in range(TOKENS):
        now = Moment(
            torch.tensor([position], device=device),
            torch.tensor([True], device=device),
            rotation(position, device),
            rotation(position // ratio * ratio, device) if ratio else None,
        )
        low, kv = normal(1, LOW) * 3, normal(1, D) * 2
        parts = [(normal(1, width), normal(1, width)) if ratio else None]
        parts.append((normal(1, key_width), normal(1, key_width)) if csa else None)
        results = []
        for operation, state in ((plain, theirs), (kernel, ours)):
            places = (state.open, state.key)
            given = [None if p is None else (*p, place) for p, place in zip(parts, places, strict=True)]
            results.append(operation(now, low, kv, state.ring, state.values, *given))
        assert (results[0] - results[1].float()).norm() <= 4e-3 * results[0].norm()
    for name, expected in theirs.tensors().items():
        got = ours.tensors()[name]
        if "stored" in name:  # rows of closed blocks; PyTorch writes those of the open one as well
            expected, got = expected[: TOKENS // ratio], got[: TOKENS // ratio]
        if got.dtype == torch.uint8:  # a value on the edge of a rounding may fall on either side
            assert (got != expected).float().mean() <= 2e-3, name
        else:
            finite = torch.isfinite(expected)
            assert torch.equal(finite, torch.isfinite(got)), name
            close = (got - expected)[finite].abs() <= 1e-5 + 0.07 * expected[finite].abs()
            assert close.float().mean() >= 0.998, name


def test_a_step_that_is_not_alive_leaves_the_block_before(cute: Operations, device: torch.device) -> None:
    block = BlockWeights(torch.randn(4, 2 * D, device=device), torch.ones(D, device=device))
    weights = RowWeights(torch.ones(D, device=device), torch.ones(LOW, device=device), 1e-6, block)
    operation = cute.cache_rows(weights, Fp8Rows(D, 2 * PAIRS), Fp8Rows(D, 2 * PAIRS))
    state = State(4, device)
    assert state.open is not None
    assert state.open.previous is not None
    x = torch.randn(1, 2 * D, device=device)
    for alive in (False, True):
        before = state.open.previous.clone()
        now = Moment(
            torch.tensor([7], device=device),
            torch.tensor([alive], device=device),
            rotation(7, device),
            rotation(4, device),
        )
        operation(now, x[:, :LOW], x[:, :D], state.ring, state.values, (x, x, state.open))
        assert torch.equal(state.open.previous, before) is not alive


@pytest.mark.parametrize(
    ("blocks", "visible", "picks"),
    [
        (40, 25, 16),
        (40, 16, 16),
        (40, 3, 16),
        (40, 0, 16),
        (1024, 1000, 512),
        (1024, 1024, 512),
        (1024, 513, 512),
        (4100, 4096, 512),
        (4100, 4097, 512),
        (9000, 8765, 1024),
        (16384, 16384, 512),
        (40001, 39002, 1024),
    ],
)
@pytest.mark.parametrize("ties", [False, True])
def test_the_chosen_blocks_are_the_highest(
    blocks: int, visible: int, picks: int, ties: bool, cute: Operations, device: torch.device
) -> None:
    torch.manual_seed(blocks + ties)
    keys = Fp4Keys(KEY, device)
    stored = keys.store(torch.randn(blocks, KEY, device=device))
    if ties:
        stored[:] = stored[torch.randint(blocks // 8, (blocks,), device=device)]
    stored[visible:] = 0xFF
    sizes = IndexSizes(64, KEY, picks, 4, KEY**-0.5 * 64**-0.5)
    query, weights = torch.randn(1, 64 * KEY, device=device) * 2, torch.randn(1, 64, device=device)
    position, table = torch.tensor([4 * visible - 1], device=device), rotation(4 * visible - 1, device)
    operation = cute.index(sizes, keys)
    assert type(operation) is not Index
    found = operation(query, weights, table, position, stored).tolist()
    assert found == operation(query, weights, table, position, stored).tolist()
    got = sorted(found)
    assert len(set(got)) == picks
    if visible <= picks:
        assert got[:visible] == list(range(visible))
        assert min(got[visible:], default=visible) >= visible
        return
    # Scores in float64 from the rounded query and keys.
    turned = torch.view_as_complex(query.view(64, KEY)[:, 64:].reshape(64, PAIRS, 2).contiguous()) * table
    rounded = query.view(64, KEY).clone()
    rounded[:, 64:] = torch.view_as_real(turned).flatten(1)
    exact = torch.relu(keys.query(rounded).double() @ keys.load(stored[:visible]).double().T)
    scores = (weights.double() * sizes.scale @ exact)[0]
    edge = scores.sort(descending=True).values[picks - 1]
    error = 1e-5 * scores.abs().max()
    chosen = torch.zeros(visible, dtype=torch.bool, device=device)
    chosen[torch.tensor(got, device=device)] = True
    assert bool(chosen[scores > edge + error].all())
    assert not bool(chosen[scores < edge - error].any())
    if ties:  # equal keys have equal scores: the lowest numbers of a tie come first
        same = (stored[:visible] == stored[int(scores.sort(descending=True).indices[picks - 1])]).all(1)
        numbers = same.nonzero().flatten().tolist()
        taken = [number in set(got) for number in numbers]
        assert taken == sorted(taken, reverse=True)


def test_zero_scores_of_either_sign_are_ties(cute: Operations, device: torch.device) -> None:
    keys = Fp4Keys(KEY, device)
    stored = keys.store(torch.zeros(200, KEY, device=device))
    sizes = IndexSizes(64, KEY, 50, 4, 0.1)
    weights = -torch.ones(1, 64, device=device)
    query = torch.randn(1, 64 * KEY, device=device)
    position = torch.tensor([799], device=device)
    got = cute.index(sizes, keys)(query, weights, rotation(799, device), position, stored)
    assert sorted(got.tolist()) == list(range(50))
    assert math.isclose(float(keys.load(stored).abs().max()), 0.0)
