"""The trainable model: DeepSeek-V4's architecture on batches of packed rows.

The same numbers as the runtime's model (tests compare both with `transformers`), arranged for training:
whole rows at once, experts as one dense product, no cache. Weights live in `ParameterDict`s, one a layer.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dsv4chat.assets.training import hyper
from dsv4chat.assets.training.attention import Rows
from dsv4chat.assets.training.layer import LayerFunction, LayerKind, Weights, layer_function, layer_kind
from dsv4chat.assets.training.packing import Batch
from dsv4chat.assets.training.parameters import hash_table, head_parameters, layer_parameters
from dsv4chat.assets.training.rotary import hadamard, rope_tables
from dsv4chat.runtime.config import ModelConfig


@dataclass(frozen=True)
class Hidden:
    """What the layers give: x (B, T, hidden) before the head, the indexers' summed loss, load (layers, E)."""

    x: Tensor
    index_loss: Tensor
    load: Tensor


class TrainableModel(nn.Module):
    """All weights, and the forward pass over packed rows.

    `compute` is the dtype of activations and 16-bit matrices. `rounded`: keys and values pass through the
    number formats of the cache. `compile_with` wraps each kind of layer's function (identity: run eagerly).
    """

    def __init__(
        self,
        config: ModelConfig,
        *,
        row_length: int,
        seed: int = 0,
        compute: torch.dtype = torch.float32,
        rounded: bool = False,
        compile_with: Callable[[Callable], Callable] | None = None,
    ) -> None:
        super().__init__()
        self.config, self.compute, self.rounded = config, compute, rounded
        generator = torch.Generator().manual_seed(seed)
        self.outer = head_parameters(config, generator, compute)
        self.layers = nn.ModuleList(
            layer_parameters(config, i, generator, compute) for i in range(config.num_layers)
        )
        self.gate_bias = nn.Buffer(torch.zeros(config.num_layers, config.num_experts))
        tables = [hash_table(config, generator) for _ in range(config.num_hash_layers)]
        self.hash_tables = nn.ParameterList(nn.Parameter(t, requires_grad=False) for t in tables)
        cos, sin = rope_tables(config, row_length)
        self.cos, self.sin = nn.Buffer(cos, persistent=False), nn.Buffer(sin, persistent=False)
        self.rotation = nn.Buffer(hadamard(config.index_head_dim), persistent=False)
        self._compile_with = compile_with or (lambda function: function)
        self._functions: dict[LayerKind, LayerFunction] = {}
        self._head_loss = self._compile_with(head_loss)
        self._collapse = self._compile_with(final_collapse)

    def rows(self, batch: Batch) -> Rows:
        """Positions and document bounds of a batch, as the layers want them."""
        index = torch.arange(batch.start.shape[1], device=batch.start.device)
        position = (index - batch.start).long()
        return Rows(batch.start, self.cos[position], self.sin[position], batch.block_start)

    def hidden(self, batch: Batch, *, sparse: bool) -> Hidden:
        """Run the layers; CSA layers attend to the indexer's choice if `sparse`, else to every block."""
        rows = self.rows(batch)
        x = F.embedding(batch.ids, self.outer["embedding"]).unsqueeze(2)
        x = x.expand(-1, -1, self.config.hc_mult, -1).contiguous()
        losses, loads = [], []
        for i, parameters in enumerate(self.layers):
            weights: Weights = dict(parameters.items())
            chosen = None
            if self.config.is_hash_layer(i):
                chosen = self._hash_choice(i, batch.ids)
            else:
                weights["gate_bias"] = self.gate_bias[i]
            x, loss, load = self._function(i, sparse)(x, weights, rows, self.rotation, chosen)
            losses.append(loss)
            loads.append(load)
        outer = self.outer
        x = self._collapse(
            x, outer["head_hc_fn"], outer["head_hc_base"], outer["head_hc_scale"], outer["norm"], self.config
        )
        return Hidden(x, torch.stack(losses).sum(), torch.stack(loads))

    def logits(self, x: Tensor) -> Tensor:
        """(..., vocab) f32 of the layers' output x (..., hidden)."""
        return F.linear(x, self.outer["head"]).float()

    def loss(self, batch: Batch, *, sparse: bool) -> tuple[Tensor, Hidden]:
        """Weighted mean cross-entropy of the batch's targets, and what the layers gave."""
        hidden = self.hidden(batch, sparse=sparse)
        total = self._head_loss(hidden.x, self.outer["head"], batch.targets, batch.weights)
        return total / batch.weights.sum().clamp(min=1.0), hidden

    def _function(self, layer: int, sparse: bool) -> LayerFunction:
        kind = layer_kind(self.config, layer, sparse=sparse, rounded=self.rounded)
        if kind not in self._functions:
            self._functions[kind] = self._compile_with(layer_function(self.config, kind))
        return self._functions[kind]

    def _hash_choice(self, layer: int, ids: Tensor) -> Tensor:
        """(B*T, E) bool: the experts of the table's rows."""
        rows = self.hash_tables[layer][ids.flatten()].long()
        chosen = torch.zeros(rows.shape[0], self.config.num_experts, dtype=torch.bool, device=ids.device)
        return chosen.scatter_(1, rows, True)


def final_collapse(
    x: Tensor, fn: Tensor, base: Tensor, scale: Tensor, norm: Tensor, config: ModelConfig
) -> Tensor:
    """Streams (B, T, n, hidden) to the head's input (B, T, hidden): last collapse, final norm."""
    return hyper.rms_norm(hyper.head(x, fn, base, scale, config), norm, config.norm_eps)


def head_loss(x: Tensor, head: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Sum over tokens of weight * cross-entropy: x (B, T, hidden), head (vocab, hidden), targets and
    weights (B, T).
    """
    logits = F.linear(x.flatten(0, 1), head).float()
    losses = torch.logsumexp(logits, -1) - logits.gather(1, targets.flatten().unsqueeze(1)).squeeze(1)
    return (losses * weights.flatten()).sum()
