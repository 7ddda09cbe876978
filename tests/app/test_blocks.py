"""Cutting a growing text into blocks: parsing the pieces gives what parsing the whole gives."""

import random

import pytest
from markdown_it import MarkdownIt

from dsv4chat.app.blocks import BlockSplitter

TEXTS = {
    "prose": "One line.\nAnother.\n\nSecond *paragraph*.\n\nThird",
    "heading": "# Title\nText right below\n## Sub\nmore\n\nend\n",
    "setext": "Title\n=====\n\ntext\n---\nafter",
    "fence": "Before:\n```python\ndef f():\n\n    return 1\n```\nAfter.\n",
    "tilde fence with backticks": "~~~~\n```\n~~~\n\nstill\n~~~~\n\nout",
    "open fence": "```\nnever\n\nclosed",
    "not a fence": "``` a ` b\n\nparagraph",
    "tight list": "Items:\n- a\n- b\n  - c\n- d\n\nDone.",
    "loose list": "- a\n\n- b\n\n  more of b\n\n- c\n\nDone.",
    "ordered": "1. one\n2. two\n\n3. three\n\ntext\n\n7. seven",
    "list with fence inside": "1. Do:\n\n   ```sh\n   ls\n\n   pwd\n   ```\n\n2. Then:\n\nend",
    "list then fence at the margin": "- a\n```\ncode\n\nmore\n```\n- b\n",
    "list with lazy line": "- a\nlazy\n\n    indented in a\n\nout",
    "indented code": "    code\n\n    more\n\ntext\n",
    "quote": "> a\n> b\n\n> c\nlazy\n\n> ```\n> x\n> ```\n\nend",
    "table": "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\nAfter",
    "rules": "***\n\n- - -\n\ntext\n\n---\n",
    "html": "<div>\n\n*x*\n\n</div>\n\nend",
    "crowded": "text\n- item\n# heading\n> quote\n```\nfence\n```\n1. item\n",
    "two bullets": "- a\n\n* b\n\n+ c\n",
    "empty items": "-\n\n  a\n\n1.\n\ntext",
    "spaces": "a  \nb\\\nc\n   \n\t\n d\n",
}


def parse(text: str) -> list[tuple[str, str, str, int]]:
    """Everything of a parse but where it stands."""
    tokens = MarkdownIt("gfm-like", {"html": False}).disable("reference").parse(text)
    return [(token.type, token.content, token.info, token.level) for token in tokens]


def split(pieces: list[str]) -> list[str]:
    splitter = BlockSplitter()
    blocks = [block for piece in pieces for block in splitter.push(piece)]
    return blocks + splitter.finish()


@pytest.mark.parametrize("name", TEXTS)
def test_pieces_parse_as_the_whole_does(name: str) -> None:
    blocks = split([TEXTS[name]])
    assert [token for block in blocks for token in parse(block)] == parse(TEXTS[name])


@pytest.mark.parametrize("name", TEXTS)
def test_blocks_do_not_depend_on_how_the_text_arrives(name: str) -> None:
    text = TEXTS[name]
    assert split(list(text)) == split([text])
    for cut in range(len(text)):
        assert split([text[:cut], text[cut:]]) == split([text])


def test_random_mixtures_parse_as_the_whole_does() -> None:
    lines = sorted({line for text in TEXTS.values() for line in text.split("\n")} | {"", "  ", "   x"})
    generator = random.Random(4)
    for _ in range(1500):
        text = "\n".join(generator.choices(lines, k=generator.randint(1, 9)))
        assert [token for block in split([text]) for token in parse(block)] == parse(text), repr(text)


def test_open_text_and_blocks_together_are_the_text() -> None:
    splitter = BlockSplitter()
    text = TEXTS["crowded"] + "\n" + TEXTS["loose list"]
    given = ""
    for count, character in enumerate(text, 1):
        given += "".join(splitter.push(character))
        shown = (given + splitter.open).replace("\n", "")
        assert shown == text[:count].replace("\n", "")


@pytest.mark.parametrize(
    ("text", "kind"),
    [("", ""), ("Hello", ""), ("Hello\n", "text"), ("```py\nx", "fence"), ("- a\n", "list"), ("a\n\n", "")],
)
def test_kind_names_the_open_block(text: str, kind: str) -> None:
    splitter = BlockSplitter()
    splitter.push(text)
    assert splitter.kind == kind


def test_a_paragraph_is_given_out_at_its_empty_line_and_a_fence_at_its_closing_line() -> None:
    splitter = BlockSplitter()
    assert splitter.push("a paragraph\n") == []
    assert splitter.push("\n") == ["a paragraph\n"]
    assert splitter.push("```\ncode\n``") == []
    assert splitter.push("`\n") == ["```\ncode\n```\n"]
    assert splitter.open == ""
