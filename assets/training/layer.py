"""One layer of the model as a function of its weights: hyper-connections around attention and experts.

`Weights` are plain dictionaries, so that layers of one kind share one compiled function. Names are short
forms of the checkpoint's (see `parameters.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from dsv4chat.assets.training import attention, indexer, moe
from dsv4chat.assets.training.attention import Rows
from dsv4chat.assets.training.hyper import connect, reconnect, rms_norm
from dsv4chat.assets.training.rotary import rotate
from dsv4chat.assets.training.rounding import cached_value, index_value
from dsv4chat.runtime.config import ModelConfig
from dsv4chat.runtime.config_layers import CSA_RATIO

Weights = dict[str, Tensor]
LayerFunction = Callable[..., tuple[Tensor, Tensor, Tensor]]


@dataclass(frozen=True)
class LayerKind:
    """What distinguishes the layers' computations.

    sparse: CSA attends to the indexer's choice only (else to every block). rounded: keys and values pass
    through the cache's number formats.
    """

    ratio: int
    hashed: bool
    sparse: bool
    rounded: bool


def layer_kind(config: ModelConfig, layer: int, *, sparse: bool, rounded: bool) -> LayerKind:
    """The kind of layer `layer`; HCA layers have no indexer, so `sparse` changes CSA layers only."""
    ratio = config.compress_ratios[layer]
    return LayerKind(ratio, config.is_hash_layer(layer), sparse and ratio == CSA_RATIO, rounded)


def layer_function(config: ModelConfig, kind: LayerKind) -> LayerFunction:
    """The function `layer(x, w, rows, rotation, chosen)` of one kind of layer.

    x (B, T, n, hidden); rotation: the Hadamard matrix of the index keys; chosen (B*T, E) bool in hash layers,
    else None. Returns X', the indexer's loss (a scalar, zero in HCA layers) and the experts' load (E) f32:
    how many tokens each was chosen for.
    """

    def run(x: Tensor, w: Weights, rows: Rows, rotation: Tensor, chosen: Tensor | None):
        inner, post, comb = connect(x, w["attn_hc_fn"], w["attn_hc_base"], w["attn_hc_scale"], config)
        inner = rms_norm(inner, w["attn_norm"], config.norm_eps)
        out, index_loss = attention_sublayer(inner, w, rows, rotation, config, kind)
        x = reconnect(x, out, post, comb)

        inner, post, comb = connect(x, w["ffn_hc_fn"], w["ffn_hc_base"], w["ffn_hc_scale"], config)
        flat = rms_norm(inner, w["ffn_norm"], config.norm_eps).flatten(0, 1)
        weights, taken = moe.route(flat, w["gate"], chosen, w.get("gate_bias"), config)
        out = moe.experts(flat, weights, w["w13"], w["w2"], config.swiglu_limit).view_as(inner)
        return reconnect(x, out, post, comb), index_loss, taken.float().sum(0)

    return run


def attention_sublayer(
    x: Tensor, w: Weights, rows: Rows, rotation: Tensor, config: ModelConfig, kind: LayerKind
) -> tuple[Tensor, Tensor]:
    """Attention of normalised inputs x (B, T, hidden): output (B, T, hidden) and the indexer's loss."""
    qr = rms_norm(F.linear(x, w["wq_a"]), w["q_norm"], config.norm_eps)
    q = attention.queries(qr, w["wq_b"], rows, config)
    kv = rms_norm(F.linear(x, w["wkv"]), w["kv_norm"], config.norm_eps)
    kv = rotate(kv, rows.cos, rows.sin)
    wide = x.float()
    blocks = compress(wide, w, "compressor_", rows, kind.ratio, config).to(x.dtype)
    if kind.rounded:
        kv, blocks = cached_value(kv, config.rope_head_dim), cached_value(blocks, config.rope_head_dim)
    shift = attention.score_bound(config, w["kv_norm"], w["compressor_norm"])
    common = (rows.start, w["attn_sink"], shift, config.window)
    if kind.ratio != CSA_RATIO:
        visible = attention.long_blocks_visible(rows.start, rows.block_start, kind.ratio)
        out, _ = attention.attend(q, kv, blocks, visible, *common)
        loss = torch.zeros((), device=x.device)
    else:
        visible = attention.short_blocks_visible(rows.start)
        score = index_scores(wide.detach(), qr.detach(), w, rows, rotation, config, kind)
        if kind.sparse:
            visible = indexer.choose(score, visible, config.index_topk)
        out, share = attention.attend(q, kv, blocks, visible, *common)
        loss = indexer.divergence(score, share, visible)
    return attention.output(out, w["wo_a"], w["wo_b"], rows, config), loss


def compress(x: Tensor, w: Weights, prefix: str, rows: Rows, ratio: int, config: ModelConfig) -> Tensor:
    """Blocks (B, S, D) f32, normalised and rotated at each block's first token, of x (B, T, hidden) f32."""
    kv, gate = F.linear(x, w[prefix + "wkv"].float()), F.linear(x, w[prefix + "wgate"].float())
    if ratio == CSA_RATIO:
        blocks = attention.pool_short(kv, gate, w[prefix + "ape"], rows.start)
        cos, sin = rows.cos[:, ::CSA_RATIO], rows.sin[:, ::CSA_RATIO]
    else:
        blocks = attention.pool_long(kv, gate, w[prefix + "ape"], rows.block_start)
        first = (rows.block_start % x.shape[1]).long().unsqueeze(-1).expand(-1, -1, rows.cos.shape[-1])
        cos, sin = rows.cos.gather(1, first), rows.sin.gather(1, first)
    return rotate(rms_norm(blocks, w[prefix + "norm"], config.norm_eps), cos, sin)


def index_scores(
    x: Tensor, qr: Tensor, w: Weights, rows: Rows, rotation: Tensor, config: ModelConfig, kind: LayerKind
) -> Tensor:
    """The indexer's score (B, T, T/4) f32 of every block; x (B, T, hidden) f32 and qr are detached."""
    q = indexer.index_queries(qr, w["indexer_wq_b"], config)
    q = rotate(q, rows.cos.unsqueeze(2), rows.sin.unsqueeze(2))
    keys = compress(x, w, "indexer_compressor_", rows, kind.ratio, config).to(qr.dtype)
    if kind.rounded:
        q, keys = index_value(q, rotation), index_value(keys, rotation)
    weights = F.linear(x, w["indexer_weights_proj"].float())
    return indexer.scores(q, keys, weights, config)
