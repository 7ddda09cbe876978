"""One layer's mixture of experts for one token: `runtime.moe` in static shapes, the choice on the device."""

from collections.abc import Sequence

from torch import Tensor

from dsv4chat.kernels.cute.operations import Operations
from dsv4chat.kernels.packed import as_packed, as_packed_stack
from dsv4chat.runtime.gpu.now import Now
from dsv4chat.runtime.gpu.sections import Sections
from dsv4chat.runtime.moe import MoE


class StepMoE:
    """One layer's mixture of experts."""

    def __init__(self, source: MoE, operations: Operations) -> None:
        weights = source.weights
        self.config = source.config
        config = self.config
        self.choice = operations.router(
            weights.bias, weights.table, config.experts_per_token, config.routed_scaling_factor
        )
        first = as_packed_stack(weights.inputs[0])
        limit = config.swiglu_limit
        self.shared = operations.experts(first.select(0, 2), as_packed(weights.shared_down), limit)
        self.routed = operations.experts(as_packed(weights.gate_up), as_packed(weights.down), limit)
        last = as_packed_stack(weights.inputs[-1])
        count = len(last.sizes)
        self.router_type = last.dtype
        router = last.select(count - 1, count)
        self.router = operations.linear([router])
        self.together = operations.router_and_shared(router, self.shared)
        self.choosing = operations.choice_and_shared(self.choice, self.shared)

    def forward(
        self, x: Tensor, now: Now, sections: Sections, ahead: Sequence[Tensor] = (), parts: bool = False
    ) -> Tensor:
        """x (1, hidden), normalised -> (1, hidden) float32; with parts perhaps two. ahead: what
        is read after it.
        """
        both = self.together(x) if self.together is not None and self.router_type == x.dtype else None
        logits = self.router(x.to(self.router_type)) if both is None else both[0]
        sections.end("experts: router")
        chosen = None if both is None or self.choosing is None else self.choosing(logits, now.token, both[1])
        if chosen is None:
            ids, share = self.choice(logits, now.token)
            sections.end("experts: choice")
            shared = self.shared(x)
        else:
            ids, share, shared = chosen
        sections.end("experts: shared")
        result = self.routed(x, ids, share, shared, ahead=ahead, settled=self.shared.settles, parts=parts)
        sections.end("experts: routed")
        return result
