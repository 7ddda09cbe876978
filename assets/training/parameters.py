"""The trainable tensors of the model: names, shapes, initial values, and their names in a checkpoint.

Matrices that run in 16 bits are kept in the compute dtype here (the optimiser holds f32 masters); what the
model computes in f32 is kept in f32. Experts of a layer are stacked, the shared one last.
"""

import torch
from torch import Tensor, nn

from dsv4chat.runtime.config import ModelConfig
from dsv4chat.runtime.config_layers import CSA_RATIO

# Short name of a layer's tensor -> name in the checkpoint, after "layers.N.".
LAYER_NAMES = {
    "attn_hc_fn": "hc_attn_fn",
    "attn_hc_base": "hc_attn_base",
    "attn_hc_scale": "hc_attn_scale",
    "ffn_hc_fn": "hc_ffn_fn",
    "ffn_hc_base": "hc_ffn_base",
    "ffn_hc_scale": "hc_ffn_scale",
    "attn_norm": "attn_norm.weight",
    "ffn_norm": "ffn_norm.weight",
    "wq_a": "attn.wq_a.weight",
    "q_norm": "attn.q_norm.weight",
    "wq_b": "attn.wq_b.weight",
    "wkv": "attn.wkv.weight",
    "kv_norm": "attn.kv_norm.weight",
    "wo_a": "attn.wo_a.weight",
    "wo_b": "attn.wo_b.weight",
    "attn_sink": "attn.attn_sink",
    "compressor_ape": "attn.compressor.ape",
    "compressor_norm": "attn.compressor.norm.weight",
    "compressor_wkv": "attn.compressor.wkv.weight",
    "compressor_wgate": "attn.compressor.wgate.weight",
    "indexer_wq_b": "attn.indexer.wq_b.weight",
    "indexer_weights_proj": "attn.indexer.weights_proj.weight",
    "indexer_compressor_ape": "attn.indexer.compressor.ape",
    "indexer_compressor_norm": "attn.indexer.compressor.norm.weight",
    "indexer_compressor_wkv": "attn.indexer.compressor.wkv.weight",
    "indexer_compressor_wgate": "attn.indexer.compressor.wgate.weight",
    "gate": "ffn.gate.weight",
    "gate_bias": "ffn.gate.bias",
    "hash_table": "ffn.gate.tid2eid",
}
HEAD_NAMES = {
    "embedding": "embed.weight",
    "head": "head.weight",
    "norm": "norm.weight",
    "head_hc_fn": "hc_head_fn",
    "head_hc_base": "hc_head_base",
    "head_hc_scale": "hc_head_scale",
}
# Matrices that the checkpoint holds in NVFP4; `w13` and `w2` are the experts.
FOUR_BIT = ("wq_a", "wq_b", "wkv", "wo_a", "wo_b", "indexer_wq_b", "w13", "w2")
# Matrices that Muon trains: those of FOUR_BIT and the compressors'.
ORTHOGONAL = (
    *FOUR_BIT,
    "compressor_wkv",
    "compressor_wgate",
    "indexer_compressor_wkv",
    "indexer_compressor_wgate",
)


def head_parameters(config: ModelConfig, generator: torch.Generator, dtype: torch.dtype) -> nn.ParameterDict:
    """Embedding (N(0, .5)), head (N(0, .02)), final norm and the last collapse of the streams."""
    n, hidden = config.hc_mult, config.hidden_size
    draw = _Draw(generator)
    return _parameters(
        {
            "embedding": draw(0.5, config.vocab_size, hidden).to(dtype),
            "head": draw(0.02, config.vocab_size, hidden).to(dtype),
            "norm": torch.ones(hidden),
            "head_hc_fn": draw(0.02, n, n * hidden),
            "head_hc_base": torch.zeros(n),
            "head_hc_scale": torch.full((1,), 0.2),
        }
    )


def layer_parameters(
    config: ModelConfig, layer: int, generator: torch.Generator, dtype: torch.dtype
) -> nn.ParameterDict:
    """Initial weights of one layer: N(0, 1/sqrt(inputs)) but for outputs (N(0, .02)) and the gates."""
    draw = _Draw(generator)
    hidden, rank, heads, d = config.hidden_size, config.q_lora_rank, config.num_heads, config.head_dim
    ratio, count, inner = config.compress_ratios[layer], config.num_experts + 1, config.moe_inner_size
    width = d * (2 if ratio == CSA_RATIO else 1)
    low = config.o_groups * config.o_lora_rank
    group = heads * d // config.o_groups
    tensors: dict[str, Tensor] = {
        "attn_norm": torch.ones(hidden),
        "ffn_norm": torch.ones(hidden),
        "q_norm": torch.ones(rank),
        "kv_norm": torch.ones(d),
        "attn_sink": torch.zeros(heads),
        "wq_a": draw(hidden**-0.5, rank, hidden).to(dtype),
        "wq_b": draw(rank**-0.5, heads * d, rank).to(dtype),
        "wkv": draw(hidden**-0.5, d, hidden).to(dtype),
        "wo_a": draw(group**-0.5, low, group).to(dtype),
        "wo_b": draw(0.02, hidden, low).to(dtype),
        "gate": draw(hidden**-0.5, config.num_experts, hidden),
        "w13": draw(hidden**-0.5, 2, count, inner, hidden).to(dtype),
        "w2": draw(0.02, count, hidden, inner).to(dtype),
    }
    tensors |= _compressor("compressor_", draw, ratio, width, hidden)
    if ratio == CSA_RATIO:
        tensors["indexer_wq_b"] = draw(rank**-0.5, config.index_heads * config.index_head_dim, rank).to(dtype)
        tensors["indexer_weights_proj"] = draw(hidden**-0.5, config.index_heads, hidden)
        tensors |= _compressor("indexer_compressor_", draw, ratio, 2 * config.index_head_dim, hidden)
    for part, sublayer in (("attn", 2 * layer), ("ffn", 2 * layer + 1)):
        tensors |= _connection(part + "_hc_", draw, sublayer, config)
    return _parameters(tensors)


def _compressor(prefix: str, draw: "_Draw", ratio: int, width: int, hidden: int) -> dict[str, Tensor]:
    d = width // 2 if ratio == CSA_RATIO else width
    return {
        prefix + "ape": draw(0.02, ratio, width),
        prefix + "norm": torch.ones(d),
        prefix + "wkv": draw(hidden**-0.5, width, hidden),
        prefix + "wgate": draw(0.3 * hidden**-0.5, width, hidden),
    }


def _connection(prefix: str, draw: "_Draw", sublayer: int, config: ModelConfig) -> dict[str, Tensor]:
    """Each sublayer reads mostly one stream in turn, and keeps the streams mostly apart."""
    n = config.hc_mult
    pre = torch.full((n,), -1.0)
    pre[sublayer % n] = 1.0
    comb = 2 * torch.eye(n) + draw(0.1, n, n)
    return {
        prefix + "fn": draw(0.02, (2 + n) * n, n * config.hidden_size),
        prefix + "base": torch.cat((pre, draw(0.3, n), comb.flatten())),
        prefix + "scale": torch.full((3,), 0.2),
    }


def hash_table(config: ModelConfig, generator: torch.Generator) -> Tensor:
    """Experts of each token id in a hash layer: (vocab, top-k) int32, distinct in a row, at random."""
    order = torch.rand(config.vocab_size, config.num_experts, generator=generator).argsort(-1)
    return order[:, : config.experts_per_token].to(torch.int32).contiguous()


class _Draw:
    """Normal numbers from one generator, in the order asked for."""

    def __init__(self, generator: torch.Generator) -> None:
        self._generator = generator

    def __call__(self, deviation: float, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self._generator) * deviation


def _parameters(tensors: dict[str, Tensor]) -> nn.ParameterDict:
    return nn.ParameterDict({name: nn.Parameter(tensor) for name, tensor in tensors.items()})
