"""The decode speed of `transformers` at the same sizes: random bfloat16 weights, its default attention."""

import gc
import inspect
import statistics
import time
from dataclasses import dataclass
from typing import Any

import torch

from dsv4chat.runtime.config import ModelConfig
from dsv4chat.runtime.reference import reference_config

STEPS = 12
WARM_UP = 3
PROMPT = 512
MEMORY_SHARE = 0.8


@dataclass(frozen=True)
class ReferenceSpeed:
    """layers: how many fitted; prompt: tokens in its cache; token, layer: median milliseconds, the head's
    time counted in.
    """

    layers: int
    prompt: int
    token: float
    layer: float


def reference_speed(config: ModelConfig, device: torch.device, context: int) -> ReferenceSpeed:
    """Time greedy steps of the `transformers` model with as many of the layers as fit into memory."""
    from transformers import DeepseekV4Config, DeepseekV4ForCausalLM, DynamicCache

    _free(device)
    layers = min(config.num_layers, _layers_that_fit(config, device))
    arguments = reference_config(config)
    for name in ("layer_types", "mlp_layer_types"):
        arguments[name] = arguments[name][:layers]
    arguments["num_hidden_layers"] = layers
    kept = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(device):
            model: Any = DeepseekV4ForCausalLM(DeepseekV4Config(**arguments)).eval()
    finally:
        torch.set_default_dtype(kept)
    name = "past_key_values" if "past_key_values" in inspect.signature(model.forward).parameters else "cache"
    prompt = min(context, PROMPT)
    ids = torch.randint(0, config.vocab_size, (1, prompt), device=device)
    cache: Any = DynamicCache(config=model.config)
    times = []
    with torch.inference_mode():
        for _ in range(WARM_UP + STEPS):
            started = time.perf_counter()
            logits = model(ids, use_cache=True, **{name: cache}).logits
            ids = logits[:, -1:].argmax(-1)
            ids.tolist()
            times.append(1000 * (time.perf_counter() - started))
    del model, cache
    _free(device)
    token = statistics.median(times[WARM_UP:])
    return ReferenceSpeed(layers, prompt, token, token / layers)


def _layers_that_fit(config: ModelConfig, device: torch.device) -> int:
    """By the bytes of the experts in bfloat16, which is nearly all of a layer."""
    if device.type != "cuda":
        return config.num_layers
    free, _ = torch.cuda.mem_get_info(device)
    experts = (config.num_experts + 1) * 3 * config.moe_inner_size * config.hidden_size * 2
    attention = 4 * config.num_heads * config.head_dim * config.q_lora_rank * 2
    return max(1, int(MEMORY_SHARE * free // (experts + attention)))


def _free(device: torch.device) -> None:
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
