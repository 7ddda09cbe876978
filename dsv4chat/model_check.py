"""Whether a model folder can be worth starting an engine for: what a look at its files shows at once."""

import json
from pathlib import Path

from dsv4chat.paths import model_folder


class UnusableModelError(Exception):
    """The folder given as a model is none; `str(error)` says what to do. kind: the engine's name for it."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def check_model(name: str) -> Path:
    """The folder of `name` (a path or "demo"). Raises UnusableModelError before anything has been started.

    It must hold a config.json that can be read, weights and a tokenizer; whether they are good is found
    when they are read.
    """
    folder = model_folder(name)
    try:
        names = {path.name for path in folder.iterdir()}
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        missing = f"{folder} holds no config.json" if folder.is_dir() else f"There is no folder {folder}"
        raise UnusableModelError(
            "ConfigError", f"{missing}; give the folder that holds the model's files, or demo."
        ) from None
    except NotADirectoryError:
        raise UnusableModelError(
            "ConfigError", f"{folder} is a file; give the folder that holds config.json."
        ) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UnusableModelError(
            "ConfigError", f"The model in {folder} cannot be read ({reason}); check its permissions."
        ) from None
    except (ValueError, RecursionError):
        raise UnusableModelError(
            "ConfigError", f"{folder / 'config.json'} is not JSON; copy it again from its source."
        ) from None
    if not isinstance(config, dict):
        raise UnusableModelError(
            "ConfigError", f"{folder / 'config.json'} must hold a JSON object; copy it again from its source."
        )
    if not any(file.endswith((".safetensors", ".safetensors.index.json")) for file in names):
        raise UnusableModelError(
            "CheckpointError", f"{folder} holds no safetensors file; give the folder that holds the weights."
        )
    if "tokenizer.json" not in names:
        raise UnusableModelError(
            "EncodingError", f"There is no tokenizer.json in {folder}; copy it from the model's checkpoint."
        )
    return folder
