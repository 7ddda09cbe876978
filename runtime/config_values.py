"""Typed access to the values of a config.json whose keys have several spellings."""

import math
from collections.abc import Mapping
from typing import Any, TypeVar

from dsv4chat.runtime.errors import ConfigError

Number = TypeVar("Number", int, float)


class Values:
    """Reads values by any of their spellings; a wrong type or two spellings that disagree is a ConfigError.

    A key whose value is null counts as absent, as in files written by `transformers`.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config

    def get(self, *keys: str) -> Any:
        """The value under the first spelling present, or None."""
        found = [(key, self._config[key]) for key in keys if self._config.get(key) is not None]
        if not found:
            return None
        first, wanted = found[0]
        for key, value in found[1:]:
            if value != wanted:
                raise ConfigError(f"`{first}` and `{key}` of config.json disagree; keep the right one only.")
        return wanted

    def int_at_least(self, least: int, *keys: str, default: int | None = None) -> int:
        """A whole number >= `least`; `default` stands for an absent one."""
        value = self.get(*keys)
        if value is None:
            return self._default(keys, default)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ConfigError(
                f"{_named(keys)} must be a whole number >= {least} in config.json, not {value!r}."
            )
        return value

    def positive_int(self, *keys: str, default: int | None = None) -> int:
        """A whole number >= 1."""
        return self.int_at_least(1, *keys, default=default)

    def positive_float(self, *keys: str, default: float | None = None) -> float:
        """A finite number > 0."""
        value = self.get(*keys)
        if value is None:
            return self._default(keys, default)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value < math.inf:
            raise ConfigError(f"{_named(keys)} of config.json must be a number above 0, not {value!r}.")
        return float(value)

    def int_list(self, key: str) -> list[int]:
        """A list of whole numbers >= 0."""
        value = self.get(key)
        if value is None:
            raise ConfigError(f"config.json lacks `{key}`; use the config.json that belongs to the weights.")
        if not isinstance(value, (list, tuple)) or any(
            not isinstance(item, int) or isinstance(item, bool) or item < 0 for item in value
        ):
            raise ConfigError(f"`{key}` of config.json must be a list of whole numbers, not {value!r}.")
        return list(value)

    def token_id(self, *keys: str, default: int) -> int:
        """A token id; of a list (several end tokens) the first."""
        value = self.get(*keys)
        if isinstance(value, list) and value:
            value = value[0]
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ConfigError(f"{_named(keys)} of config.json must be a token id, not {value!r}.")
        return value

    def optional_text(self, key: str) -> str | None:
        """A text or None."""
        value = self.get(key)
        if value is not None and not isinstance(value, str):
            raise ConfigError(f"`{key}` of config.json must be a text, not {value!r}.")
        return value

    def require_value(self, keys: tuple[str, ...], wanted: object) -> None:
        """Refuse any other value than `wanted`; an absent key means `wanted`."""
        value = self.get(*keys)
        if value is not None and value != wanted:
            raise ConfigError(
                f"{_named(keys)} of config.json is {value!r}; this runtime implements {wanted!r} only."
            )

    @staticmethod
    def _default(keys: tuple[str, ...], default: Number | None) -> Number:
        if default is None:
            raise ConfigError(f"config.json lacks {_named(keys)}; use the one that belongs to the weights.")
        return default


def _named(keys: tuple[str, ...]) -> str:
    return " / ".join(f"`{key}`" for key in keys)
