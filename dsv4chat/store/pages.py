"""The rows of a SQLite file read page by page, without the schema and the trees that lead to them.

For files that SQLite cannot open any more. Source: https://sqlite.org/fileformat2.html. Rows are on the leaf
pages of tables, those of tables WITHOUT ROWID on all pages of their index; one that does not fit goes on in a
chain of overflow pages. Pages of the free list hold what was removed and are left out, as far as that list
can be read; pages of a write-ahead log beside the file stand for those of the file.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

HEADER = b"SQLite format 3\0"
_USUAL_SIZE = 4096  # bytes of a page where the file does not say
_TABLE_LEAF, _INDEX_LEAF, _INDEX_INNER = 0x0D, 0x0A, 0x02
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}  # bytes of each kind

Value = int | float | str | bytes | None


@dataclass(frozen=True)
class Row:
    """number: the rowid, None where there is none. values: as stored; a column that is the rowid is None."""

    number: int | None
    values: tuple[Value, ...]


class Pages:
    """An open file and its log. size: bytes of a page. owner: the application id; None if that is lost."""

    def __init__(self, file: BinaryIO, log: bytes = b"") -> None:
        self._file = file
        first = file.read(100).ljust(100, b"\0")
        known = first.startswith(HEADER)
        size = _short(first, 16) if known else 0
        self.size = 65_536 if size == 1 else size if size in (2**n for n in range(9, 16)) else _USUAL_SIZE
        self._usable = self.size - (first[20] if known else 0)
        self.owner = _long(first, 68) if known else None
        self._newer = _committed(log, self.size)
        self.count = max(-(-file.seek(0, 2) // self.size), max(self._newer, default=0))
        self._free = self._free_pages() if known else set()

    def rows(self) -> Iterator[Row]:
        """Every row that can be read, in no order of use; those of indexes and of unknown tables as well."""
        for number in range(1, self.count + 1):
            if number not in self._free:
                yield from self._rows_of(self._page(number), 100 if number == 1 else 0)

    def _page(self, number: int) -> bytes:
        """A page; empty where the file ends before it."""
        if number in self._newer:
            return self._newer[number]
        self._file.seek((number - 1) * self.size)
        page = self._file.read(self.size)
        return page if len(page) == self.size else b""

    def _rows_of(self, page: bytes, start: int) -> Iterator[Row]:
        kind = page[start] if page else 0
        if kind not in (_TABLE_LEAF, _INDEX_LEAF, _INDEX_INNER):
            return
        cells = start + (12 if kind == _INDEX_INNER else 8)
        for at in range(cells, min(cells + 2 * _short(page, start + 3), self.size - 1), 2):
            try:
                yield self._row(page, _short(page, at), kind)
            except (ValueError, IndexError, struct.error):
                continue  # this one is damaged; the others need not be

    def _row(self, page: bytes, at: int, kind: int) -> Row:
        at += 4 if kind == _INDEX_INNER else 0
        length, at = _varint(page, at)
        number = None
        if kind == _TABLE_LEAF:
            number, at = _varint(page, at)
        return Row(number, tuple(_values(self._payload(page, at, length, kind == _TABLE_LEAF))))

    def _payload(self, page: bytes, at: int, length: int, table: bool) -> bytes:
        if not 0 <= length <= self.count * self.size:
            raise ValueError("no row is so long")
        most = self._usable - 35 if table else (self._usable - 12) * 64 // 255 - 23
        if length <= most:
            return page[at : at + length]
        least = (self._usable - 12) * 32 // 255 - 23
        here = least + (length - least) % (self._usable - 4)
        here = here if here <= most else least
        parts, missing, following = [page[at : at + here]], length - here, _long(page, at + here)
        while missing > 0:
            following_page = self._page(following) if 1 < following <= self.count else b""
            if not following_page:
                raise ValueError("the chain of pages is broken")
            part = following_page[4 : min(self._usable, 4 + missing)]
            parts.append(part)
            missing, following = missing - len(part), _long(following_page, 0)
        if following:
            raise ValueError("the chain of pages does not end where the row does")
        return b"".join(parts)

    def _free_pages(self) -> set[int]:
        free: set[int] = set()
        first = self._page(1)
        trunk = _long(first, 32) if first else 0
        while 1 < trunk <= self.count and trunk not in free:
            free.add(trunk)
            page = self._page(trunk)
            if not page:
                break
            leaves = min(_long(page, 4), self.size // 4 - 2)
            free.update(struct.unpack_from(f">{leaves}I", page, 8))
            trunk = _long(page, 0)
        return free


def _committed(log: bytes, size: int) -> dict[int, bytes]:
    """The pages in a write-ahead log as they were when the last transaction in it was complete."""
    whole: dict[int, bytes] = {}
    pending: dict[int, bytes] = {}
    if len(log) < 32 or _long(log, 0) & ~1 != 0x377F0682 or _long(log, 8) != size:
        return whole
    for at in range(32, len(log) - size - 23, 24 + size):
        if log[at + 8 : at + 16] != log[16:24]:
            break  # left over from before the log began anew
        pending[_long(log, at)] = log[at + 24 : at + 24 + size]
        if _long(log, at + 4):
            whole |= pending
            pending = {}
    return whole


def _values(record: bytes) -> Iterator[Value]:
    """The columns of a record. Raises ValueError if it is not a whole one."""
    end, at = _varint(record, 0)
    kinds = []
    while at < end:
        kind, at = _varint(record, at)
        kinds.append(kind)
    for kind in kinds:
        length = _INTEGERS.get(kind, 8 if kind == 7 else (kind - 12) // 2 if kind >= 12 else 0)
        raw = record[at : at + length]
        at += length
        if at > len(record) or kind in (10, 11):
            raise ValueError("the record is cut off")
        if kind in _INTEGERS:
            yield int.from_bytes(raw, "big", signed=True)
        elif kind == 7:
            yield float(struct.unpack(">d", raw)[0])
        elif kind >= 12:
            # One wrong byte in a text is no reason to lose all of it.
            yield raw.decode(errors="replace") if kind % 2 else raw
        else:
            yield None if kind == 0 else kind - 8
    if at != len(record):
        raise ValueError("the record is longer than its columns")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of up to nine bytes, seven bits each, eight in the ninth; and where the next byte is."""
    value = 0
    for place in range(8):
        byte = data[at + place]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + place + 1
    value = value << 8 | data[at + 8]
    return value - (1 << 64 if value >> 63 else 0), at + 9


def _short(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 2], "big")


def _long(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "big")
