"""The weights of one hyper-connection, and the passage of the residual streams through a sublayer."""

from dataclasses import dataclass

from torch import Tensor

from dsv4chat.kernels import hyper_connections as mhc
from dsv4chat.runtime.config import ModelConfig


@dataclass
class HyperConnection:
    """fn ((2 + s) s, s * hidden), base ((2 + s) s,), scale (3,), all float32."""

    fn: Tensor
    base: Tensor
    scale: Tensor

    def enter(self, streams: Tensor, config: ModelConfig) -> tuple[Tensor, Tensor, Tensor]:
        """streams (n, s, hidden) -> the sublayer's input (n, hidden), post (n, s) and comb (n, s, s)."""
        mix = mhc.mixes(streams, self.fn, config.norm_eps)
        pre, post, comb = mhc.weights(
            mix, self.scale, self.base, config.hc_mult, config.hc_eps, config.sinkhorn_rounds
        )
        return mhc.collapse(streams, pre), post, comb
