"""Attention over a window and compressed blocks, for rows that hold several documents.

Rows are (B, T). Documents start at multiples of 4, so the 4-token blocks of a document are the row's own;
its 128-token blocks start anywhere and are gathered by `Rows.block_start`. A query sees only its own
document: the window, the blocks, and the tokens a block pools, all stop at the document's first token.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from dsv4chat.assets.training.hyper import rms_norm
from dsv4chat.assets.training.rotary import rotate
from dsv4chat.runtime.config import ModelConfig
from dsv4chat.runtime.config_layers import CSA_RATIO


@dataclass(frozen=True)
class Rows:
    """What attention needs to know of a batch of packed rows.

    start (B, T) int32: row index of the first token of each token's document. cos, sin (B, T, R/2) f32 at
    each token's position in its document. block_start (B, M) int32: row index where each whole long block
    (HCA) begins; T for unused entries.
    """

    start: Tensor
    cos: Tensor
    sin: Tensor
    block_start: Tensor


def pool_short(kv: Tensor, gate: Tensor, ape: Tensor, start: Tensor) -> Tensor:
    """CSA blocks (B, T/4, D) f32 of kv and gate (B, T, 2D) f32: each pools the previous 4 tokens (first
    half of the channels) and its own 4 (second half); a document's first block has no previous tokens.
    """
    width = kv.shape[-1] // 2
    kv = kv.unflatten(1, (-1, CSA_RATIO))
    gate = gate.unflatten(1, (-1, CSA_RATIO)) + ape
    old_kv = F.pad(kv[:, :-1, :, :width], (0, 0, 0, 0, 1, 0))
    old_gate = F.pad(gate[:, :-1, :, :width], (0, 0, 0, 0, 1, 0))
    first = torch.arange(0, start.shape[1], CSA_RATIO, device=start.device)
    begins = (start[:, ::CSA_RATIO] == first)[..., None, None]
    old_gate = torch.where(begins, float("-inf"), old_gate)
    weight = torch.cat((old_gate, gate[..., width:]), dim=2).softmax(2)
    return (weight * torch.cat((old_kv, kv[..., width:]), dim=2)).sum(2)


def pool_long(kv: Tensor, gate: Tensor, ape: Tensor, block_start: Tensor) -> Tensor:
    """HCA blocks (B, M, D) f32 of kv and gate (B, T, D) f32; entries without a block hold anything finite."""
    ratio, width = ape.shape
    rows = kv.shape[1]
    token = block_start.unsqueeze(-1) + torch.arange(ratio, device=kv.device)
    token = (token % rows).flatten(1).unsqueeze(-1).expand(-1, -1, 2 * width)
    both = torch.cat((kv, gate), dim=-1).gather(1, token.long()).unflatten(1, (-1, ratio))
    weight = (both[..., width:] + ape).softmax(2)
    return (weight * both[..., :width]).sum(2)


def short_blocks_visible(start: Tensor) -> Tensor:
    """(B, T, T/4) bool: blocks of the query's document that its own token completes or that lie before."""
    query = torch.arange(start.shape[1], device=start.device).unsqueeze(-1)
    block = torch.arange(0, start.shape[1], CSA_RATIO, device=start.device)
    return (block >= start.unsqueeze(-1)) & (block + CSA_RATIO - 1 <= query)


def long_blocks_visible(start: Tensor, block_start: Tensor, ratio: int) -> Tensor:
    """(B, T, M) bool, as `short_blocks_visible`, for blocks that begin at block_start."""
    query = torch.arange(start.shape[1], device=start.device).unsqueeze(-1)
    block = block_start.unsqueeze(1)
    return (block >= start.unsqueeze(-1)) & (block + ratio - 1 <= query)


def attend(
    q: Tensor,
    kv: Tensor,
    blocks: Tensor,
    visible: Tensor,
    start: Tensor,
    sink: Tensor,
    shift: Tensor,
    window: int,
) -> tuple[Tensor, Tensor]:
    """Attention output (B, T, H, D) and the mass each query gives each block, over all heads, (B, T, S) f32.

    q (B, T, H, D); kv (B, T, D), keys and values alike; blocks (B, S, D); visible (B, T, S) bool; sink (H)
    f32. T is a multiple of the window. `shift` is a scalar above every score: queries and keys are
    normalised, so a bound is known beforehand, and the softmax needs no search for the maximum.
    """
    b, t, heads, d = q.shape
    chunks = t // window
    near = F.pad(kv, (0, 0, window, 0)).unflatten(1, (chunks + 1, window))
    near = torch.cat((near[:, :-1], near[:, 1:]), dim=2).flatten(0, 1)
    grouped = q.reshape(b * chunks, window * heads, d)
    near_scores = (grouped @ near.transpose(1, 2)).view(b, chunks, window, heads, 2 * window)
    far_scores = (q.reshape(b, t * heads, d) @ blocks.transpose(1, 2)).view(b, t, heads, -1)

    query = torch.arange(t, device=q.device).view(1, chunks, window, 1)
    key = query[:, :, :1] - window + torch.arange(2 * window, device=q.device)
    near_seen = (key <= query) & (key > query - window) & (key >= start.view(b, chunks, window, 1))
    scale = d**-0.5
    near_mass = torch.where(near_seen.unsqueeze(3), torch.exp(near_scores.float() * scale - shift), 0.0)
    far_mass = torch.where(visible.unsqueeze(2), torch.exp(far_scores.float() * scale - shift), 0.0)
    total = near_mass.sum(-1).view(b, t, heads) + far_mass.sum(-1) + torch.exp(sink - shift)
    near_mass, far_mass = near_mass.to(q.dtype), far_mass.to(q.dtype)
    out = (near_mass.view(b * chunks, window * heads, -1) @ near).view(b, t, heads, d)
    out = out.float() + (far_mass.flatten(1, 2) @ blocks).view(b, t, heads, d).float()
    share = (far_mass.detach().float() / total.detach().unsqueeze(-1)).sum(2)
    return (out / total.unsqueeze(-1)).to(q.dtype), share


def score_bound(config: ModelConfig, *norm_weights: Tensor) -> Tensor:
    """A scalar no attention score can exceed: |q| = sqrt(D), |k| <= sqrt(D) * max |norm weight|."""
    largest = torch.stack([weight.float().abs().amax() for weight in norm_weights]).amax()
    return (largest * config.head_dim**0.5).detach()


def queries(qr: Tensor, wq_b: Tensor, rows: Rows, config: ModelConfig) -> Tensor:
    """Query heads (B, T, H, D) of the normalised low-rank query (B, T, q_lora_rank)."""
    q = F.linear(qr, wq_b).unflatten(-1, (config.num_heads, config.head_dim))
    q = rms_norm(q, None, config.norm_eps)
    return rotate(q, rows.cos.unsqueeze(2), rows.sin.unsqueeze(2))


def output(out: Tensor, wo_a: Tensor, wo_b: Tensor, rows: Rows, config: ModelConfig) -> Tensor:
    """Undo the rotation of (B, T, H, D), project each group of heads, then all groups: (B, T, hidden)."""
    out = rotate(out, rows.cos.unsqueeze(2), -rows.sin.unsqueeze(2))
    b, t = out.shape[:2]
    groups = out.reshape(b * t, config.o_groups, -1).transpose(0, 1)
    low = groups @ wo_a.view(config.o_groups, config.o_lora_rank, -1).transpose(1, 2)
    return F.linear(low.transpose(0, 1).reshape(b, t, -1), wo_b)
