"""Connections, router and attention against float64."""

from collections.abc import Iterator

import torch
from torch import Tensor

from dsv4chat.kernels.cute import attending, connection, routing
from dsv4chat.kernels.cute.checked import Checked, relative_error
from dsv4chat.kernels.cute.machine import Machine
from dsv4chat.kernels.kv_rows import Fp8Rows
from dsv4chat.kernels.step_operations import AttentionSizes, ConnectionWeights


def connections(machine: Machine, d: int, n: int, head: bool) -> Iterator[Checked]:
    """With and without a sublayer's output, against float64."""
    device, mixes = machine.device, 4 if head else 24
    weights = ConnectionWeights(
        torch.randn(mixes, 4 * d, device=device) * d**-0.5,
        torch.rand(1 if head else 3, device=device) + 0.5,
        torch.randn(mixes, device=device),
        torch.rand(d, device=device) + 0.5,
        1e-6,
        1e-6,
        20,
    )
    streams = torch.randn(n, 4, d, device=device).mul(30).bfloat16()
    output = torch.randn(n, d, device=device)
    gates = torch.rand(n, 20, device=device)
    gates[:, 4:] = torch.randn(n, 16, device=device) * 2
    peak = torch.full((n,), torch.nan, device=device)
    parts = torch.cat([output * 0.25, output * 0.75]) if n > 1 else output
    new, x, following = connection.Connection(machine, weights)(streams, parts, gates, peak)
    wide = [part.double() for part in (weights.fn, weights.scale, weights.base, weights.norm)]
    comb = _sinkhorn(gates[:, 4:].view(n, 4, 4).double())
    exact = gates[:, :4, None].double() * output[:, None].double()
    exact = exact + torch.einsum("nij,nid->njd", comb, streams.double())
    what = f"{'head' if head else 'layer'}, {n} x 4 x {d}"
    yield Checked("connection", f"streams, {what}", relative_error(new, exact), 2.0**-8)
    stored = new.double()
    flat = stored.flatten(1)
    mix = (flat @ wide[0].T) * (flat.square().mean(1, keepdim=True) + 1e-6).rsqrt()
    pre = torch.sigmoid(mix[:, :4] * wide[1][0] + wide[2][:4]) + 1e-6
    y = torch.einsum("ni,nid->nd", pre, stored)
    y = y * (y.square().mean(1, keepdim=True) + 1e-6).rsqrt() * wide[3]
    yield Checked("connection", f"x, {what}", relative_error(x, y), 2.0**-7)
    largest = flat.abs().amax(1)
    yield Checked("connection", f"|X|, {what}", relative_error(peak, largest), 1e-12)
    if following is not None:
        post = 2 * torch.sigmoid(mix[:, 4:8] * wide[1][1] + wide[2][4:8])
        expected = torch.cat([post, mix[:, 8:] * wide[1][2] + wide[2][8:]], 1)
        yield Checked("connection", f"gates, {what}", relative_error(following, expected), 1e-4)


def _sinkhorn(logits: Tensor) -> Tensor:
    """(n, 4, 4) float64, 20 rounds."""
    matrix = torch.softmax(logits, -1) + 1e-6
    for turn in range(39):
        matrix = matrix / (matrix.sum(1 if turn % 2 == 0 else 2, keepdim=True) + 1e-6)
    return matrix


def routers(machine: Machine, experts: int, n: int) -> Iterator[Checked]:
    """By score with a bias, by score with many ties, and by table."""
    device = machine.device
    logits = torch.randn(n, experts, device=device) * 12
    bias = torch.randn(experts, device=device)
    tokens = torch.randint(0, 50, (n,), device=device)
    table = torch.stack([torch.randperm(experts, device=device)[:6] for _ in range(50)])
    for what, x, chosen, call in (
        ("by score", logits, None, routing.Router(machine, bias, None, 6, 2.5)),
        ("by score, ties", (logits / 12).round(), None, routing.Router(machine, None, None, 6, 2.5)),
        ("by table", logits, table[tokens], routing.Router(machine, None, table, 6, 2.5)),
    ):
        scores = torch.nn.functional.softplus(x.double()).sqrt()
        if chosen is None:
            ranks = scores + bias if "ties" not in what else scores
            chosen = torch.stack([_highest(row, 6) for row in ranks])
        ids, weights = call(x, tokens)
        order = ids.long().argsort(1)
        wrong = bool((ids.long().gather(1, order) != chosen.sort(1).values).any())
        picked = scores.gather(1, chosen.sort(1).values)
        expected = picked / picked.sum(1, keepdim=True) * 2.5
        error = relative_error(weights.gather(1, order), expected)
        yield Checked("router", f"{what}, {experts} experts", float("nan") if wrong else error, 1e-5)


def _highest(row: Tensor, k: int) -> Tensor:
    """The k highest of a row, ties to the lowest index."""
    return row.sort(descending=True, stable=True).indices[:k]


def attention(machine: Machine, position: int, heads: int, ratio: int, picks: int, settled: bool) -> Checked:
    """Against float64 over the same stored rows; rows that must not be seen hold NaN."""
    device, window, d = machine.device, 128, 512
    rows = Fp8Rows(d, 64)
    query = torch.randn(1, heads * d, device=device) * 3
    table = torch.polar(torch.ones(1, 32, device=device), torch.rand(1, 32, device=device) * 6)
    ring = rows.store(torch.randn(window, d, device=device) * 2)
    ring[position + 1 :] = 0xFF
    capacity = max(1, position // max(ratio, 1) + 7)
    blocks = rows.store(torch.randn(capacity, d, device=device) * 2)
    visible = (position + 1) // ratio if ratio else 0
    blocks[visible:] = 0xFF
    chosen = torch.randperm(capacity, device=device)[:picks] if picks else None
    sink = torch.randn(heads, device=device)
    sizes = AttentionSizes(sink, d, window, ratio, 1e-6)
    at = torch.tensor([position], device=device)
    used = blocks if ratio else None
    torch.cuda.synchronize(device)
    out = attending.Attention(machine, sizes)(query, table, at, ring, used, chosen, settled)
    seen = [rows.load(ring[: position + 1])]
    if ratio:
        seen.append(rows.load(blocks[:visible] if chosen is None else blocks[chosen[chosen < visible]]))
    keys = torch.cat(seen).double()
    q = query.view(heads, d).double()
    q = _turned(q * (q.square().mean(1, keepdim=True) + 1e-6).rsqrt(), table)
    scores = torch.cat([q @ keys.T * d**-0.5, sink.double()[:, None]], 1)
    expected = _turned(torch.softmax(scores, 1)[:, :-1] @ keys, table.conj())
    what = f"position {position}, {heads} heads, ratio {ratio}, {picks or 'all'}{', settled' * settled}"
    return Checked("attention_partial", what, relative_error(out, expected.view(1, -1)), 2e-3)


def _turned(x: Tensor, table: Tensor) -> Tensor:
    """The last channels as complex numbers times the table, in float64."""
    tail = torch.view_as_complex(x[:, -2 * table.shape[1] :].reshape(x.shape[0], -1, 2)) * table.to(
        torch.complex128
    )
    return torch.cat([x[:, : -2 * table.shape[1]], torch.view_as_real(tail).flatten(1)], 1)
