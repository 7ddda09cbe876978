"""The code blocks of a Markdown text."""

from dataclasses import dataclass

from markdown_it import MarkdownIt


@dataclass(frozen=True)
class CodeBlock:
    """language: as the fence names it, "" if it does not. text: without the last line break."""

    language: str
    text: str


def code_blocks(markdown: str) -> list[CodeBlock]:
    """All fenced and indented blocks, from the first to the last, an unfinished one too."""
    return [
        CodeBlock(token.info.split()[0] if token.info.split() else "", token.content.removesuffix("\n"))
        for token in MarkdownIt("commonmark").parse(markdown)
        if token.type in ("fence", "code_block")
    ]
