"""The mixture of experts of one layer: router or hash table, routed experts, one shared expert.

The first layers choose experts by a table of the token's id, but still weight them by the router's scores.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from dsv4chat.kernels.linear import Stack
from dsv4chat.kernels.moe import experts, router_scores, routing_weights, swiglu
from dsv4chat.kernels.packed import Matrix, dense
from dsv4chat.kernels.topk import top_k
from dsv4chat.runtime.config import ModelConfig
from dsv4chat.runtime.trace import Choice, LayerTrace


@dataclass
class MoEWeights:
    """inputs: stacks over the layer's input, in this order over all stacks: shared w1, shared w3, router
    gate.

    table: (vocab, k) int64 in hash layers, else None; bias: (experts,) float32 in the others, else None.
    gate_up: (experts, 2 * inner, hidden), w1 first; down: (experts, hidden, inner); shared_down: (hidden,
    inner).
    """

    inputs: list[Stack]
    table: Tensor | None
    bias: Tensor | None
    gate_up: Matrix
    down: Matrix
    shared_down: Matrix


class MoE:
    """One layer's mixture of experts."""

    def __init__(self, config: ModelConfig, weights: MoEWeights) -> None:
        self.config = config
        self.weights = weights

    def forward(self, x: Tensor, ids: Tensor, trace: LayerTrace | None = None) -> Tensor:
        """x (n, hidden), normalised, and the tokens' ids (n,) -> (n, hidden) float32."""
        config, weights = self.config, self.weights
        gate, up, logits = (part for stack in weights.inputs for part in stack(x))
        scores = router_scores(logits)
        if weights.table is not None:
            chosen = weights.table[ids]
        elif weights.bias is not None:
            biased = scores + weights.bias
            chosen = top_k(biased, config.experts_per_token)
            if trace is not None:
                trace.experts.append(Choice(0, biased, chosen))
        share = routing_weights(scores, chosen, config.routed_scaling_factor)
        hidden = swiglu(gate, up, config.swiglu_limit)
        shared = torch.mm(hidden, dense(weights.shared_down, x.dtype).t()).float()
        return shared + experts(x, chosen, share, weights.gate_up, weights.down, config.swiglu_limit)
