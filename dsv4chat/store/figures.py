"""What was measured for each sampled token, and its compact form in the history.

In memory a list for each figure, one entry a token; in the table little-endian blobs: ids u32, kinds one byte
(`KINDS`), milliseconds and logprobs f32, |X| as bfloat16, `layers` values a token (the upper half of an f32:
a relative error of at most 1/256, enough for a logarithmic picture), alternatives MessagePack.
"""

import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from dsv4chat.runtime.protocol import Alternative
from dsv4chat.store.errors import StoreDamaged

KINDS = ("reasoning", "answer", "tool")

_alternatives_encoder = msgspec.msgpack.Encoder()
_alternatives_decoder = msgspec.msgpack.Decoder(list[list[Alternative]])


@dataclass
class TokenFigures:
    """The sampled tokens of an answer (or of a piece of one), in order; all lists have one entry a token."""

    ids: list[int] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    residual: list[list[float]] = field(default_factory=list)
    alternatives: list[list[Alternative]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.ids)

    def add(
        self,
        id: int,
        kind: str,
        milliseconds: float,
        logprob: float,
        residual: Sequence[float] = (),
        alternatives: Sequence[Alternative] = (),
    ) -> None:
        """Append one token; `kind` is one of `KINDS`, `residual` |X| after each layer."""
        self.ids.append(id)
        self.kinds.append(kind)
        self.milliseconds.append(milliseconds)
        self.logprobs.append(logprob)
        self.residual.append(list(residual))
        self.alternatives.append(list(alternatives))

    def since(self, start: int) -> "TokenFigures":
        """The tokens from number `start` on (a copy)."""
        return self.part(start, len(self))

    def part(self, start: int, end: int) -> "TokenFigures":
        """The tokens from number `start` up to `end` (a copy)."""
        return TokenFigures(
            self.ids[start:end],
            self.kinds[start:end],
            self.milliseconds[start:end],
            self.logprobs[start:end],
            self.residual[start:end],
            self.alternatives[start:end],
        )

    def extend(self, other: "TokenFigures") -> None:
        """Append all tokens of `other`."""
        self.ids += other.ids
        self.kinds += other.kinds
        self.milliseconds += other.milliseconds
        self.logprobs += other.logprobs
        self.residual += other.residual
        self.alternatives += other.alternatives


@dataclass(frozen=True)
class PackedFigures:
    """The blobs of one row of `token_block`, in the order of its columns from `count` on."""

    count: int
    ids: bytes
    kinds: bytes
    milliseconds: bytes
    logprobs: bytes
    residual: bytes
    alternatives: bytes | None


def pack(figures: TokenFigures, layers: int) -> PackedFigures:
    """Blobs for `figures`; a token whose |X| list is not `layers` long is padded with 0 or cut."""
    flat: list[float] = []
    for row in figures.residual:
        flat.extend(row if len(row) == layers else (row + [0.0] * layers)[:layers])
    has_alternatives = any(figures.alternatives)
    return PackedFigures(
        len(figures),
        _little(array("I", figures.ids)),
        bytes(KINDS.index(kind) for kind in figures.kinds),
        _little(array("f", figures.milliseconds)),
        _little(array("f", figures.logprobs)),
        _to_bfloat16(flat),
        _alternatives_encoder.encode(figures.alternatives) if has_alternatives else None,
    )


def unpack(packed: PackedFigures, layers: int) -> TokenFigures:
    """The figures in a row of `token_block`. Raises StoreDamaged if the blobs do not fit together."""
    ids = numbers("I", packed.ids)
    flat = _from_bfloat16(packed.residual)
    figures = TokenFigures(
        [int(number) for number in ids],
        [KINDS[kind] if kind < len(KINDS) else "answer" for kind in packed.kinds],
        numbers("f", packed.milliseconds),
        numbers("f", packed.logprobs),
        [flat[start : start + layers] for start in range(0, layers * packed.count, layers)]
        if layers
        else [[] for _ in range(packed.count)],
        [[] for _ in range(packed.count)],
    )
    if packed.alternatives is not None:
        figures.alternatives = _alternatives_decoder.decode(packed.alternatives)
    sizes = {
        len(figures.ids),
        len(figures.kinds),
        len(figures.milliseconds),
        len(figures.logprobs),
        len(figures.residual),
        len(figures.alternatives),
    }
    if sizes != {packed.count} or len(flat) != layers * packed.count:
        raise StoreDamaged("The figures of an answer in the history do not fit together; they are not shown.")
    return figures


def _little(numbers: "array[int] | array[float]") -> bytes:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def numbers(code: str, blob: bytes) -> list[float]:
    """The numbers of a little-endian blob; `code`: one of the type codes of `array`."""
    found: array[float] = array(code)
    found.frombytes(blob[: len(blob) - len(blob) % found.itemsize])
    if sys.byteorder == "big":
        found.byteswap()
    return found.tolist()


def _to_bfloat16(numbers: Sequence[float]) -> bytes:
    """The upper two bytes of each f32, rounded (halves away from zero)."""
    bits = array("I", array("f", numbers).tobytes())
    return _little(array("H", [min((word + 0x8000) >> 16, 0xFFFF) for word in bits]))


def _from_bfloat16(blob: bytes) -> list[float]:
    singles = bytearray(2 * len(blob))
    singles[2::4] = blob[0::2]
    singles[3::4] = blob[1::2]
    return numbers("f", bytes(singles))
