"""Tensor names: from any spelling of a checkpoint to DeepSeek's native names.

Spellings: native (`layers.0.attn.wq_a`), `transformers` (`model.layers.0.self_attn.q_a_proj`, experts fused),
the mixture its `save_pretrained` writes (`model.layers.0.attn.wq_a`, `attn.norm` for `kv_norm`), and
all-4-bit builds (`transformers` names, one tensor an expert matrix). One table serves all: no two contradict.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Literal, NamedTuple

Part = Literal["value", "scale", "scale_2", "ignored"]

# What stands beside a matrix. `input_scale` is for 4-bit activations, not used here: it scales no weight.
_ENDINGS: dict[str, Part] = {
    "weight": "value",
    "weight_scale": "scale",
    "weight_scale_inv": "scale",
    "scale": "scale",
    "weight_scale_2": "scale_2",
    "input_scale": "ignored",
}

# Native name -> other names, for what has a `.weight`. `self_attn`, `mlp` are `attn`, `ffn` by then.
_TOP_MODULES = {
    "embed": ("embed_tokens",),
    "head": ("lm_head",),
    "norm": (),
}
_TOP_PARAMETERS = {
    "hc_head_fn": ("hc_head.hc_fn",),
    "hc_head_base": ("hc_head.hc_base",),
    "hc_head_scale": ("hc_head.hc_scale",),
}
_LAYER_MODULES = {
    "attn_norm": ("input_layernorm",),
    "ffn_norm": ("post_attention_layernorm",),
    "attn.q_norm": ("attn.q_a_norm",),
    "attn.kv_norm": ("attn.norm",),
    "attn.wq_a": ("attn.q_a_proj",),
    "attn.wq_b": ("attn.q_b_proj",),
    "attn.wkv": ("attn.kv_proj",),
    "attn.wo_a": ("attn.o_a_proj",),
    "attn.wo_b": ("attn.o_b_proj",),
    "attn.compressor.norm": ("attn.compressor.kv_norm",),
    "attn.compressor.wkv": ("attn.compressor.kv_proj",),
    "attn.compressor.wgate": ("attn.compressor.gate_proj",),
    "attn.indexer.wq_b": ("attn.indexer.q_b_proj",),
    "attn.indexer.weights_proj": ("attn.indexer.scorer.weights_proj",),
    "attn.indexer.compressor.norm": ("attn.indexer.kv_norm",),
    "attn.indexer.compressor.wkv": ("attn.indexer.kv_proj",),
    "attn.indexer.compressor.wgate": ("attn.indexer.gate_proj",),
    "ffn.gate": (),
    "ffn.shared_experts.w1": ("ffn.shared_experts.gate_proj",),
    "ffn.shared_experts.w2": ("ffn.shared_experts.down_proj",),
    "ffn.shared_experts.w3": ("ffn.shared_experts.up_proj",),
    # Of a drafting layer only.
    "e_proj": (),
    "h_proj": (),
    "enorm": (),
    "hnorm": (),
    "norm": (),
}
_LAYER_PARAMETERS = {
    "attn.attn_sink": ("attn.sinks",),
    "attn.compressor.ape": ("attn.compressor.position_bias",),
    "attn.indexer.compressor.ape": ("attn.indexer.position_bias",),
    "ffn.gate.tid2eid": (),
    "ffn.gate.bias": ("ffn.gate.e_score_correction_bias",),
    "hc_attn_fn": ("attn_hc.fn",),
    "hc_attn_base": ("attn_hc.base",),
    "hc_attn_scale": ("attn_hc.scale",),
    "hc_ffn_fn": ("ffn_hc.fn",),
    "hc_ffn_base": ("ffn_hc.base",),
    "hc_ffn_scale": ("ffn_hc.scale",),
    "hc_head_fn": ("hc_head.hc_fn",),
    "hc_head_base": ("hc_head.hc_base",),
    "hc_head_scale": ("hc_head.hc_scale",),
}
_EXPERT_MATRICES = {"gate_proj": "w1", "down_proj": "w2", "up_proj": "w3", "w1": "w1", "w2": "w2", "w3": "w3"}

_LAYER = re.compile(r"(layers|mtp)\.(\d+)\.(.+)")
_EXPERT = re.compile(r"ffn\.experts\.(\d+)\.(\w+)")
_FUSED = re.compile(r"ffn\.experts\.(gate_up_proj|down_proj)")


class Named(NamedTuple):
    """What a stored tensor is. name: the native name of the weight it belongs to."""

    name: str
    part: Part


class FusedExperts(NamedTuple):
    """All experts of a layer in one tensor: `gate_up` (experts, 2 * inner, hidden), gate first, or `down`."""

    layer: str
    kind: Literal["gate_up", "down"]


def parse_name(stored: str) -> Named | FusedExperts | None:
    """The meaning of a stored name in any spelling, or None if it is none of this model's."""
    path = stored.removeprefix("model.")
    layer = _LAYER.fullmatch(path)
    if layer is None:
        return _lookup(path, "", *_top_tables())
    group, number, rest = layer.groups()
    prefix = f"{group}.{number}."
    rest = _native_folders(rest)
    fused = _FUSED.fullmatch(rest)
    if fused is not None:
        return FusedExperts(prefix.rstrip("."), "gate_up" if fused[1] == "gate_up_proj" else "down")
    return _lookup(rest, prefix, *_layer_tables())


def _native_folders(rest: str) -> str:
    for folder, native in (
        ("self_attn.", "attn."),
        ("mlp.", "ffn."),
        ("attn.compressor.indexer.", "attn.indexer."),
    ):
        if rest.startswith(folder):
            rest = native + rest[len(folder) :]
    return rest


def _lookup(path: str, prefix: str, modules: dict[str, str], parameters: dict[str, str]) -> Named | None:
    # Bare parameters first: `attn_hc.scale` is one, not a scale beside a matrix.
    if path in parameters:
        return Named(prefix + parameters[path], "value")
    module, _, ending = path.rpartition(".")
    part = _ENDINGS.get(ending)
    native = modules.get(module) or (_expert(module) if prefix else None)
    if part is None or native is None:
        return None
    return Named(f"{prefix}{native}.weight", part)


def _expert(path: str) -> str | None:
    expert = _EXPERT.fullmatch(path)
    if expert is None or expert[2] not in _EXPERT_MATRICES:
        return None
    return f"ffn.experts.{expert[1]}.{_EXPERT_MATRICES[expert[2]]}"


@cache
def _top_tables() -> tuple[dict[str, str], dict[str, str]]:
    return _by_spelling(_TOP_MODULES), _by_spelling(_TOP_PARAMETERS)


@cache
def _layer_tables() -> tuple[dict[str, str], dict[str, str]]:
    return _by_spelling(_LAYER_MODULES), _by_spelling(_LAYER_PARAMETERS)


def _by_spelling(table: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    return {spelling: native for native, others in table.items() for spelling in (native, *others)}
