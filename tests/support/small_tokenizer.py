"""A small tokenizer.json: 256 byte tokens, a few merges and DeepSeek-V4's control tokens."""

import json
from pathlib import Path

BOS, EOS, PAD = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>"
CONTROL = (
    "<｜User｜>",
    "<｜Assistant｜>",
    "<think>",
    "</think>",
    "｜DSML｜",
    "<｜latest_reminder｜>",
    "<｜action｜>",
    "<｜query｜>",
    "<｜authority｜>",
    "<｜domain｜>",
    "<｜title｜>",
    "<｜read_url｜>",
)
MERGES = (("t", "h"), ("th", "e"), ("i", "n"), ("Ġ", "the"), ("e", "r"), ("a", "n"))


def byte_letters() -> list[str]:
    """The letter that stands for each byte 0..255 in byte-level BPE."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


def tokenizer_definition() -> dict:
    """The parsed tokenizer.json: BOS 0, EOS 1, pad 2, bytes 3..258, merges, control tokens."""
    vocabulary = {letter: 3 + byte for byte, letter in enumerate(byte_letters())}
    for first, second in MERGES:
        vocabulary[first + second] = len(vocabulary) + 3
    added = [(BOS, True), (EOS, True), (PAD, True)]
    entries = [_added(number, text, special) for number, (text, special) in enumerate(added)]
    start = len(vocabulary) + 3
    entries += [_added(start + number, text, False) for number, text in enumerate(CONTROL)]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": entries,
        "normalizer": None,
        "pre_tokenizer": {
            "type": "ByteLevel",
            "add_prefix_space": False,
            "trim_offsets": True,
            "use_regex": True,
        },
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": vocabulary,
            "merges": [list(pair) for pair in MERGES],
        },
    }


VOCAB_SIZE = 3 + 256 + len(MERGES) + len(CONTROL)


def write_tokenizer(folder: Path) -> None:
    """Put tokenizer.json into `folder`."""
    text = json.dumps(tokenizer_definition(), ensure_ascii=False)
    (folder / "tokenizer.json").write_text(text, encoding="utf-8")


def _added(number: int, text: str, special: bool) -> dict:
    return {
        "id": number,
        "content": text,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": special,
    }
