"""One layer's mixture of experts for one token: `runtime.moe` in static shapes, the choice on the device."""

import torch
from torch import Tensor

from dsv4chat.kernels.moe import router_scores, routing_weights, swiglu
from dsv4chat.kernels.packed import as_packed, as_packed_stack
from dsv4chat.kernels.topk import top_k
from dsv4chat.runtime.gpu.moment import Moment
from dsv4chat.runtime.gpu.sections import Sections
from dsv4chat.runtime.moe import MoE


class StepMoE:
    """One layer's mixture of experts."""

    def __init__(self, source: MoE) -> None:
        weights = source.weights
        self.config = source.config
        self.inputs = [as_packed_stack(stack) for stack in weights.inputs]
        self.table, self.bias = weights.table, weights.bias
        self.gate_up, self.down = as_packed(weights.gate_up), as_packed(weights.down)
        self.shared_down = as_packed(weights.shared_down)

    def forward(self, x: Tensor, moment: Moment, sections: Sections) -> Tensor:
        """x (1, hidden), normalised -> (1, hidden) float32."""
        config = self.config
        gate, up, logits = (part for stack in self.inputs for part in stack.multiply(x))
        sections.end("experts: shared in, router")
        scores = router_scores(logits)
        if self.table is not None:
            chosen = self.table.index_select(0, moment.token)
        else:
            assert self.bias is not None
            chosen = top_k(scores + self.bias, config.experts_per_token)
        share = routing_weights(scores, chosen, config.routed_scaling_factor)
        sections.end("experts: choice")
        shared = self.shared_down.multiply(swiglu(gate, up, config.swiglu_limit).to(x.dtype))
        sections.end("experts: shared out")
        gate, up = self.gate_up[chosen[0]].multiply_each(x).chunk(2, dim=1)
        sections.end("experts: routed in")
        hidden = swiglu(gate, up, config.swiglu_limit) * share.t()
        routed = self.down[chosen[0]].multiply_each(hidden.to(x.dtype)).sum(0, keepdim=True)
        sections.end("experts: routed out")
        return torch.add(shared, routed)
