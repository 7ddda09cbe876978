"""One layer's mixture of experts for one token on the CPU: `moe.MoE`, on numpy views. See `decode.py`."""

import numpy as np
import torch

from dsv4chat.kernels.packed import dense
from dsv4chat.runtime.decode_arrays import Floats
from dsv4chat.runtime.moe import MoE


class DecodeMoE:
    """Buffers and numpy views of one layer's experts. Row k of the buffers is the shared expert."""

    def __init__(self, moe: MoE) -> None:
        config, weights = moe.config, moe.weights
        self.k = config.experts_per_token
        self.inner = config.moe_inner_size
        self.scaling = config.routed_scaling_factor
        self.limit = np.float32(config.swiglu_limit)
        (inputs,) = weights.inputs
        self.inputs: Floats = inputs.weight.numpy()
        self.projected = np.empty(self.inputs.shape[0], np.float32)
        self.table = None if weights.table is None else weights.table.numpy()
        self.bias = None if weights.bias is None else weights.bias.numpy()
        self.gate_up: list[Floats] = list(dense(weights.gate_up, torch.float32).numpy())
        self.down: list[Floats] = list(dense(weights.down, torch.float32).numpy())
        self.shared_down: Floats = dense(weights.shared_down, torch.float32).numpy()
        self.hidden = np.empty((self.k + 1, 2 * self.inner), np.float32)
        self.shares = np.ones((self.k + 1, 1), np.float32)
        self.added = np.empty(config.hidden_size, np.float32)

    def forward(self, x: Floats, out: Floats, token: int) -> None:
        """x (hidden,), normalised -> out (hidden,)."""
        np.dot(self.inputs, x, out=self.projected)
        scores = np.sqrt(np.logaddexp(0, self.projected[2 * self.inner :]))
        if self.table is not None:
            chosen = self.table[token]
        else:
            # A stable sort of the negated scores puts the lowest index first among equals.
            chosen = np.sort(np.argsort(-(scores + self.bias), kind="stable")[: self.k])
        picked = scores[chosen]
        self.shares[: self.k, 0] = picked * (self.scaling / (float(picked.sum()) + 1e-20))

        experts = chosen.tolist()
        for row, expert in enumerate(experts):
            np.dot(self.gate_up[expert], x, out=self.hidden[row])
        self.hidden[self.k] = self.projected[: 2 * self.inner]
        gate = np.minimum(self.hidden[:, : self.inner], self.limit)
        up = np.minimum(self.hidden[:, self.inner :], self.limit)
        np.maximum(up, -self.limit, out=up)
        up *= gate
        np.negative(gate, out=gate)
        np.exp(gate, out=gate)
        gate += np.float32(1.0)
        up /= gate
        up *= self.shares
        np.dot(self.shared_down, up[self.k], out=out)
        for row, expert in enumerate(experts):
            np.dot(self.down[expert], up[row], out=self.added)
            out += self.added
