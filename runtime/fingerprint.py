"""What makes a saved cache usable: the same weights, tokenizer and number formats. As one short string.

Hashing 800 GB would take longer than most conversations. Of a large file the header (names, types, shapes)
and evenly spaced samples are read: training changes every matrix, so another model differs in every sample.
"""

import hashlib
from pathlib import Path

WHOLE_BYTES = 64 * 2**20  # files up to this size are read whole
SAMPLES = 64
SAMPLE_BYTES = 64 * 2**10
SHORT_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json")


def fingerprint(folder: Path, *settings: str) -> str:
    """Of a model folder and the settings its cache depends on: 32 hexadecimal digits.

    A file that cannot be read counts as absent: whoever loads the model says so.
    """
    digest = hashlib.blake2b(digest_size=16)
    for setting in settings:
        digest.update(f"{len(setting)} {setting};".encode())
    weights = sorted(path.name for path in folder.glob("*.safetensors"))
    for name in (*SHORT_FILES, *weights):
        digest.update(f"{name};".encode())
        try:
            _add(digest, folder / name)
        except OSError:
            digest.update(b"absent;")
    return digest.hexdigest()


def _add(digest: "hashlib.blake2b", path: Path) -> None:
    size = path.stat().st_size
    digest.update(f"{size};".encode())
    with path.open("rb") as file:
        if size <= WHOLE_BYTES:
            digest.update(file.read())
            return
        header = int.from_bytes(file.read(8), "little")
        digest.update(file.read(min(header, WHOLE_BYTES)))
        for number in range(SAMPLES):
            file.seek((size - SAMPLE_BYTES) * number // (SAMPLES - 1))
            digest.update(file.read(SAMPLE_BYTES))
