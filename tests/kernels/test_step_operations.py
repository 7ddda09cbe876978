"""The step's operations in PyTorch against float64 arithmetic written out here."""

import math

import pytest
import torch

from dsv4chat.kernels import step_operations as step
from dsv4chat.kernels.fp8 import FP8Weight
from dsv4chat.kernels.kv_rows import Fp8Rows, PlainRows
from dsv4chat.kernels.nvfp4 import NVFP4Weight
from dsv4chat.kernels.packed import Packed, pack

FORMATS = ("nvfp4", "fp8", "bfloat16")


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(7)


def stored(format, rows, columns):
    """A matrix in a format, and its values in float64."""
    values = torch.randn(rows, columns)
    weight = {
        "nvfp4": NVFP4Weight.quantize,
        "fp8": FP8Weight.quantize,
        "bfloat16": torch.Tensor.bfloat16,
    }[format](values)
    (packed,) = pack([weight])
    exact = weight.double() if isinstance(weight, torch.Tensor) else weight.dequantize().double()
    return packed, exact


def stack(format, count, rows, columns):
    ones = [stored(format, rows, columns) for _ in range(count)]
    room = ones[0][0].empty(count)
    for index, (packed, _) in enumerate(ones):
        room.put(index, packed)
    return room, torch.stack([exact for _, exact in ones])


def close(out, expected, bound=1e-5):
    error = (out.double() - expected).norm() / expected.norm()
    assert error < bound, float(error)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("format", FORMATS)
def test_matrices_of_one_input_stand_one_below_the_other(format, rows):
    (first, a), (second, b) = stored(format, 40, 64), stored("bfloat16", 7, 64)
    x = torch.randn(rows, 64)
    out = torch.full((rows, 47), torch.nan)
    result = step.Linear([first, second])(x, out)
    assert result is out
    close(out, x.double() @ torch.cat([a, b]).T)


@pytest.mark.parametrize("format", FORMATS)
def test_the_first_rows_alone_are_the_first_of_the_results(format):
    packed, exact = stored(format, 256, 128)
    x = torch.randn(1, 128)
    out = step.Linear([packed]).first(128)(x)
    assert out.shape == (1, 128)
    close(out, x.double() @ exact[:128].T)
    below, _ = stored("bfloat16", 7, 128)
    close(step.Linear([packed, below]).first(256)(x)[:, :256], x.double() @ exact.T)


@pytest.mark.parametrize("format", FORMATS)
def test_each_group_takes_its_own_part_of_the_input(format):
    packed, values = stack(format, 3, 16, 32)
    x = torch.randn(2, 3 * 32)
    expected = torch.cat([x[:, 32 * g : 32 * g + 32].double() @ values[g].T for g in range(3)], 1)
    close(step.Grouped(packed)(x), expected)


def expert(x, w13, w2, limit):
    gate, up = (w13 @ x).chunk(2)
    gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    return gate / (1 + torch.exp(-gate)) * up, w2


@pytest.mark.parametrize("format", FORMATS)
def test_chosen_experts_are_weighted_clamped_and_summed(format):
    gate_up, w13 = stack(format, 5, 2 * 32, 64)
    down, w2 = stack(format, 5, 64, 32)
    x, add = torch.randn(2, 64), torch.randn(2, 64)
    ids = torch.tensor([[4, 0, 2], [1, 2, 3]], dtype=torch.int32)
    weights = torch.rand(2, 3)
    limit = 6.0
    expected = add.double()
    clamped = 0
    for row in range(2):
        for pick in range(3):
            chosen = int(ids[row, pick])
            clamped += int((w13[chosen] @ x[row].double() > limit).sum())
            hidden, matrix = expert(x[row].double(), w13[chosen], w2[chosen], limit)
            expected[row] += matrix @ (hidden * weights[row, pick].double())
    assert clamped > 10  # the clamp does something
    close(step.Experts(gate_up, down, limit)(x, ids, weights, add), expected)


@pytest.mark.parametrize("format", FORMATS)
def test_a_shared_expert_runs_for_every_row_without_weights(format):
    gate_up, w13 = stored(format, 2 * 32, 64)
    down, w2 = stored(format, 64, 32)
    x = torch.randn(3, 64)
    rows = [expert(row.double(), w13, w2, 10.0) for row in x]
    expected = torch.stack([matrix @ hidden for hidden, matrix in rows])
    close(step.Experts(gate_up, down, 10.0)(x), expected)


@pytest.mark.parametrize("head", [False, True])
def test_a_connection_leaves_one_sublayer_and_enters_the_next(head):
    n, s, d = 2, 4, 32
    mixes = s if head else (2 + s) * s
    weights = step.ConnectionWeights(
        torch.randn(mixes, s * d) * 0.1,
        torch.rand(1 if head else 3) + 0.5,
        torch.randn(mixes),
        torch.rand(d) + 0.5,
        1e-6,
        1e-6,
        20,
    )
    streams, output, gates = torch.randn(n, s, d) * 9, torch.randn(n, d), torch.rand(n, s + s * s)
    peak = torch.full((n,), torch.nan)
    new, x, following = step.Connection(weights)(streams, output, gates, peak)
    X, F, g = streams.double(), output.double(), gates.double()
    expected = torch.zeros(n, s, d, dtype=torch.float64)
    for token in range(n):
        for j in range(s):
            expected[token, j] = g[token, j] * F[token]
            for i in range(s):
                expected[token, j] += g[token, s + i * s + j] * X[token, i]
    close(new, expected)
    close(peak, expected.flatten(1).abs().amax(1))
    flat = expected.flatten(1)
    mix = (flat @ weights.fn.double().T) / (flat.square().mean(1, keepdim=True) + 1e-6).sqrt()
    pre = 1 / (1 + torch.exp(-(mix[:, :s] * weights.scale[0].double() + weights.base[:s].double()))) + 1e-6
    y = (pre[:, :, None] * expected).sum(1)
    close(x, y / (y.square().mean(1, keepdim=True) + 1e-6).sqrt() * weights.norm.double())
    if head:
        assert following is None
        return
    post = 2 / (1 + torch.exp(-(mix[:, s : 2 * s] * weights.scale[1] + weights.base[s : 2 * s])))
    comb = torch.softmax((mix[:, 2 * s :] * weights.scale[2] + weights.base[2 * s :]).view(n, s, s), 2) + 1e-6
    for turn in range(39):
        comb = comb / (comb.sum(1 if turn % 2 == 0 else 2, keepdim=True) + 1e-6)
    close(following, torch.cat([post, comb.flatten(1)], 1))


def test_before_the_first_sublayer_the_streams_stay_as_they_are():
    weights = step.ConnectionWeights(
        torch.randn(24, 64), torch.ones(3), torch.randn(24), torch.ones(16), 1e-6, 1e-6, 20
    )
    streams = torch.randn(1, 4, 16)
    new, _, gates = step.Connection(weights)(streams)
    assert torch.equal(new, streams)
    assert gates.shape == (1, 20)


def test_the_router_takes_the_highest_and_the_lowest_index_on_ties():
    logits = torch.tensor([[0.0, 3.0, 3.0, -1.0, 3.0, 2.0]])
    ids, weights = step.Router(None, None, 3, 2.5)(logits, torch.tensor([0]))
    assert sorted(ids[0].tolist()) == [1, 2, 4]
    assert math.isclose(float(weights.sum()), 2.5, rel_tol=1e-6)
    ids, _ = step.Router(None, None, 2, 1.0)(logits, torch.tensor([0]))
    assert sorted(ids[0].tolist()) == [1, 2]


def test_the_router_chooses_by_bias_and_weights_by_score():
    logits = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
    bias = torch.tensor([9.0, 9.0, 0.0, 0.0])
    ids, weights = step.Router(bias, None, 2, 1.5)(logits, torch.tensor([0]))
    scores = [math.sqrt(math.log1p(math.exp(value))) for value in (1.0, 2.0)]
    expected = {0: scores[0] / sum(scores) * 1.5, 1: scores[1] / sum(scores) * 1.5}
    found = dict(zip(ids[0].tolist(), weights[0].tolist(), strict=True))
    assert found == pytest.approx(expected, rel=1e-6)


def test_the_router_takes_a_tokens_table_row_but_the_scores_weights():
    table = torch.tensor([[0, 1], [3, 2]])
    logits = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
    ids, weights = step.Router(None, table, 2, 1.0)(logits, torch.tensor([1]))
    scores = {index: math.sqrt(math.log1p(math.exp(logits[0, index]))) for index in (3, 2)}
    found = dict(zip(ids[0].tolist(), weights[0].tolist(), strict=True))
    assert found == pytest.approx({k: v / sum(scores.values()) for k, v in scores.items()}, rel=1e-6)


@pytest.mark.parametrize("rows", [PlainRows(48, torch.float32), Fp8Rows(48, 16)], ids=["plain", "fp8"])
@pytest.mark.parametrize("ratio", [0, 4])
@pytest.mark.parametrize("position", [2, 7, 40])
def test_attention_sees_the_window_and_the_visible_blocks_and_the_sink(rows, ratio, position):
    heads, d, window = 3, 48, 8
    query = torch.randn(1, heads * d) * 4
    table = torch.polar(torch.ones(1, 8), torch.rand(1, 8) * 6)
    ring = rows.store(torch.randn(window, d))
    blocks = rows.store(torch.randn(20, d))
    for part, used in ((ring, position + 1), (blocks, (position + 1) // max(ratio, 1))):
        part[used:] = math.nan if part.is_floating_point() else 0xFF  # NaN in E4M3, too
    sink = torch.randn(heads)
    for chosen in (None, torch.tensor([0, 9, 3])) if ratio else (None,):
        sizes = step.AttentionSizes(sink, d, window, ratio, 1e-6)
        out = step.Attention(sizes, rows)(
            query, table, torch.tensor([position]), ring, blocks if ratio else None, chosen
        )
        seen = [rows.load(ring)[: min(position + 1, window)]]
        if ratio:
            visible = (position + 1) // ratio
            numbers = range(visible) if chosen is None else [int(i) for i in chosen if i < visible]
            seen.append(rows.load(blocks)[list(numbers)])
        keys = torch.cat(seen).double()
        q = query.view(heads, d).double()
        q = turned(q / (q.square().mean(1, keepdim=True) + 1e-6).sqrt(), table)
        weights = torch.exp(q @ keys.T / math.sqrt(d))
        total = weights.sum(1, keepdim=True) + torch.exp(sink.double())[:, None]
        close(out, turned(weights @ keys / total, table.conj()).view(1, -1), 1e-5)


def turned(x, table):
    """The last 16 channels as complex numbers, multiplied."""
    result = x.clone()
    pairs = torch.view_as_complex(x[:, -16:].reshape(x.shape[0], 8, 2).contiguous()) * table.to(
        torch.complex128
    )
    result[:, -16:] = torch.view_as_real(pairs).flatten(1)
    return result


def test_a_matrix_of_many_is_one_of_its_parts():
    packed, values = stack("nvfp4", 3, 16, 32)
    assert isinstance(packed[1], Packed)
    close(packed[1].dense(torch.float32), values[1])
