"""The router of a mixture of experts: scores, the choice, its weights; one warp a token.

s = sqrt(softplus(logits));  chosen = the k highest s + bias (lowest index on ties), or the token's table row
weights = s[chosen] / sum(s[chosen]) * scaling
"""

from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import ptx

MOST_EXPERTS = 512
A_LANE = MOST_EXPERTS // 32
LOWEST = -3.0e38


def _score(logit: Any) -> Any:
    """sqrt(log(1 + e^x)) = sqrt(max(x, 0) + log1p(e^-|x|)); a series where 1 + e would lose the e."""
    small = ptx.exponential(-ptx.magnitude(logit))
    series = small * (1.0 - small * (0.5 - small * (1.0 / 3.0 - small * 0.25)))
    exact = ptx.logarithm(small + 1.0)
    soft = ptx.pick(small < 0.03, series, exact)
    return ptx.root(cute.arch.fmax(logit, Float32(0.0)) + soft)


@cute.kernel
def _kernel(
    logits: Int64,
    bias: Int64,
    table: Int64,
    tokens: Int64,
    ids: Int64,
    weights: Int64,
    experts: Int32,
    picks: Int32,
    scaling: Float32,
):
    tid, _, _ = cute.arch.thread_idx()
    token, _, _ = cute.arch.block_idx()
    cute.arch.griddepcontrol_launch_dependents()
    cute.arch.griddepcontrol_wait()
    scores = cute.make_rmem_tensor((A_LANE,), Float32)
    ranks = cute.make_rmem_tensor((A_LANE,), Float32)
    for i in cutlass.range_constexpr(A_LANE):
        expert = i * 32 + tid
        scores[i] = Float32(0.0)
        ranks[i] = Float32(LOWEST)
        if expert < experts:
            logit = ptx.load_f32(logits + (token * experts + expert).to(Int64) * 4)
            scores[i] = _score(logit)
            ranks[i] = scores[i]
            if bias != 0:
                ranks[i] = scores[i] + ptx.load_f32(bias + expert.to(Int64) * 4)
            # NaN loses to every number and is still a valid index.
            ranks[i] = cute.arch.fmax(ranks[i], Float32(LOWEST))
    mine_id = Int32(0)  # lane p keeps pick p
    mine_score = Float32(0.0)
    for pick in cutlass.range(picks, unroll=1):
        best = Float32(-3.4e38)
        best_id = Int32(1 << 20)
        score = Float32(0.0)
        if table != 0:
            row = ptx.load_64(tokens + token.to(Int64) * 8)[0]
            best_id = ptx.load_64(table + (row * picks + pick).to(Int64) * 8)[0]
            for i in cutlass.range_constexpr(A_LANE):
                if i * 32 + tid == best_id:
                    score = scores[i]
        else:
            for i in cutlass.range_constexpr(A_LANE):
                if ranks[i] > best:
                    best = ranks[i]
                    best_id = i * 32 + tid
            for step in cutlass.range_constexpr(5):
                other = cute.arch.shuffle_sync_bfly(best, 1 << step)
                other_id = cute.arch.shuffle_sync_bfly(best_id, 1 << step)
                if (other > best) | ((other == best) & (other_id < best_id)):
                    best = other
                    best_id = other_id
            for i in cutlass.range_constexpr(A_LANE):
                if i * 32 + tid == best_id:
                    score = scores[i]
                    ranks[i] = Float32(-3.4e38)
        score = cute.arch.warp_reduction_sum(score)
        if tid == pick:
            mine_id = best_id
            mine_score = score
    total = cute.arch.warp_reduction_sum(mine_score) + 1e-20
    if tid < picks:
        at = (token * picks + tid).to(Int64) * 4
        ptx.store_32(ids + at, mine_id)
        ptx.store_f32(weights + at, mine_score / total * scaling)


@cute.jit
def router(
    logits: Int64,
    bias: Int64,
    table: Int64,
    tokens: Int64,
    ids: Int64,
    weights: Int64,
    experts: Int32,
    picks: Int32,
    scaling: Float32,
):
    _kernel(logits, bias, table, tokens, ids, weights, experts, picks, scaling).launch(
        grid=(1, 1, 1), block=(32, 1, 1)
    )
