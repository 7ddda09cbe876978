"""The model's configuration: one normalised form of every spelling of config.json.

Three spellings describe the same architecture: DeepSeek's released config.json (`compress_ratios`,
`rope_scaling`, `num_hash_layers`, `qk_rope_head_dim`), the short keys of DeepSeek's inference code (`dim`,
`n_layers`, `window_size`, `original_seq_len`, ...), and what `transformers` writes (`layer_types` +
`compress_rates`, `rope_parameters`, `mlp_layer_types`, `partial_rotary_factor`). Keys that do not change what
is computed are ignored; a value this runtime does not implement is a `ConfigError`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dsv4chat.runtime.config_layers import LayerKind, count_hash_layers, read_layer_kinds
from dsv4chat.runtime.config_rope import Yarn, read_rope
from dsv4chat.runtime.config_values import Values
from dsv4chat.runtime.errors import ConfigError

MODEL_TYPE = "deepseek_v4"
ARCHITECTURE = "DeepseekV4ForCausalLM"

# Keys whose other values mean a computation that V4 does not have (and this runtime does not implement).
_REQUIRED_VALUES: tuple[tuple[tuple[str, ...], Any], ...] = (
    (("scoring_func", "score_func"), "sqrtsoftplus"),
    (("hidden_act",), "silu"),
    (("norm_topk_prob",), True),
    (("num_key_value_heads",), 1),
    (("attention_bias",), False),
    (("mlp_bias",), False),
    (("tie_word_embeddings",), False),
    (("topk_method",), "noaux_tc"),
)


@dataclass(frozen=True)
class ModelConfig:
    """Sizes and constants of one DeepSeek-V4 model, whatever its config.json calls them.

    layer_kinds, compress_ratios: one entry a layer; ratio 0 = window only. The entries of the drafting
    layers (`mtp_compress_ratios`) stand apart.
    rope_theta: base of window-only layers; compress_rope_theta and yarn: of every layer with a ratio.
    drafter: "mtp" = a DeepSeek-V4 drafting layer is described, "dspark" = the later drafter (its tensors are
    left alone), "none". Whether its tensors are in the checkpoint is for the checkpoint to say.
    """

    vocab_size: int
    hidden_size: int
    num_layers: int
    num_heads: int
    head_dim: int
    rope_head_dim: int
    q_lora_rank: int
    o_groups: int
    o_lora_rank: int
    num_experts: int
    experts_per_token: int
    num_shared_experts: int
    moe_inner_size: int
    routed_scaling_factor: float
    num_hash_layers: int
    layer_kinds: tuple[LayerKind, ...]
    compress_ratios: tuple[int, ...]
    mtp_compress_ratios: tuple[int, ...]
    num_mtp_layers: int
    drafter: Literal["none", "mtp", "dspark"]
    window: int
    index_heads: int
    index_head_dim: int
    index_topk: int
    hc_mult: int
    sinkhorn_rounds: int
    hc_eps: float
    norm_eps: float
    rope_theta: float
    compress_rope_theta: float
    yarn: Yarn | None
    swiglu_limit: float
    bos_id: int
    eos_id: int
    max_position: int
    prompt_profile: str | None

    def layer_kind(self, layer: int) -> LayerKind:
        """What attention layer `layer` has: "window", "csa" (with indexer) or "hca"."""
        return self.layer_kinds[layer]

    def is_hash_layer(self, layer: int) -> bool:
        """Whether layer `layer` takes its experts from the table `tid2eid` instead of the router's scores."""
        return layer < self.num_hash_layers

    @classmethod
    def from_folder(cls, folder: str | Path) -> "ModelConfig":
        """Read `folder`/config.json. Raises ConfigError if it is absent, unreadable or not supported."""
        return cls.from_dict(read_config_file(folder))

    @classmethod
    def from_dict(cls, config: Mapping[str, Any]) -> "ModelConfig":
        """Normalise a parsed config.json of any spelling. Raises ConfigError on what cannot be run."""
        values = Values(config)
        _check_architecture(config)
        for keys, wanted in _REQUIRED_VALUES:
            values.require_value(keys, wanted)

        num_layers = values.positive_int("num_hidden_layers", "n_layers")
        head_dim = values.positive_int("head_dim")
        rope_head_dim = _rope_head_dim(values, head_dim)
        kinds, ratios, mtp_ratios = read_layer_kinds(values, num_layers)
        rope = read_rope(values)
        num_mtp_layers = values.int_at_least(0, "num_nextn_predict_layers", "n_mtp_layers", default=0)
        result = cls(
            vocab_size=values.positive_int("vocab_size"),
            hidden_size=values.positive_int("hidden_size", "dim"),
            num_layers=num_layers,
            num_heads=values.positive_int("num_attention_heads", "n_heads"),
            head_dim=head_dim,
            rope_head_dim=rope_head_dim,
            q_lora_rank=values.positive_int("q_lora_rank"),
            o_groups=values.positive_int("o_groups"),
            o_lora_rank=values.positive_int("o_lora_rank"),
            num_experts=values.positive_int("n_routed_experts", "num_local_experts"),
            experts_per_token=values.positive_int("num_experts_per_tok", "n_activated_experts"),
            num_shared_experts=values.positive_int("n_shared_experts", default=1),
            moe_inner_size=values.positive_int("moe_intermediate_size", "moe_inter_dim"),
            routed_scaling_factor=values.positive_float("routed_scaling_factor", "route_scale"),
            num_hash_layers=count_hash_layers(values, num_layers),
            layer_kinds=kinds,
            compress_ratios=ratios,
            mtp_compress_ratios=mtp_ratios or (0,) * num_mtp_layers,
            num_mtp_layers=num_mtp_layers,
            drafter=_drafter(config, num_mtp_layers),
            window=values.positive_int("sliding_window", "window_size"),
            index_heads=values.positive_int("index_n_heads"),
            index_head_dim=values.positive_int("index_head_dim"),
            index_topk=values.positive_int("index_topk"),
            hc_mult=values.positive_int("hc_mult", default=4),
            sinkhorn_rounds=values.positive_int("hc_sinkhorn_iters", default=20),
            hc_eps=values.positive_float("hc_eps", default=1e-6),
            norm_eps=values.positive_float("rms_norm_eps", "norm_eps", default=1e-6),
            rope_theta=rope.theta,
            compress_rope_theta=rope.compress_theta,
            yarn=rope.yarn,
            swiglu_limit=values.positive_float("swiglu_limit"),
            bos_id=values.token_id("bos_token_id", "bos_id", default=0),
            eos_id=values.token_id("eos_token_id", "eos_id", default=1),
            max_position=values.positive_int(
                "max_position_embeddings", "max_seq_len", default=rope.stretched_length()
            ),
            prompt_profile=values.optional_text("prompt_profile"),
        )
        _check_sizes(result)
        return result


def read_config_file(folder: str | Path) -> dict[str, Any]:
    """The parsed config.json of a model folder. Raises ConfigError with what to do if there is none."""
    folder = Path(folder)
    path = folder / "config.json"
    if not folder.exists():
        raise ConfigError(f"There is no folder {folder}; give the folder that holds the model's config.json.")
    try:
        parsed = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(
            f"{folder} holds no config.json; give the folder that holds the model's files."
        ) from None
    except NotADirectoryError:
        raise ConfigError(f"{folder} is a file; give the folder that holds config.json.") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}); check its permissions.") from error
    except ValueError as error:  # not UTF-8, or not JSON
        raise ConfigError(f"{path} is not valid JSON ({error}); copy it again from its source.") from error
    if not isinstance(parsed, dict):
        raise ConfigError(f"{path} must hold a JSON object; copy it again from the model's source.")
    return parsed


def _check_architecture(config: Mapping[str, Any]) -> None:
    """Refuse other architectures. The short spelling names none and is known by its own keys."""
    model_type = config.get("model_type")
    architectures = config.get("architectures")
    if model_type is not None and model_type != MODEL_TYPE:
        raise ConfigError(
            f"config.json describes a model of type {model_type!r}; this runtime runs {MODEL_TYPE!r} only."
        )
    if model_type is None and architectures and ARCHITECTURE not in architectures:
        raise ConfigError(
            f"config.json describes {architectures!r}; this runtime runs {ARCHITECTURE!r} only."
        )
    if model_type is None and not architectures and "dim" not in config and "hidden_size" not in config:
        raise ConfigError("config.json has no model type and no hidden size; it is not a model's.")


def _rope_head_dim(values: Values, head_dim: int) -> int:
    dims = values.positive_int("qk_rope_head_dim", "rope_head_dim", default=0)
    if dims:
        return dims
    factor = values.get("partial_rotary_factor")
    if factor is None:
        nested = values.get("rope_parameters")
        if isinstance(nested, Mapping) and isinstance(nested.get("main"), Mapping):
            factor = nested["main"].get("partial_rotary_factor")
    if not isinstance(factor, (int, float)) or isinstance(factor, bool):
        raise ConfigError("config.json has neither `qk_rope_head_dim` nor `partial_rotary_factor`; add one.")
    return int(head_dim * factor)


def _drafter(config: Mapping[str, Any], num_mtp_layers: int) -> Literal["none", "mtp", "dspark"]:
    if any(key.startswith("dspark_") for key in config):
        return "dspark"
    return "mtp" if num_mtp_layers else "none"


def _check_sizes(config: ModelConfig) -> None:
    """Relations between sizes that the computation needs, each refused with its own sentence."""
    if config.num_shared_experts != 1:
        raise ConfigError(f"config.json has {config.num_shared_experts} shared experts; DeepSeek-V4 has one.")
    if config.num_heads % config.o_groups:
        raise ConfigError(
            f"{config.num_heads} heads do not split into {config.o_groups} equal groups (`o_groups`)."
        )
    if config.experts_per_token > config.num_experts:
        raise ConfigError(
            f"`num_experts_per_tok` is {config.experts_per_token}, with only {config.num_experts} experts."
        )
    smallest = min(config.head_dim, config.index_head_dim) if "csa" in config.layer_kinds else config.head_dim
    if config.rope_head_dim % 2 or not 0 < config.rope_head_dim <= smallest:
        raise ConfigError(
            f"`qk_rope_head_dim` must be even and at most {smallest}, not {config.rope_head_dim}."
        )
    for name, value in (("bos_token_id", config.bos_id), ("eos_token_id", config.eos_id)):
        if value >= config.vocab_size:
            raise ConfigError(f"`{name}` ({value}) lies outside the vocabulary of {config.vocab_size}.")
