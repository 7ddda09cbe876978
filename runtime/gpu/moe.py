"""One layer's mixture of experts for one token: `runtime.moe` in static shapes, the choice on the device."""

import torch
from torch import Tensor

from dsv4chat.kernels.cute.operations import Operations
from dsv4chat.kernels.moe import router_scores, routing_weights
from dsv4chat.kernels.packed import as_packed, as_packed_stack
from dsv4chat.kernels.topk import top_k
from dsv4chat.runtime.gpu.moment import Moment
from dsv4chat.runtime.gpu.sections import Sections
from dsv4chat.runtime.moe import MoE


class StepMoE:
    """One layer's mixture of experts."""

    def __init__(self, source: MoE, operations: Operations) -> None:
        weights = source.weights
        self.config = source.config
        self.table, self.bias = weights.table, weights.bias
        first = as_packed_stack(weights.inputs[0])
        limit = self.config.swiglu_limit
        self.shared = operations.experts(first.select(0, 2), as_packed(weights.shared_down), limit)
        self.routed = operations.experts(as_packed(weights.gate_up), as_packed(weights.down), limit)
        last = as_packed_stack(weights.inputs[-1])
        count = len(last.sizes)
        self.router_type = last.dtype
        self.router = operations.linear([last.select(count - 1, count)])

    def forward(self, x: Tensor, moment: Moment, sections: Sections) -> Tensor:
        """x (1, hidden), normalised -> (1, hidden) float32."""
        config = self.config
        logits = self.router(x.to(self.router_type))
        sections.end("experts: router")
        scores = router_scores(logits)
        if self.table is not None:
            chosen = self.table.index_select(0, moment.token)
        else:
            assert self.bias is not None
            chosen = top_k(scores + self.bias, config.experts_per_token)
        share = routing_weights(scores, chosen, config.routed_scaling_factor)
        sections.end("experts: choice")
        shared = self.shared(x)
        sections.end("experts: shared")
        result = self.routed(x, chosen.to(torch.int32), share, shared)
        sections.end("experts: routed")
        return result
