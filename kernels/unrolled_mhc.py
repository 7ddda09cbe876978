"""The gates of one token's hyper-connection in plain Python floats, for the CPU's decode step.

Sinkhorn on one 4 x 4 matrix is some 1,500 additions and divisions in 39 dependent rounds. As tensor
operations each round costs several calls, a hundred times the arithmetic; unrolled over Python's floats
the whole takes some tens of microseconds. The source is written out once for the model's number of
streams s.

With M = diag(u) K diag(v), dividing rows by (sum + eps) is 1/u' = K v + eps / u, and columns alike; w = 1/u
and z = 1/v are what is iterated. The formulae are those of `dsv4chat.kernels.hyper_connections`, in float64.
"""

import math
from collections.abc import Callable
from typing import Any

Gates = Callable[[list[float]], tuple[list[float], list[float]]]

SIGMOID_FLOOR = -700.0  # exp(700) is still finite


def make_gates(streams: int, eps: float, rounds: int) -> Gates:
    """A function of one token's scaled and biased mixes, a list of (2 + s) s floats.

    It returns pre (s,) and, row by row, the (s, s + 1) matrix [comb^T | post], which takes the streams
    and the sublayer's output, one below the other, to the next streams.
    """
    source = "\n    ".join(_lines(streams))
    names: dict[str, Any] = {"exp": math.exp, "e": eps, "rounds": range(rounds - 1), "floor": SIGMOID_FLOOR}
    exec(f"def gates(mixes):\n    {source}", names)  # built from numbers only
    gates: Gates = names["gates"]
    return gates


def _lines(s: int) -> list[str]:
    index = range(s)
    pre, post = [f"p{i}" for i in index], [f"q{i}" for i in index]
    k = [[f"k{i}_{j}" for j in index] for i in index]
    lines = [f"({', '.join([*pre, *post, *(name for row in k for name in row)])},) = mixes"]
    for i in index:
        lines.append(f"m = max({', '.join([*k[i], k[i][0]])})")
        lines += [f"{name} = exp({name} - m)" for name in k[i]]
        lines.append(f"t = {' + '.join(k[i])}")
        lines += [f"{name} = {name} / t + e" for name in k[i]]
    lines += [f"z{j} = {' + '.join(k[i][j] for i in index)} + e" for j in index]
    lines += [f"w{i} = 1.0" for i in index]
    lines.append("for _ in rounds:")
    lines += [f"    w{i} = {' + '.join(f'{k[i][j]} / z{j}' for j in index)} + e * w{i}" for i in index]
    lines += [f"    z{j} = {' + '.join(f'{k[i][j]} / w{i}' for i in index)} + e * z{j}" for j in index]
    sigmoids = [_sigmoid(name) for name in pre]
    rows = [[*(f"{k[i][j]} / (w{i} * z{j})" for i in index), f"2 * {_sigmoid(post[j])}"] for j in index]
    lines.append(
        f"return [{', '.join(f'{x} + e' for x in sigmoids)}], [{', '.join(x for row in rows for x in row)}]"
    )
    return lines


def _sigmoid(name: str) -> str:
    return f"1 / (1 + exp(-({name} if {name} > floor else floor)))"
