"""Checks kernels on the GPU at hand against float64: random inputs, poisoned outputs, odd shapes.

Products, experts, connections, router and attention; cache rows and index have tests of their own
(`pytest -m gpu`).

The reference multiplies the stored values, in float64, with the activations as the tensor cores get them.
A result is right when its error, ||out - reference|| / ||reference||, is below a bound that follows from what
is rounded: float32 sums for the products, halves of the hidden layer for the experts.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from dsv4chat.kernels.cute import arrange, attending, connection, products, routing
from dsv4chat.kernels.cute.machine import Machine
from dsv4chat.kernels.fp8 import TILE
from dsv4chat.kernels.kv_rows import Fp8Rows
from dsv4chat.kernels.packed import Packed
from dsv4chat.kernels.step_operations import AttentionSizes, ConnectionWeights

PRODUCT_BOUND = 2e-5
EXPERTS_BOUND = 1e-3
HIDDEN = 5.0  # the size of w1 x and w3 x in the checks: the clamp at 10 acts on some
# Rows and columns: on the tiles, off them, and with a short last unit. The larger ones make blocks go round.
SHAPES = ((16, 512), (7, 32), (130, 544), (257, 1536), (1000, 4096), (96, 160), (9000, 1024), (600, 7168))
ROWS = (1, 2, 5, 8)
EXPERTS = ((256, 512), (96, 160), (640, 1024), (2048, 4096))  # inner size, d


@dataclass(frozen=True)
class Checked:
    """One comparison. error: relative; bound: what it must stay below."""

    kernel: str
    what: str
    error: float
    bound: float

    @property
    def right(self) -> bool:
        """NaN is never right."""
        return self.error < self.bound


def random_packed(format: str, shape: tuple[int, ...], device: torch.device, size: float = 4.0) -> Packed:
    """Random codes and scales, values of about `size`: every code, scales far apart, a factor that differs by
    row.
    """
    *lead, rows, columns = shape
    if format == "bf16":
        return Packed("plain", torch.randn(shape, device=device).mul(size).bfloat16())
    raw = torch.randint(0, 256, (*lead, rows, columns), dtype=torch.uint8, device=device)
    if format == "fp8":
        finite = torch.where(raw & 0x7F == 0x7F, raw ^ 1, raw).view(torch.float8_e4m3fn)
        tiles = (*lead, -(-rows // TILE), -(-columns // TILE))
        power = 127 + round(math.log2(size / 130))  # random E4M3 bits are about 130
        return Packed(
            "FP8", finite, torch.randint(power - 4, power + 2, tiles, device=device).to(torch.uint8)
        )
    scales = torch.rand((*lead, rows, columns // 16), device=device).mul(8).sub(6).exp2()
    factor = torch.rand((*lead, rows), device=device).add(0.5).mul(size / 4)
    codes = raw[..., : columns // 2].contiguous()
    return Packed("NVFP4", codes, scales.to(torch.float8_e4m3fn), factor)


def check(machine: Machine, quick: bool = False) -> Iterator[Checked]:
    """Each of these kernels in many shapes; `quick`: few of them."""
    shapes = SHAPES[:4] if quick else SHAPES
    for format in ("nvfp4", "fp8", "bf16"):
        for rows, columns in shapes:
            for n in (1, 8) if quick else ROWS:
                yield _linear(machine, format, rows, columns, n)
        yield _grouped(machine, format, 1)
        yield _grouped(machine, format, 8)
        for inner, d in EXPERTS[:2] if quick else EXPERTS:
            for n, picks in ((1, 6), (3, 4)) if quick else ((1, 6), (3, 4), (8, 6)):
                yield _experts(machine, format, inner, d, n, picks)
            yield _shared(machine, format, inner, d, 1)
            yield _shared(machine, format, inner, d, 8)
    yield _extremes(machine)
    for position in (3, 1000) if quick else (0, 3, 127, 128, 1000, 5000):
        for heads, ratio, picks in ((16, 0, 0), (64, 128, 0), (128, 4, 0), (64, 4, 100)):
            yield _attention(machine, position, heads, ratio, picks)
    for experts in (6, 64, 256, 384):
        yield from _router(machine, experts, 3)
    for d in (64, 4096, 7168) if not quick else (256,):
        for n in (1, 3):
            for head in (False, True):
                yield from _connection(machine, d, n, head)


def relative_error(out: Tensor, reference: Tensor) -> float:
    """||out - reference|| / ||reference||, NaN when anything is."""
    difference = (out.double() - reference.double()).norm()
    return float(difference / reference.double().norm())


def _activations(n: int, columns: int, device: torch.device, kind: int) -> Tensor:
    """Random rows in one of the three types."""
    x = torch.randn(n, columns, device=device)
    return x.to((torch.bfloat16, torch.float16, torch.float32)[kind % 3])


def _values(packed: Packed) -> Tensor:
    values = packed.values(torch.float32).double()
    return values if packed.row_factor is None else values * packed.row_factor.double()[..., None]


def _operand(x: Tensor, format: str) -> Tensor:
    """What the tensor cores multiply: halves, or bfloat16 with bfloat16 weights."""
    return x.to(torch.bfloat16 if format == "bf16" else torch.float16).double()


def _ready(packed: Packed) -> arrange.Matrix:
    ready = arrange.matrix(packed)
    assert ready is not None
    return ready


def _linear(machine: Machine, format: str, rows: int, columns: int, n: int) -> Checked:
    device = machine.device
    first, second = (random_packed(format, (count, columns), device) for count in (rows, 24))
    x = _activations(n, columns, device, n)
    out = torch.full((n, rows + 24), torch.nan, device=device)
    ready = [_ready(first), _ready(second)]
    products.Linear(machine, ready)(x, out)
    reference = _operand(x, format) @ torch.cat([_values(first), _values(second)]).T
    error = relative_error(out, reference)
    return Checked(ready[0].kernel("linear"), f"{rows} x {columns}, {n} rows", error, PRODUCT_BOUND)


def _grouped(machine: Machine, format: str, n: int) -> Checked:
    packed = random_packed(format, (3, 256, 1024), machine.device)
    x = _activations(n, 3 * 1024, machine.device, n)
    out = torch.full((n, 3 * 256), torch.nan, device=machine.device)
    ready = _ready(packed)
    products.Grouped(machine, ready)(x, out)
    parts = _operand(x, format).view(n, 3, 1024)
    reference = torch.einsum("ngk,grk->ngr", parts, _values(packed)).reshape(n, -1)
    return Checked(
        ready.kernel("linear"), f"3 groups, {n} rows", relative_error(out, reference), PRODUCT_BOUND
    )


def _swiglu(gate: Tensor, up: Tensor, limit: float) -> Tensor:
    gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    return gate / (1 + torch.exp(-gate)) * up


def _experts(machine: Machine, format: str, inner: int, d: int, n: int, picks: int) -> Checked:
    device, count, limit = machine.device, 9, 10.0
    if format == "fp8" and inner % TILE:
        inner = TILE
    gate_up = random_packed(format, (count, 2 * inner, d), device, HIDDEN * d**-0.5)
    down = random_packed(format, (count, d, inner), device)
    if down.row_factor is not None:
        down = Packed(down.format, down.codes, down.scales, down.row_factor[:, :1].expand(-1, d).contiguous())
    x = _activations(n, d, device, n)
    ids = torch.stack([torch.randperm(count, device=device)[:picks] for _ in range(n)]).int()
    weights, add = torch.rand(n, picks, device=device), torch.randn(n, d, device=device)
    out = torch.full((n, d), torch.nan, device=device)
    one, two = _ready(gate_up), _ready(down)
    products.Experts(machine, one, two, limit)(x, ids, weights, add, out)
    reference = add.double()
    w13, w2 = _values(gate_up), _values(down)
    for row in range(n):
        for pick in range(picks):
            expert = int(ids[row, pick])
            gate, up = (w13[expert] @ _operand(x[row], format)).chunk(2)
            hidden = _swiglu(gate, up, limit) * weights[row, pick].double()
            reference[row] += w2[expert] @ hidden
    what = f"{inner} x {d}, {n} rows, {picks} picks"
    bound = EXPERTS_BOUND * (8 if format == "bf16" else 1)
    return Checked(two.kernel("down"), what, relative_error(out, reference), bound)


def _shared(machine: Machine, format: str, inner: int, d: int, n: int) -> Checked:
    device, limit = machine.device, 10.0
    if format == "fp8" and inner % TILE:
        inner = TILE
    gate_up = random_packed(format, (2 * inner, d), device, HIDDEN * d**-0.5)
    down = random_packed(format, (d, inner), device)
    x = _activations(n, d, device, n + 1)
    out = torch.full((n, d), torch.nan, device=device)
    one, two = _ready(gate_up), _ready(down)
    products.Experts(machine, one, two, limit)(x, out=out)
    gate, up = (_operand(x, format) @ _values(gate_up).T).chunk(2, 1)
    reference = _swiglu(gate, up, limit) @ _values(down).T
    bound = EXPERTS_BOUND * (8 if format == "bf16" else 1)
    return Checked(
        one.kernel("gate_up"), f"shared {inner} x {d}, {n} rows", relative_error(out, reference), bound
    )


def _extremes(machine: Machine) -> Checked:
    """Every NVFP4 code with every E4M3 scale, subnormal ones too, one product each: exact."""
    device = machine.device
    codes = torch.arange(16, dtype=torch.uint8, device=device).repeat_interleave(127)
    scale = torch.arange(127, dtype=torch.uint8, device=device).repeat(16)
    packed_codes = torch.zeros(16 * 127, 256, dtype=torch.uint8, device=device)
    column = torch.arange(16 * 127, device=device) % 512
    nibble = codes << (4 * (column % 2)).to(torch.uint8)
    packed_codes[torch.arange(16 * 127, device=device), column // 2] = nibble
    scales = scale[:, None].expand(-1, 32).contiguous().view(torch.float8_e4m3fn)
    packed = Packed("NVFP4", packed_codes, scales)
    x = torch.full((1, 512), 1.0, device=device)
    out = torch.full((1, 16 * 127), torch.nan, device=device)
    ready = _ready(packed)
    products.Linear(machine, [ready])(x, out)
    reference = x.double() @ _values(packed).T
    error = float((out.double() - reference).abs().max())
    return Checked(ready.kernel("linear"), "every code and scale, absolute", error, 1e-12)


def _connection(machine: Machine, d: int, n: int, head: bool) -> Iterator[Checked]:
    """Both launches, with and without a sublayer's output, against float64."""
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
    peak = torch.full((n,), torch.nan, device=device)
    new, x, following = connection.Connection(machine, weights)(streams, output, gates, peak)
    wide = [part.double() for part in (weights.fn, weights.scale, weights.base, weights.norm)]
    comb = gates[:, 4:].view(n, 4, 4).double()
    exact = gates[:, :4, None].double() * output[:, None].double()
    exact = exact + torch.einsum("nij,nid->njd", comb, streams.double())
    what = f"{'head' if head else 'layer'}, {n} x 4 x {d}"
    yield Checked("connection_mix", f"streams, {what}", relative_error(new, exact), 2.0**-8)
    stored = new.double()
    flat = stored.flatten(1)
    mix = (flat @ wide[0].T) * (flat.square().mean(1, keepdim=True) + 1e-6).rsqrt()
    pre = torch.sigmoid(mix[:, :4] * wide[1][0] + wide[2][:4]) + 1e-6
    y = torch.einsum("ni,nid->nd", pre, stored)
    y = y * (y.square().mean(1, keepdim=True) + 1e-6).rsqrt() * wide[3]
    yield Checked("connection_enter", f"x, {what}", relative_error(x, y), 2.0**-7)
    largest = flat.abs().amax(1)
    yield Checked("connection_enter", f"|X|, {what}", relative_error(peak, largest), 1e-12)
    if following is not None:
        post = 2 * torch.sigmoid(mix[:, 4:8] * wide[1][1] + wide[2][4:8])
        matrix = torch.softmax((mix[:, 8:] * wide[1][2] + wide[2][8:]).view(n, 4, 4), -1) + 1e-6
        for turn in range(39):
            matrix = matrix / (matrix.sum(1 if turn % 2 == 0 else 2, keepdim=True) + 1e-6)
        expected = torch.cat([post, matrix.flatten(1)], 1)
        yield Checked("connection_enter", f"gates, {what}", relative_error(following, expected), 1e-4)


def _router(machine: Machine, experts: int, n: int) -> Iterator[Checked]:
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


def _attention(machine: Machine, position: int, heads: int, ratio: int, picks: int) -> Checked:
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
    out = attending.Attention(machine, sizes)(query, table, at, ring, used, chosen)
    seen = [rows.load(ring[: position + 1])]
    if ratio:
        seen.append(rows.load(blocks[:visible] if chosen is None else blocks[chosen[chosen < visible]]))
    keys = torch.cat(seen).double()
    q = query.view(heads, d).double()
    q = _turned(q * (q.square().mean(1, keepdim=True) + 1e-6).rsqrt(), table)
    scores = torch.cat([q @ keys.T * d**-0.5, sink.double()[:, None]], 1)
    expected = _turned(torch.softmax(scores, 1)[:, :-1] @ keys, table.conj())
    what = f"position {position}, {heads} heads, ratio {ratio}, {picks or 'all'}"
    return Checked("attention_partial", what, relative_error(out, expected.view(1, -1)), 2e-3)


def _turned(x: Tensor, table: Tensor) -> Tensor:
    """The last channels as complex numbers times the table, in float64."""
    tail = torch.view_as_complex(x[:, -2 * table.shape[1] :].reshape(x.shape[0], -1, 2)) * table.to(
        torch.complex128
    )
    return torch.cat([x[:, : -2 * table.shape[1]], torch.view_as_real(tail).flatten(1)], 1)
