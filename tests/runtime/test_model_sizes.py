"""No size is fixed: unusual numbers of everything, against `transformers`."""

import pytest
import torch

from dsv4chat.runtime.compare import TOLERANCE
from tests.support.memory_source import feed, load, random_chunks, random_ids
from tests.support.random_models import random_model

SIZES = {
    "three streams, odd window, other ratios": {
        "hc_mult": 3,
        "hc_sinkhorn_iters": 7,
        "window": 5,
        "compress_rates": {"compressed_sparse_attention": 3, "heavily_compressed_attention": 10},
        "index_topk": 4,
    },
    "six heads in three groups, narrow head": {
        "num_attention_heads": 6,
        "o_groups": 3,
        "head_dim": 24,
        "qk_rope_head_dim": 6,
        "index_head_dim": 16,
        "q_lora_rank": 20,
        "o_lora_rank": 12,
        "hidden_size": 40,
        "moe_intermediate_size": 28,
    },
    "many experts, all hash layers, no YaRN": {
        "n_routed_experts": 24,
        "num_experts_per_tok": 6,
        "hash_layers": 5,
        "routed_scaling_factor": 2.5,
        "rope_scaling": None,
        "hc_eps": 1e-4,
        "rms_norm_eps": 1e-5,
    },
    "no hash layer, all experts chosen, wide window": {
        "n_routed_experts": 3,
        "num_experts_per_tok": 3,
        "hash_layers": 0,
        "window": 300,
        "index_topk": 1000,
        "rope_theta": 500.0,
        "compress_rope_theta": 7000.0,
    },
    "sixteen heads, one group, one chosen block": {
        "num_attention_heads": 16,
        "o_groups": 1,
        "index_topk": 1,
        "index_heads": 64,
        "vocab_size": 37,
    },
}


@pytest.mark.parametrize("pattern", ["pro", "flash"])
@pytest.mark.parametrize("name", SIZES)
def test_any_sizes_compute_what_transformers_computes(name: str, pattern: str) -> None:
    theirs = random_model(pattern, **{"window": 16, **SIZES[name], "seed": 51})
    ours = load(theirs)
    ids = random_ids(140, ours.config.vocab_size, 1)
    with torch.inference_mode():
        expected = theirs(ids[None]).logits[0]
    for chunks in ([140], random_chunks(140, 30, 2), [61, *[1] * 79]):
        torch.testing.assert_close(feed(ours, ids, chunks), expected, rtol=0, atol=TOLERANCE)
    for kv_dtype in ("bfloat16", "fp8"):
        whole, split = (feed(ours, ids, chunks, kv_dtype) for chunks in ([140], [61, *[1] * 79]))
        assert (whole - split).abs().mean() < 1e-3
