"""The router of a mixture of experts: scores, the choice, its weights; one block a token.

s = sqrt(softplus(logits));  chosen = the k highest s + bias (lowest index on ties), or the token's table row
weights = s[chosen] / sum(s[chosen]) * scaling

The first warp chooses: a lane holds every 32nd key, and a pick is two reductions over the warp, the highest
key and the lowest expert that has it.
"""

from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from dsv4chat.kernels.cute import arithmetic, ptx, together
from dsv4chat.kernels.cute.hosting import host

MOST_EXPERTS = 512
THREADS = 256
A_THREAD = MOST_EXPERTS // THREADS
A_LANE = MOST_EXPERTS // 32
LOWEST = -3.0e38
NOBODY = -(1 << 31)  # the key of an expert that is not there, or that was picked
SHARED_BYTES = 8 * MOST_EXPERTS


def _score(logit: Any) -> Any:
    """sqrt(log(1 + e^x)) = sqrt(max(x, 0) + log1p(e^-|x|)); a series where 1 + e would lose the e."""
    small = arithmetic.exponential(-arithmetic.magnitude(logit))
    series = small * (1.0 - small * (0.5 - small * (1.0 / 3.0 - small * 0.25)))
    exact = arithmetic.logarithm(small + 1.0)
    soft = arithmetic.pick(small < 0.03, series, exact)
    return arithmetic.root(cute.arch.fmax(logit, Float32(0.0)) + soft)


def _key(value: Any) -> Any:
    """A number's bits in the order of numbers; the two zeros are one."""
    bits = arithmetic.f32_to_bits(value + 0.0)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@cute.jit
def _picked(keys_at: Int32, picks: Int32, lane: Int32) -> Int32:
    """Lane p gets the expert with the p-th highest key."""
    keys = cute.make_rmem_tensor((A_LANE,), Int32)
    for i in cutlass.range_constexpr(A_LANE):
        keys[i] = ptx.shared_load_32(keys_at + (i * 32 + lane) * 4)
    mine = Int32(0)
    for pick in cutlass.range(picks, unroll=1):
        best = keys[0]
        for i in cutlass.range_constexpr(1, A_LANE):
            best = cutlass.max(best, keys[i])
        best = together.warp_max(best)
        expert = Int32(MOST_EXPERTS)
        for i in cutlass.range_constexpr(A_LANE):
            here = i * 32 + lane
            expert = arithmetic.pick(keys[i] == best, cutlass.min(expert, here), expert)
        expert = together.warp_min(expert)
        for i in cutlass.range_constexpr(A_LANE):
            keys[i] = arithmetic.pick(expert == i * 32 + lane, Int32(NOBODY), keys[i])
        mine = arithmetic.pick(lane == pick, expert, mine)
    return mine


@cute.jit
def choose(
    early: cutlass.Constexpr,
    logits: Int64,
    bias: Int64,
    table: Int64,
    tokens: Int64,
    ids: Int64,
    weights: Int64,
    experts: Int32,
    picks: Int32,
    scaling: Float32,
    token: Int32,
):
    """A token's choice, by a whole block.

    early: the next kernel may start at once. Else it starts when the choice is there for all to see, so that
    it may read ids, past L1, before it waits for this kernel's end.
    """
    tid, _, _ = cute.arch.thread_idx()
    keys_at = cute.arch.get_dyn_smem(Int32, alignment=128).toint()
    scores_at = keys_at + 4 * MOST_EXPERTS
    numbers = [tid + i * THREADS for i in range(A_THREAD)]
    if cutlass.const_expr(early):
        cute.arch.griddepcontrol_launch_dependents()
    wanted = (bias != 0).to(Int32)
    own = [
        ptx.load_f32_if(bias + expert.to(Int64) * 4, arithmetic.pick(expert < experts, wanted, Int32(0)))
        for expert in numbers
    ]
    cute.arch.griddepcontrol_wait()
    read = [
        ptx.load_f32_if(logits + (token * experts + expert).to(Int64) * 4, (expert < experts).to(Int32))
        for expert in numbers
    ]
    for i in cutlass.range_constexpr(A_THREAD):
        score = _score(read[i])
        # NaN loses to every number and is still a valid index.
        key = _key(cute.arch.fmax(score + own[i], Float32(LOWEST)))
        there = numbers[i] < experts
        ptx.shared_store_32(keys_at + numbers[i] * 4, arithmetic.pick(there, key, Int32(NOBODY)))
        ptx.shared_store_f32(scores_at + numbers[i] * 4, score)
    cute.arch.sync_threads()
    if tid < 32:
        mine = Int32(0)
        if table != 0:
            row = ptx.load_64(tokens + token.to(Int64) * 8)[0]
            pick = cutlass.min(tid, picks - 1)
            mine = ptx.load_64(table + (row * picks + pick).to(Int64) * 8)[0]
        else:
            mine = _picked(keys_at, picks, tid)
        chosen = ptx.shared_load_f32(scores_at + mine * 4)
        total = cute.arch.warp_reduction_sum(arithmetic.pick(tid < picks, chosen, Float32(0.0))) + 1e-20
        if tid < picks:
            at = (token * picks + tid).to(Int64) * 4
            ptx.store_32(ids + at, mine)
            ptx.store_f32(weights + at, chosen / total * scaling)
        if cutlass.const_expr(not early):
            together.publish()
            cute.arch.sync_warp()
            cute.arch.griddepcontrol_launch_dependents()


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
    token, _, _ = cute.arch.block_idx()
    choose(True, logits, bias, table, tokens, ids, weights, experts, picks, scaling, token)


def router() -> Any:
    """The kernel's host side."""
    return host(_kernel, THREADS)
