"""Products and experts against float64."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from dsv4chat.kernels.cute import arrange, pairs, products, routing
from dsv4chat.kernels.cute.checked import Checked, relative_error
from dsv4chat.kernels.cute.experts import Experts
from dsv4chat.kernels.cute.machine import Machine
from dsv4chat.kernels.fp8 import TILE
from dsv4chat.kernels.packed import Packed

PRODUCT_BOUND = 2e-5
HALVES_BOUND = 2.0**-11
EXPERTS_BOUND = 1e-3
HIDDEN = 5.0  # the size of w1 x and w3 x in the checks: the clamp at 10 acts on some


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


def _ready(machine: Machine, packed: Packed) -> arrange.Matrix:
    ready = arrange.matrix(packed, machine.spread)
    assert ready is not None
    return ready


def linear(machine: Machine, format: str, rows: int, columns: int, n: int) -> Checked:
    device = machine.device
    first, second = (random_packed(format, (count, columns), device) for count in (rows, 24))
    x = _activations(n, columns, device, n)
    out = torch.full((n, rows + 24), torch.nan, device=device)
    ready = [_ready(machine, first), _ready(machine, second)]
    products.Linear(machine, ready)(x, out)
    reference = _operand(x, format) @ torch.cat([_values(first), _values(second)]).T
    error = relative_error(out, reference)
    return Checked(ready[0].kernel("linear"), f"{rows} x {columns}, {n} rows", error, PRODUCT_BOUND)


def in_parts(machine: Machine, format: str, rows: int, columns: int) -> Checked:
    """One row whose result comes in two parts where blocks end within a tile."""
    device = machine.device
    packed = random_packed(format, (rows, columns), device)
    x = _activations(1, columns, device, 0)
    ready = _ready(machine, packed)
    out = products.Linear(machine, [ready])(x, parts=True)
    reference = _operand(x, format) @ _values(packed).T
    error = relative_error(out.double().sum(0, keepdim=True), reference)
    what = f"{rows} x {columns}, {len(out)} parts"
    return Checked(ready.kernel("linear"), what, error, PRODUCT_BOUND)


def pair(machine: Machine, format: str, rows: int, columns: int, n: int) -> Checked:
    """A matrix of the format and one in bfloat16."""
    device = machine.device
    first = random_packed(format, (rows, columns), device)
    other = random_packed("bf16", (rows // 2 + 24, columns), device)
    x = _activations(n, columns, device, 0)
    ready = _ready(machine, first), _ready(machine, other)
    assert pairs.Pair.fits(*ready)
    out = torch.cat(pairs.Pair(machine, *ready)(x), 1)
    parts = [_operand(x, f) @ _values(p).T for f, p in ((format, first), ("bf16", other))]
    error = relative_error(out, torch.cat(parts, 1))
    return Checked(f"pair_{format}", f"{rows} x {columns}, {n} rows", error, PRODUCT_BOUND)


def grouped(machine: Machine, format: str, n: int) -> Iterator[Checked]:
    packed = random_packed(format, (3, 256, 1024), machine.device)
    x = _activations(n, 3 * 1024, machine.device, n)
    out = torch.full((n, 3 * 256), torch.nan, device=machine.device)
    ready = _ready(machine, packed)
    call = products.Grouped(machine, ready)
    call(x, out)
    parts = _operand(x, format).view(n, 3, 1024)
    reference = torch.einsum("ngk,grk->ngr", parts, _values(packed)).reshape(n, -1)
    what = f"3 groups, {n} rows"
    yield Checked(ready.kernel("linear"), what, relative_error(out, reference), PRODUCT_BOUND)
    error = relative_error(call(x, halves=True), reference.clamp(-65504, 65504))
    yield Checked(ready.kernel("linear"), f"{what}, halves", error, HALVES_BOUND)


def _swiglu(gate: Tensor, up: Tensor, limit: float) -> Tensor:
    gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    return gate / (1 + torch.exp(-gate)) * up


def experts(
    machine: Machine, format: str, inner: int, d: int, n: int, picks: int, settled: int | None = None
) -> Checked:
    """settled: with activations of this kind that were there before."""
    device, count, limit = machine.device, picks + 3, 10.0
    if format == "fp8" and inner % TILE:
        inner = TILE
    gate_up = random_packed(format, (count, 2 * inner, d), device, HIDDEN * d**-0.5)
    down = random_packed(format, (count, d, inner), device)
    if down.row_factor is not None:
        down = Packed(down.format, down.codes, down.scales, down.row_factor[:, :1].expand(-1, d).contiguous())
    x = _activations(n, d, device, n if settled is None else settled)
    early = settled is not None
    ids = torch.stack([torch.randperm(count, device=device)[:picks] for _ in range(n)]).int()
    weights, add = torch.rand(n, picks, device=device), torch.randn(n, d, device=device)
    one, two = _ready(machine, gate_up), _ready(machine, down)
    call = Experts(machine, one, two, limit)
    if n == 1:
        halved = torch.cat([add * 0.25, add * 0.75])
        out = call(x, ids, weights, halved, settled=early, parts=True).sum(0, keepdim=True)
    else:
        out = torch.full((n, d), torch.nan, device=device)
        call(x, ids, weights, add, out)
    reference = add.double()
    w13, w2 = _values(gate_up), _values(down)
    for row in range(n):
        for pick in range(picks):
            expert = int(ids[row, pick])
            gate, up = (w13[expert] @ _operand(x[row], format)).chunk(2)
            hidden = _swiglu(gate, up, limit) * weights[row, pick].double()
            reference[row] += w2[expert] @ hidden
    what = f"{inner} x {d}, {n} rows, {picks} picks{', settled' * early}"
    bound = EXPERTS_BOUND * (8 if format == "bf16" else 1)
    return Checked(two.kernel("down"), what, relative_error(out, reference), bound)


def shared_expert(machine: Machine, format: str, inner: int, d: int, n: int) -> Checked:
    device, limit = machine.device, 10.0
    if format == "fp8" and inner % TILE:
        inner = TILE
    gate_up = random_packed(format, (2 * inner, d), device, HIDDEN * d**-0.5)
    down = random_packed(format, (d, inner), device)
    x = _activations(n, d, device, n + 1)
    out = torch.full((n, d), torch.nan, device=device)
    one, two = _ready(machine, gate_up), _ready(machine, down)
    Experts(machine, one, two, limit)(x, out=out)
    gate, up = (_operand(x, format) @ _values(gate_up).T).chunk(2, 1)
    reference = _swiglu(gate, up, limit) @ _values(down).T
    bound = EXPERTS_BOUND * (8 if format == "bf16" else 1)
    return Checked(
        one.kernel("gate_up"), f"shared {inner} x {d}, {n} rows", relative_error(out, reference), bound
    )


def router_and_shared(machine: Machine, format: str, inner: int, d: int, n: int) -> Checked:
    """The router's logits and the shared expert's hidden layer, one below the other."""
    device, limit = machine.device, 10.0
    gate_up = random_packed(format, (2 * inner, d), device, HIDDEN * d**-0.5)
    down = random_packed(format, (d, inner), device)
    router = random_packed("bf16", (264, d), device, HIDDEN * d**-0.5)
    shared = Experts(machine, _ready(machine, gate_up), _ready(machine, down), limit)
    x = _activations(n, d, device, 0)
    both = pairs.RouterAndShared(machine, _ready(machine, router), shared)(x)
    assert both is not None
    gate, up = (_operand(x, format) @ _values(gate_up).T).chunk(2, 1)
    parts = [_operand(x, "bf16") @ _values(router).T, _swiglu(gate, up, limit)]
    error = max(relative_error(out, exact) for out, exact in zip(both, parts, strict=True))
    return Checked(f"router_{format}", f"{inner} x {d}, {n} rows", error, EXPERTS_BOUND)


def choice_and_shared(machine: Machine, format: str, inner: int, d: int, n: int) -> Checked:
    """The choice, which has to be the router's own, and what the shared expert makes of its hidden layer."""
    device = machine.device
    gate_up = random_packed(format, (2 * inner, d), device)
    down = random_packed(format, (d, inner), device)
    shared = Experts(machine, _ready(machine, gate_up), _ready(machine, down), 10.0)
    choice = routing.Router(machine, torch.randn(264, device=device), None, 6, 2.5)
    logits, tokens = torch.randn(n, 264, device=device), torch.zeros(n, dtype=torch.int64, device=device)
    hidden = _activations(n, inner, device, 1)
    found = pairs.ChoiceAndShared(machine, choice, shared)(logits, tokens, hidden)
    assert found is not None
    ids, weights, out = found
    expected, shares = choice(logits, tokens)
    same = bool((ids == expected).all()) and bool((weights == shares).all())
    reference = _operand(hidden, format) @ _values(down).T
    error = relative_error(out.double().view(-1, n, d).sum(0), reference) if same else math.nan
    return Checked(f"choice_{format}", f"{inner} x {d}, {n} rows, {len(out)} parts", error, PRODUCT_BOUND)


def extremes(machine: Machine) -> Checked:
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
    ready = _ready(machine, packed)
    products.Linear(machine, [ready])(x, out)
    reference = x.double() @ _values(packed).T
    error = float((out.double() - reference).abs().max())
    return Checked(ready.kernel("linear"), "every code and scale, absolute", error, 1e-12)
