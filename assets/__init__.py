"""Static files shipped with the package: the demo model and the evaluation questions."""

from pathlib import Path


def demo_path() -> Path:
    """Folder of the demo model (config.json, tokenizer.json, safetensors shards)."""
    return Path(__file__).resolve().parent / "demo"


def evaluation_path() -> Path:
    """Folder of the held-out evaluation questions (JSONL, one question a line)."""
    return Path(__file__).resolve().parent / "evaluation"
