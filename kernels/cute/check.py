"""Checks kernels on the GPU at hand against float64: random inputs, poisoned outputs, odd shapes.

Products, experts, connections, router and attention; cache rows and index have tests of their own
(`pytest -m gpu`).

The reference multiplies the stored values, in float64, with the activations as the tensor cores get them.
A result is right when its error, ||out - reference|| / ||reference||, is below a bound that follows from what
is rounded: float32 sums for the products, halves of the hidden layer for the experts.
"""

from collections.abc import Iterator

from dsv4chat.kernels.cute import check_others, check_products
from dsv4chat.kernels.cute.checked import Checked
from dsv4chat.kernels.cute.machine import Machine

# Rows and columns: on the tiles, off them, and with a short last unit. The larger ones make blocks go round.
SHAPES = ((16, 512), (7, 32), (130, 544), (257, 1536), (1000, 4096), (96, 160), (9000, 1024), (600, 7168))
ROWS = (1, 2, 5, 8)
EXPERTS = ((256, 512), (96, 160), (640, 1024), (2048, 4096), (1536, 7168))  # inner size, d


def check(machine: Machine, quick: bool = False) -> Iterator[Checked]:
    """Each of these kernels in many shapes; `quick`: few of them."""
    shapes = SHAPES[:4] if quick else SHAPES
    for format in ("nvfp4", "fp8", "bf16"):
        for rows, columns in shapes:
            for n in (1, 8) if quick else ROWS:
                yield check_products.linear(machine, format, rows, columns, n)
        for rows, columns in (
            (7168, 2048),
            (5000, 1568 if format == "nvfp4" else 1552),
            (4300, 1024),
            (70000, 256),
        ):
            yield check_products.in_parts(machine, format, rows, columns)
        yield from check_products.grouped(machine, format, 1)
        yield from check_products.grouped(machine, format, 8)
        for inner, d in EXPERTS[:2] if quick else EXPERTS:
            for n, picks in ((1, 6), (3, 4)) if quick else ((1, 6), (3, 4), (8, 6)):
                yield check_products.experts(machine, format, inner, d, n, picks)
            yield check_products.experts(machine, format, inner, d, 1, 6, settled=0)
            yield check_products.shared_expert(machine, format, inner, d, 1)
            yield check_products.shared_expert(machine, format, inner, d, 8)
        for n, picks in ((1, 40), (2, 33)):
            yield check_products.experts(machine, format, 256, 512, n, picks)
        for d, kind in ((512, 1), (512, 2), (9216, 0)):  # the last more than is read early
            yield check_products.experts(machine, format, 256, d, 1, 6, settled=kind)
    for format in ("nvfp4", "fp8"):
        for rows, columns in ((136, 512), (1536, 4096), (2048, 7168)):
            for n in (1, 8):
                yield check_products.pair(machine, format, rows, columns, n)
        for inner, d in ((256, 512), (2048, 4096), (3072, 7168)):
            yield check_products.choice_and_shared(machine, format, inner, d, 1)
            for n in (1,) if format == "nvfp4" else (1, 3):
                yield check_products.router_and_shared(machine, format, inner, d, n)
    yield check_products.extremes(machine)
    for position in (3, 1000) if quick else (0, 3, 127, 128, 1000, 5000):
        for heads, ratio, picks in ((16, 0, 0), (64, 128, 0), (128, 4, 0), (64, 4, 100)):
            for settled in (False, True):
                yield check_others.attention(machine, position, heads, ratio, picks, settled)
    for experts in (6, 64, 256, 384):
        yield from check_others.routers(machine, experts, 3)
    for d in (64, 4096, 7168) if not quick else (256,):
        for n in (1, 3):
            for head in (False, True):
                yield from check_others.connections(machine, d, n, head)
