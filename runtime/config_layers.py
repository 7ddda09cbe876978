"""What kind of attention and of experts each layer has, in the two ways in which a config.json says it.

DeepSeek's `compress_ratios` has a number a layer (0: window only), and `num_hash_layers` counts;
`transformers` names the kinds in `layer_types` (ratios in `compress_rates`) and `mlp_layer_types`.
"""

from collections.abc import Mapping
from typing import Literal

from dsv4chat.runtime.config_values import Values
from dsv4chat.runtime.errors import ConfigError

LayerKind = Literal["window", "csa", "hca"]

# The ratio that DeepSeek's code takes to mean CSA; `transformers` names the kind instead.
CSA_RATIO = 4

_LAYER_TYPES: dict[str, LayerKind] = {
    "sliding_attention": "window",
    "compressed_sparse_attention": "csa",
    "heavily_compressed_attention": "hca",
}


def read_layer_kinds(
    values: Values, num_layers: int
) -> tuple[tuple[LayerKind, ...], tuple[int, ...], tuple[int, ...]]:
    """Kind and ratio of each layer, and the ratios of the drafting layers, which stand last in the list."""
    types = values.get("layer_types")
    if types is None:
        ratios = values.int_list("compress_ratios")
        if len(ratios) < num_layers:
            raise ConfigError(
                f"`compress_ratios` has {len(ratios)} entries for {num_layers} layers; it needs one a layer."
            )
        kinds = tuple(_kind_of_ratio(ratio) for ratio in ratios[:num_layers])
        return kinds, tuple(ratios[:num_layers]), tuple(ratios[num_layers:])

    if not isinstance(types, list) or len(types) != num_layers:
        raise ConfigError(f"`layer_types` must be a list with one entry for each of the {num_layers} layers.")
    unknown = sorted({str(name) for name in types if str(name) not in _LAYER_TYPES})
    if unknown:
        raise ConfigError(f"`layer_types` holds {', '.join(unknown)}; known are {', '.join(_LAYER_TYPES)}.")
    kinds = tuple(_LAYER_TYPES[name] for name in types)
    rates = _compress_rates(values)
    given = values.get("compress_ratios")
    ratios = [0 if kind == "window" else rates[kind] for kind in kinds]
    if isinstance(given, list) and given[:num_layers] != ratios:
        raise ConfigError("`compress_ratios` and `layer_types` disagree; keep the right one only.")
    return kinds, tuple(ratios), tuple(given[num_layers:]) if isinstance(given, list) else ()


def _compress_rates(values: Values) -> dict[str, int]:
    """Ratio of each compressed kind in the `transformers` spelling."""
    rates: dict[str, int] = {"csa": CSA_RATIO, "hca": 128}
    given = values.get("compress_rates")
    for name, kind in _LAYER_TYPES.items():
        if kind == "window":
            continue
        rate = given.get(name) if isinstance(given, Mapping) else None
        rate = values.get(f"compress_rate_{kind}") if rate is None else rate
        if rate is None:
            continue
        if not isinstance(rate, int) or isinstance(rate, bool) or rate < 1:
            raise ConfigError(f"`compress_rates` of config.json must hold positive numbers, not {rate!r}.")
        rates[kind] = rate
    return rates


def _kind_of_ratio(ratio: int) -> LayerKind:
    if ratio == 0:
        return "window"
    if ratio == CSA_RATIO:
        return "csa"
    if ratio > CSA_RATIO:
        return "hca"
    raise ConfigError(
        f"`compress_ratios` holds {ratio}, which DeepSeek-V4 does not have; this is another architecture."
    )


def count_hash_layers(values: Values, num_layers: int) -> int:
    """How many layers, the first ones, take their experts from a table. Raises ConfigError."""
    types = values.get("mlp_layer_types")
    if types is None:
        return min(values.int_at_least(0, "num_hash_layers", "n_hash_layers"), num_layers)
    if (
        not isinstance(types, list)
        or len(types) != num_layers
        or not all(name in ("hash_moe", "moe") for name in types)
    ):
        raise ConfigError("`mlp_layer_types` must hold one of hash_moe and moe for each layer.")
    count = types.count("hash_moe")
    if "hash_moe" in types[count:]:
        raise ConfigError("`mlp_layer_types` has hash_moe after moe; hash layers must come first.")
    return count
