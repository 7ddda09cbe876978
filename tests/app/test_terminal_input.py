"""Bytes from the terminal, cut anywhere: a paste stays a paste, and bytes that are no text end nothing."""

import random

import pytest

from dsv4chat.app.terminal_input import TerminalDecoder

PASTE, END = b"\x1b[200~", b"\x1b[201~"


def decoded(*pieces: bytes) -> str:
    decoder = TerminalDecoder()
    return "".join([*(decoder.decode(piece) for piece in pieces), decoder.decode(b"", final=True)])


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (b"abc\r\x1b[A\x1b[200", "abc\r\x1b[A\x1b[200"),
        ("é深👩".encode(), "é深👩"),
        (b"a\xff\xc3(b", "a\ufffd\ufffd(b"),
        (PASTE + b"one\x1b[A\rtwo\x00" + END + b"\x1b[A", "\x1b[200~one␛[A\rtwo␀\x1b[201~\x1b[A"),
        (PASTE + b"\x1b\x1b[20\x1b[200~" + END, "\x1b[200~␛␛[20␛[200~\x1b[201~"),
        (PASTE + END + PASTE + b"\x1b" + END + b"x", "\x1b[200~\x1b[201~\x1b[200~␛\x1b[201~x"),
        (b"\x1b" + PASTE + b"\x1bx" + END, "\x1b\x1b[200~␛x\x1b[201~"),
        (b"\x1b[20" + PASTE + b"\x1bx" + END, "\x1b[20\x1b[200~␛x\x1b[201~"),
    ],
)
def test_however_it_is_cut_it_reads_the_same(sent: bytes, read: str) -> None:
    assert decoded(sent) == read
    assert decoded(*(sent[at : at + 1] for at in range(len(sent)))) == read
    for at in range(len(sent)):
        assert decoded(sent[:at], sent[at:]) == read
    generator = random.Random(1)
    for _ in range(50):
        one, two = sorted((generator.randrange(len(sent) + 1), generator.randrange(len(sent) + 1)))
        assert decoded(sent[:one], sent[one:two], sent[two:]) == read


def test_nothing_is_held_back_outside_of_a_paste() -> None:
    decoder = TerminalDecoder()
    assert decoder.decode(b"\x1b") == "\x1b"
    assert decoder.decode(b"[") == "["
    assert decoder.decode(b"200~\x1b") == "200~"
    assert decoder.decode(b"[201~x") == "\x1b[201~x"
