"""The tensors a DeepSeek-V4 model consists of: native names and shapes, from its configuration.

Matrices are (out, in). With s streams the hyper-connection of a sublayer mixes (2 + s) * s values.
"""

from collections.abc import Iterator

from dsv4chat.runtime.config import ModelConfig
from dsv4chat.runtime.config_layers import LayerKind

Shape = tuple[int, ...]


def required_shapes(config: ModelConfig) -> dict[str, Shape]:
    """Every tensor the model cannot run without, in the order in which it is used."""
    shapes: dict[str, Shape] = {"embed.weight": (config.vocab_size, config.hidden_size)}
    for layer in range(config.num_layers):
        kind, ratio = config.layer_kind(layer), config.compress_ratios[layer]
        for name, shape in _block(config, kind, ratio, config.is_hash_layer(layer)):
            shapes[f"layers.{layer}.{name}"] = shape
    shapes.update(_head(config))
    shapes["norm.weight"] = (config.hidden_size,)
    shapes["head.weight"] = (config.vocab_size, config.hidden_size)
    return shapes


def drafter_shapes(config: ModelConfig) -> dict[str, Shape]:
    """The tensors of the drafting layers, which a checkpoint may leave out; {} for other drafters.

    A drafting layer is a score-routed, window-only block with its own projections, norms and stream head.
    """
    shapes: dict[str, Shape] = {}
    if config.drafter != "mtp":
        return shapes
    hidden = config.hidden_size
    for layer in range(config.num_mtp_layers):
        parts: dict[str, Shape] = {
            "enorm.weight": (hidden,),
            "hnorm.weight": (hidden,),
            "e_proj.weight": (hidden, hidden),
            "h_proj.weight": (hidden, hidden),
            **dict(_block(config, "window", 0, hashed=False)),
            **_head(config),
            "norm.weight": (hidden,),
        }
        shapes.update({f"mtp.{layer}.{name}": shape for name, shape in parts.items()})
    return shapes


def _head(config: ModelConfig) -> dict[str, Shape]:
    streams = config.hc_mult
    return {
        "hc_head_fn": (streams, streams * config.hidden_size),
        "hc_head_base": (streams,),
        "hc_head_scale": (1,),
    }


def _block(config: ModelConfig, kind: LayerKind, ratio: int, hashed: bool) -> Iterator[tuple[str, Shape]]:
    hidden = config.hidden_size
    yield from _hyper_connection(config, "attn")
    yield "attn_norm.weight", (hidden,)
    yield from _attention(config)
    if kind != "window":
        groups = 2 if kind == "csa" else 1  # CSA pools two channel groups
        yield from _compressor(config, "attn.compressor", ratio, groups, config.head_dim)
    if kind == "csa":
        yield "attn.indexer.wq_b.weight", (config.index_heads * config.index_head_dim, config.q_lora_rank)
        yield "attn.indexer.weights_proj.weight", (config.index_heads, hidden)
        yield from _compressor(config, "attn.indexer.compressor", ratio, 2, config.index_head_dim)
    yield from _hyper_connection(config, "ffn")
    yield "ffn_norm.weight", (hidden,)
    yield "ffn.gate.weight", (config.num_experts, hidden)
    if hashed:
        yield "ffn.gate.tid2eid", (config.vocab_size, config.experts_per_token)
    else:
        yield "ffn.gate.bias", (config.num_experts,)
    owners = (*(f"experts.{expert}" for expert in range(config.num_experts)), "shared_experts")
    for owner in owners:
        yield f"ffn.{owner}.w1.weight", (config.moe_inner_size, hidden)
        yield f"ffn.{owner}.w2.weight", (hidden, config.moe_inner_size)
        yield f"ffn.{owner}.w3.weight", (config.moe_inner_size, hidden)


def _attention(config: ModelConfig) -> Iterator[tuple[str, Shape]]:
    group_width = config.num_heads * config.head_dim // config.o_groups
    yield "attn.attn_sink", (config.num_heads,)
    yield "attn.wq_a.weight", (config.q_lora_rank, config.hidden_size)
    yield "attn.q_norm.weight", (config.q_lora_rank,)
    yield "attn.wq_b.weight", (config.num_heads * config.head_dim, config.q_lora_rank)
    yield "attn.wkv.weight", (config.head_dim, config.hidden_size)
    yield "attn.kv_norm.weight", (config.head_dim,)
    yield "attn.wo_a.weight", (config.o_groups * config.o_lora_rank, group_width)
    yield "attn.wo_b.weight", (config.hidden_size, config.o_groups * config.o_lora_rank)


def _compressor(
    config: ModelConfig, place: str, ratio: int, groups: int, width: int
) -> Iterator[tuple[str, Shape]]:
    yield f"{place}.ape", (ratio, groups * width)
    yield f"{place}.norm.weight", (width,)
    yield f"{place}.wkv.weight", (groups * width, config.hidden_size)
    yield f"{place}.wgate.weight", (groups * width, config.hidden_size)


def _hyper_connection(config: ModelConfig, sublayer: str) -> Iterator[tuple[str, Shape]]:
    streams = config.hc_mult
    mix = (2 + streams) * streams
    yield f"hc_{sublayer}_fn", (mix, streams * config.hidden_size)
    yield f"hc_{sublayer}_base", (mix,)
    yield f"hc_{sublayer}_scale", (3,)
