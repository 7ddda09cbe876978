"""Prune DeepSeek's tokenizer to a small vocabulary: what a text needs, all bytes, all control tokens.

Entries are taken by falling count over the training text, each with all its merge ancestors, so that
byte-pair encoding still reaches it; the merges whose parts survive stay in order. A text without the pruned
entries falls into smaller pieces, at worst into bytes, so decoding gives back any text exactly. Digits stay
single.

Ids: BOS, EOS and pad 0-2, the kept entries by their old id, then the added tokens that are no placeholders.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

BOS, EOS, PAD = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>"
_FIRST = (BOS, EOS, PAD)
_PLACEHOLDER = re.compile(r"place[▁_]holder")


class PruningError(Exception):
    """The tokenizer cannot be pruned as asked; the message says why."""


def count_tokens(definition: dict[str, Any], texts: Iterable[str], batch: int = 4096) -> dict[str, int]:
    """How often each entry of the real vocabulary occurs in `texts` (control tokens are never matched)."""
    import numpy as np
    from tokenizers import Tokenizer

    plain = Tokenizer.from_str(json.dumps(definition | {"added_tokens": []}))
    times = Counter(texts)
    counts = np.zeros(max(definition["model"]["vocab"].values()) + 1, np.int64)
    different = list(times)
    for start in range(0, len(different), batch):
        part = different[start : start + batch]
        encoded = [e.ids for e in plain.encode_batch_fast(part, add_special_tokens=False)]
        weights = np.repeat([times[text] for text in part], [len(ids) for ids in encoded])
        flat = np.fromiter(itertools.chain.from_iterable(encoded), np.int64, len(weights))
        counts += np.bincount(flat, weights, minlength=len(counts)).astype(np.int64)
    names = {number: token for token, number in definition["model"]["vocab"].items()}
    return {names[int(i)]: int(counts[i]) for i in np.flatnonzero(counts)}


def prune(definition: dict[str, Any], counts: dict[str, int], size: int) -> dict[str, Any]:
    """The tokenizer.json `definition` with exactly `size` ids; `counts` as from `count_tokens`.

    Raises PruningError when `size` is too small for bytes and control tokens or larger than the original.
    """
    from tokenizers.pre_tokenizers import ByteLevel

    vocab: dict[str, int] = definition["model"]["vocab"]
    merges = [tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in definition["model"]["merges"]]
    parts: dict[str, tuple[str, str]] = {}
    for left, right in merges:
        parts.setdefault(left + right, (left, right))
    kept = set(ByteLevel.alphabet())  # the letters that stand for the 256 bytes
    added = sorted(
        (
            t
            for t in definition["added_tokens"]
            if t["content"] not in _FIRST and not _PLACEHOLDER.search(t["content"])
        ),
        key=lambda t: t["id"],
    )
    room = size - len(_FIRST) - len(added)
    if room < len(kept):
        raise PruningError(
            f"{size} ids are too few: bytes and control tokens alone need {size - room + len(kept)}."
        )

    def family(token: str) -> set[str]:
        found, pending = set(), [token]
        while pending:
            name = pending.pop()
            if name not in kept and name not in found:
                found.add(name)
                pending += parts[name]
        return found

    ranked = sorted((t for t in counts if t not in kept and t in parts), key=lambda t: (-counts[t], vocab[t]))
    spare = sorted((t for t in parts if t not in counts and t in vocab), key=lambda t: vocab[t])
    for token in (*ranked, *spare):
        if any(c.isdigit() for c in token):
            continue
        needed = family(token)
        if len(kept) + len(needed) <= room:
            kept |= needed
        if len(kept) == room:
            break
    if len(kept) != room:
        raise PruningError(f"The vocabulary has only {len(kept)} entries to keep, {room} are asked for.")

    new_vocab = {token: number for number, token in enumerate(_FIRST)}
    for token in sorted(kept, key=lambda t: vocab[t]):
        new_vocab[token] = len(new_vocab)
    numbers = dict(new_vocab)
    new_added = []
    for token in definition["added_tokens"]:
        if token["content"] in _FIRST:
            new_added.append(token | {"id": numbers[token["content"]]})
    for token in added:
        new_added.append(token | {"id": len(numbers)})
        numbers[token["content"]] = len(numbers)
    new_merges = [
        f"{left} {right}" for left, right in merges if left in kept and right in kept and left + right in kept
    ]
    model = definition["model"] | {"vocab": new_vocab, "merges": new_merges}
    return definition | {"added_tokens": new_added, "model": model}


def write_tokenizer(folder: Path, definition: dict[str, Any], config: dict[str, Any]) -> None:
    """Write tokenizer.json and tokenizer_config.json, the same bytes for the same contents."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(definition, ensure_ascii=False, separators=(",", ":"))
    (folder / "tokenizer.json").write_text(text + "\n", "utf-8")
    text = json.dumps(config, ensure_ascii=False, indent=2)
    (folder / "tokenizer_config.json").write_text(text + "\n", "utf-8")
