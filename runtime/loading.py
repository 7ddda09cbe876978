"""From a checkpoint's tensors to the weights of the layers: dequantised, stacked, and streamed one at a time.

Each tensor is read, turned into its working type and copied to its place before the next one is read, so
that at most one tensor is held twice.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from dsv4chat.kernels.formats import Weight, to_tensor
from dsv4chat.kernels.linear import Stack, Stacked
from dsv4chat.kernels.packed import Matrix
from dsv4chat.runtime.attention import AttentionWeights
from dsv4chat.runtime.compressor import Compressor
from dsv4chat.runtime.config import ModelConfig
from dsv4chat.runtime.hyper_connections import HyperConnection
from dsv4chat.runtime.indexer import Indexer
from dsv4chat.runtime.moe import MoEWeights


class WeightSource(Protocol):
    """Where weights come from: a checkpoint, or anything that names its tensors like one."""

    @property
    def config(self) -> ModelConfig: ...

    @property
    def bytes_total(self) -> int: ...

    def names(self) -> Iterable[str]: ...

    def read(self, name: str) -> Weight: ...


class Loader:
    """Reads tensors by their native names onto a device, and counts what was read.

    packed: whether quantised matrices stay so (`gpu.loading`); here they become plain tensors.
    """

    packed = False

    def __init__(
        self,
        source: WeightSource,
        device: torch.device,
        dtype: torch.dtype,
        progress: Callable[[int, int, int, int], None] | None,
    ) -> None:
        self.source = source
        self.config = source.config
        self.device = device
        self.dtype = dtype
        self.progress = progress
        self.bytes_done = 0
        self.tensors_done = 0
        self.parameters = 0
        self.tensors_total = sum(not name.startswith("mtp.") for name in source.names())

    def tensor(self, name: str, dtype: torch.dtype) -> Tensor:
        """One tensor as `dtype`, contiguous on the device and in memory of its own."""
        weight = self.source.read(name)
        dense = to_tensor(weight, dtype)
        self.count(weight.nbytes, dense.numel())
        return dense.to(self.device, dtype, copy=dense is weight).contiguous()

    def count(self, nbytes: int, parameters: int) -> None:
        """A tensor of so many stored bytes and elements was read."""
        self.bytes_done += nbytes
        self.tensors_done += 1
        self.parameters += parameters
        if self.progress is not None:
            total = max(self.source.bytes_total, self.bytes_done)
            self.progress(self.bytes_done, total, self.tensors_done, self.tensors_total)

    def finish(self) -> None:
        """Report the end: what is not needed, like a drafting layer, counts as done."""
        if self.progress is not None:
            total = max(self.source.bytes_total, self.bytes_done)
            self.progress(total, total, self.tensors_total, self.tensors_total)

    def matrix(self, name: str) -> Matrix:
        """One matrix of the model's type."""
        return self.tensor(name, self.dtype)

    def head(self, name: str) -> Stack:
        """The matrix of the logits, which stays float32."""
        weight = self.tensor(name, torch.float32)
        return Stacked(weight, [weight.shape[0]])

    def experts(self, prefix: str) -> tuple[Matrix, Matrix]:
        """All experts of a layer: gate_up (experts, 2 * inner, hidden), w1 first, and down (experts, hidden,
        inner).
        """
        config = self.config
        inner, hidden = config.moe_inner_size, config.hidden_size
        gate_up = torch.empty(config.num_experts, 2 * inner, hidden, dtype=self.dtype, device=self.device)
        down = torch.empty(config.num_experts, hidden, inner, dtype=self.dtype, device=self.device)
        for expert in range(config.num_experts):
            place = f"{prefix}.experts.{expert}"
            gate_up[expert, :inner] = self.tensor(f"{place}.w1.weight", self.dtype)
            gate_up[expert, inner:] = self.tensor(f"{place}.w3.weight", self.dtype)
            down[expert] = self.tensor(f"{place}.w2.weight", self.dtype)
        return gate_up, down

    def stacked(self, names: Sequence[str], rows: Sequence[int], columns: int, dtype: torch.dtype) -> Stack:
        """Matrices with `rows` rows each, one below the other."""
        weight = torch.empty(sum(rows), columns, dtype=dtype, device=self.device)
        for name, place in zip(names, torch.split(weight, list(rows)), strict=True):
            place.copy_(self.tensor(name, dtype))
        return Stacked(weight, rows)

    def stacks(
        self, plain: Sequence[tuple[str, int]], precise: Sequence[tuple[str, int]], columns: int
    ) -> list[Stack]:
        """(name, rows) of the model's type, then those that stay float32; one stack if both are float32."""
        groups = [(plain, self.dtype), (precise, torch.float32)]
        if self.dtype == torch.float32:
            groups = [([*plain, *precise], torch.float32)]
        return [
            self.stacked([name for name, _ in group], [rows for _, rows in group], columns, dtype)
            for group, dtype in groups
            if group
        ]


def load_connection(loader: Loader, prefix: str) -> HyperConnection:
    """`prefix`_fn, _base, _scale."""
    fn, base, scale = (loader.tensor(f"{prefix}_{part}", torch.float32) for part in ("fn", "base", "scale"))
    return HyperConnection(fn, base, scale)


def load_attention(loader: Loader, layer: int) -> AttentionWeights:
    """Attention of one layer with its compressor and indexer."""
    config = loader.config
    prefix = f"layers.{layer}.attn"
    kind, ratio = config.layer_kind(layer), config.compress_ratios[layer]
    plain = [(f"{prefix}.wq_a.weight", config.q_lora_rank), (f"{prefix}.wkv.weight", config.head_dim)]
    precise: list[tuple[str, int]] = []
    queries = [(f"{prefix}.wq_b.weight", config.num_heads * config.head_dim)]
    compressor = indexer = None
    if kind != "window":
        overlap = kind == "csa"
        width = config.head_dim * (1 + overlap)
        precise += [(f"{prefix}.compressor.{name}.weight", width) for name in ("wkv", "wgate")]
        compressor = _load_compressor(loader, f"{prefix}.compressor", ratio, overlap)
    if kind == "csa":
        width = 2 * config.index_head_dim
        precise += [(f"{prefix}.indexer.compressor.{name}.weight", width) for name in ("wkv", "wgate")]
        precise.append((f"{prefix}.indexer.weights_proj.weight", config.index_heads))
        queries.append((f"{prefix}.indexer.wq_b.weight", config.index_heads * config.index_head_dim))
        indexer = Indexer(
            config.index_heads,
            config.index_head_dim,
            config.index_topk,
            _load_compressor(loader, f"{prefix}.indexer.compressor", ratio, True),
        )
    names, rows = [name for name, _ in queries], [size for _, size in queries]
    return AttentionWeights(
        inputs=loader.stacks(plain, precise, config.hidden_size),
        queries=loader.stacked(names, rows, config.q_lora_rank, loader.dtype),
        q_norm=loader.tensor(f"{prefix}.q_norm.weight", torch.float32),
        kv_norm=loader.tensor(f"{prefix}.kv_norm.weight", torch.float32),
        sink=loader.tensor(f"{prefix}.attn_sink", torch.float32),
        wo_a=loader.matrix(f"{prefix}.wo_a.weight"),
        wo_b=loader.matrix(f"{prefix}.wo_b.weight"),
        compressor=compressor,
        indexer=indexer,
    )


def _load_compressor(loader: Loader, prefix: str, ratio: int, overlap: bool) -> Compressor:
    ape = loader.tensor(f"{prefix}.ape", torch.float32)
    norm = loader.tensor(f"{prefix}.norm.weight", torch.float32)
    return Compressor(ratio, overlap, ape, norm, loader.config.norm_eps)


def load_moe(loader: Loader, layer: int) -> MoEWeights:
    """Router or table, shared and routed experts of one layer."""
    config = loader.config
    prefix = f"layers.{layer}.ffn"
    inner, hidden = config.moe_inner_size, config.hidden_size
    shared = f"{prefix}.shared_experts"
    inputs = loader.stacks(
        [(f"{shared}.w1.weight", inner), (f"{shared}.w3.weight", inner)],
        [(f"{prefix}.gate.weight", config.num_experts)],
        hidden,
    )
    hashed = config.is_hash_layer(layer)
    gate_up, down = loader.experts(prefix)
    return MoEWeights(
        inputs=inputs,
        table=loader.tensor(f"{prefix}.gate.tid2eid", torch.int64) if hashed else None,
        bias=None if hashed else loader.tensor(f"{prefix}.gate.bias", torch.float32),
        gate_up=gate_up,
        down=down,
        shared_down=loader.matrix(f"{shared}.w2.weight"),
    )
