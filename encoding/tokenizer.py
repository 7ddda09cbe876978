"""Text to ids and back, with a byte-level BPE tokenizer read from a model folder.

Two vocabularies are kept apart. Ordinary text goes through a tokenizer whose added tokens are emptied, so
that no text, whatever it looks like, becomes a control token. Control tokens are looked up by their text in
the list of added tokens. Ids are never hard-coded: a pruned vocabulary has other ids than the full one.
"""

import codecs
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from dsv4chat.encoding import template
from dsv4chat.encoding.errors import EncodingError
from dsv4chat.encoding.segments import Rendered, Segment

if TYPE_CHECKING:
    import tokenizers

UNKNOWN = "\ufffd".encode()  # shown for an id that is no token


@dataclass(frozen=True)
class Encoded:
    """ids: the prompt. boundaries: for each mark of the rendered prompt, the number of ids before it."""

    ids: list[int]
    boundaries: list[int]


class Tokenizer:
    """Ids of one vocabulary. Not tied to a thread; reading one of 129k entries takes about half a second."""

    @classmethod
    def from_folder(cls, folder: Path) -> "Tokenizer":
        """Read `tokenizer.json`. EncodingError if it is absent, damaged or not of this family."""
        path = Path(folder) / "tokenizer.json"
        if not path.is_file():
            raise EncodingError(
                f"There is no tokenizer.json in {folder}; copy it from the model's checkpoint."
            )
        try:
            return cls(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise EncodingError(f"{path} cannot be read: {error}.") from None
        except EncodingError as error:
            raise EncodingError(f"{path}: {error}") from None

    def __init__(self, definition: str) -> None:
        """`definition` is the content of a tokenizer.json."""
        self._bpe, added, vocabulary = _load(definition)
        self._added = added
        self._tokens = {number: token for token, number in vocabulary.items()}
        self._byte_of = _byte_table()
        self._bytes: dict[int, bytes] = {number: token.encode("utf-8") for token, number in added.items()}
        self.vocab_size = max(max(self._tokens, default=0), max(added.values(), default=0)) + 1
        self.bos_id = self.control_id(template.BOS)
        self.eos_id = self.control_id(template.EOS)
        self.user_id = self.control_id(template.USER)
        self.assistant_id = self.control_id(template.ASSISTANT)
        self.think_start_id = self.control_id(template.THINK_START)
        self.think_end_id = self.control_id(template.THINK_END)
        self.dsml_id = self.control_id(template.DSML)
        self.control_ids = frozenset(added.values())
        self.stop_ids = frozenset({self.eos_id, self.user_id})

    def control_id(self, token: str) -> int:
        """The id of a control token, by its text. EncodingError if the vocabulary does not have it."""
        number = self._added.get(token)
        if number is None:
            raise EncodingError(
                f"this tokenizer has no token {token}, which DeepSeek-V4 prompts need; use the "
                "tokenizer.json of a DeepSeek-V4 checkpoint."
            )
        return number

    def encode_text(self, text: str) -> list[int]:
        """Ids of ordinary text; no control token is ever among them. Half surrogate pairs become U+FFFD."""
        try:
            return self._ids(text)
        except (UnicodeEncodeError, TypeError):
            return self._ids(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))

    def _ids(self, text: str) -> list[int]:
        # Unlike `encode`, a batch lets other threads run, and this one computes no offsets.
        ids: list[int] = self._bpe.encode_batch_fast([text], add_special_tokens=False)[0].ids
        return ids

    def encode(self, rendered: Rendered) -> Encoded:
        """The ids of a prompt, and the token positions of its marks."""
        ids: list[int] = []
        starts = []
        for segment in rendered.segments:
            starts.append(len(ids))
            ids += self._encode_segment(segment)
        starts.append(len(ids))
        return Encoded(ids, [starts[mark] for mark in rendered.marks])

    def _encode_segment(self, segment: Segment) -> list[int]:
        if segment.kind == "control":
            return [self.control_id(segment.text)]
        if segment.kind == "text":
            return self.encode_text(segment.text)
        ids = list(segment.ids)
        if segment.thinking in ("none", "open"):
            return ids
        if self.think_end_id in ids:
            return ids[ids.index(self.think_end_id) + 1 :] if segment.thinking == "dropped" else ids
        if segment.thinking == "closed":
            return [*ids, self.think_end_id]
        return [number for piece in segment.instead for number in self._encode_segment(piece)]

    def token_bytes(self, number: int) -> bytes:
        """The bytes a token stands for; those of U+FFFD for an id outside the vocabulary."""
        known = self._bytes.get(number)
        if known is None:
            token = self._tokens.get(number)
            if token is None:
                return UNKNOWN
            try:
                known = bytes([self._byte_of[character] for character in token])
            except KeyError:  # not written in the byte alphabet: the text itself
                known = token.encode("utf-8")
            self._bytes[number] = known
        return known

    def token_text(self, number: int) -> str:
        """One token by itself, as text; parts of a character show as U+FFFD."""
        return self.token_bytes(number).decode("utf-8", "replace")

    def decode(self, ids: Iterable[int]) -> str:
        """The text of `ids`, control tokens included; broken characters show as U+FFFD."""
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", "replace")

    def decoder(self) -> "StreamDecoder":
        return StreamDecoder(self)


class StreamDecoder:
    """Decodes ids one at a time; what it returns joins to exactly `Tokenizer.decode` of all ids."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, number: int) -> str:
        """The characters that are complete now; "" while one is unfinished."""
        return self._utf8.decode(self._tokenizer.token_bytes(number))

    def flush(self) -> str:
        """U+FFFD for a character that never became complete, else ""; the decoder starts afresh."""
        text = self._utf8.decode(b"", True)
        self._utf8.reset()
        return text


def _load(definition: str) -> tuple["tokenizers.Tokenizer", dict[str, int], dict[str, int]]:
    """(BPE without added tokens, added tokens, vocabulary) of a tokenizer.json."""
    import tokenizers  # here, so that importing the encoder stays light

    try:
        data: dict[str, Any] = msgspec.json.decode(definition)
        added = {str(token["content"]): int(token["id"]) for token in data["added_tokens"]}
        vocabulary = {str(token): int(number) for token, number in data["model"]["vocab"].items()}
        kinds = (data["model"].get("type", "BPE"), (data.get("decoder") or {}).get("type"))
        data["added_tokens"] = []
        bpe = tokenizers.Tokenizer.from_str(msgspec.json.encode(data).decode())
    except Exception as error:  # the tokenizers library raises bare Exception
        raise EncodingError(
            f"this is not a usable tokenizer ({type(error).__name__}: {str(error)[:200]}); copy "
            "tokenizer.json from the model's checkpoint again."
        ) from None
    if kinds != ("BPE", "ByteLevel") or any(letter not in vocabulary for letter in _byte_table()):
        raise EncodingError(
            "this is not a byte-level BPE tokenizer with all 256 bytes; use the tokenizer.json of a "
            "DeepSeek-V4 checkpoint."
        )
    return bpe, added, vocabulary


def _byte_table() -> dict[str, int]:
    """Byte-level BPE writes each byte as one printable character: itself where it is printable in Latin-1,
    else the next unused character from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(byte): byte for byte in printable}
    others = (byte for byte in range(256) if byte not in printable)
    return table | {chr(0x100 + i): byte for i, byte in enumerate(others)}
