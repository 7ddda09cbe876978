"""Rotary position settings out of their four spellings.

Layers with a compress ratio rotate with `compress_theta` and YaRN, window-only layers with `theta` and no
YaRN. Spellings: `rope_scaling` (DeepSeek's release; `type` or `rope_type`), `rope_parameters` with `main` and
`compress` (`transformers`), a flat `rope_parameters`, or `original_seq_len`, `rope_factor`, `beta_fast` and
`beta_slow` (DeepSeek's inference code).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dsv4chat.runtime.config_values import Values
from dsv4chat.runtime.errors import ConfigError


@dataclass(frozen=True)
class Yarn:
    """YaRN: stretch `original_length` positions by `factor`; dims between the betas are blended."""

    factor: float
    original_length: int
    beta_fast: float
    beta_slow: float


@dataclass(frozen=True)
class Rope:
    """Bases of both kinds of layers, and the stretching of the compressed ones."""

    theta: float
    compress_theta: float
    yarn: Yarn | None

    def stretched_length(self) -> int | None:
        """The context YaRN stretches to: what a config without `max_position_embeddings` means."""
        return None if self.yarn is None else int(self.yarn.original_length * self.yarn.factor)


def read_rope(values: Values) -> Rope:
    """Rotary settings of a config. Raises ConfigError for a scaling other than YaRN or none."""
    nested = values.get("rope_parameters")
    if isinstance(nested, Mapping) and isinstance(nested.get("compress"), Mapping):
        main, compress = nested.get("main"), nested["compress"]
        if not isinstance(main, Mapping):
            raise ConfigError("`rope_parameters` of config.json has `compress` but no `main`; add it.")
        if _rope_type(main) != "default":
            raise ConfigError("`rope_parameters.main` scales positions; DeepSeek-V4 scales `compress` only.")
        return Rope(
            theta=_theta(values, main, "rope_theta"),
            compress_theta=_theta(values, compress, "compress_rope_theta", inner="rope_theta"),
            yarn=_read_yarn(compress),
        )
    theta = values.positive_float("rope_theta", default=10000.0)
    compress_theta = values.positive_float("compress_rope_theta")
    flat = nested if nested is not None else values.get("rope_scaling")
    if flat is not None:
        if not isinstance(flat, Mapping):
            raise ConfigError("`rope_scaling` / `rope_parameters` of config.json must be an object.")
        return Rope(theta, compress_theta, _read_yarn(flat))
    original = values.int_at_least(0, "original_seq_len", default=0)
    if not original:
        return Rope(theta, compress_theta, None)
    yarn = Yarn(
        factor=values.positive_float("rope_factor"),
        original_length=original,
        beta_fast=values.positive_float("beta_fast", default=32.0),
        beta_slow=values.positive_float("beta_slow", default=1.0),
    )
    return Rope(theta, compress_theta, yarn)


def _theta(values: Values, block: Mapping[str, Any], key: str, inner: str = "rope_theta") -> float:
    if block.get(inner) is not None:
        return Values(block).positive_float(inner)
    return values.positive_float(key)


def _rope_type(block: Mapping[str, Any]) -> str:
    return str(Values(block).get("rope_type", "type") or "default")


def _read_yarn(block: Mapping[str, Any]) -> Yarn | None:
    kind = _rope_type(block)
    if kind == "default":
        return None
    if kind != "yarn":
        raise ConfigError(f"config.json asks for rotary scaling {kind!r}; this runtime has 'yarn' only.")
    inner = Values(block)
    if inner.positive_float("attention_factor", default=1.0) != 1.0:
        raise ConfigError("config.json sets a YaRN `attention_factor` other than 1; DeepSeek-V4 has none.")
    inner.require_value(("truncate",), True)
    return Yarn(
        factor=inner.positive_float("factor"),
        original_length=inner.positive_int("original_max_position_embeddings"),
        beta_fast=inner.positive_float("beta_fast", default=32.0),
        beta_slow=inner.positive_float("beta_slow", default=1.0),
    )
