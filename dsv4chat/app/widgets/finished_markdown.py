"""Finished Markdown: Textual's widget with a parser that hides nothing and obeys nothing."""

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from textual.content import Content
from textual.widgets import Markdown
from textual.widgets._markdown import MarkdownParagraph

from dsv4chat.app.styles import beside
from dsv4chat.app.widgets.code_block import CodeBlock
from dsv4chat.app.widgets.compact_list import CompactBulletList, CompactOrderedList
from dsv4chat.app.widgets.compact_table import CompactTable
from dsv4chat.app.widgets.settled_size import SettledColumn, SettledSize
from dsv4chat.visible import visible


class SettledParagraph(SettledSize, MarkdownParagraph):
    """A paragraph. Being given its text before it is on the screen is no reason for a layout of its own."""

    def set_content(self, content: Content) -> None:
        self._content = content
        self.update(content, layout=self.is_mounted)


class FinishedMarkdown(SettledColumn, Markdown):
    """One or more finished top-level blocks. Links are not followed, only `LinkClicked` is posted."""

    DEFAULT_CSS = beside(__file__)
    BLANK = True  # its blocks draw all there is
    BLOCKS = {  # noqa: RUF012
        **Markdown.BLOCKS,
        "paragraph_open": SettledParagraph,
        "bullet_list_open": CompactBulletList,
        "ordered_list_open": CompactOrderedList,
        "table_open": CompactTable,
        "fence": CodeBlock,
        "code_block": CodeBlock,
    }

    def __init__(self, text: str) -> None:
        super().__init__(text, parser_factory=parser, open_links=False)


def parser() -> MarkdownIt:
    """GitHub's Markdown without HTML and link definitions, which would vanish from the screen as they are
    read; control characters, also those written as entities, become visible."""
    markdown = MarkdownIt("gfm-like", {"html": False}).disable("reference")
    markdown.core.ruler.push("visible", _make_visible)
    return markdown


def _make_visible(state: StateCore) -> None:
    for token in state.tokens:
        token.content = visible(token.content)
        for child in token.children or ():
            child.content = visible(child.content)
            if "href" in child.attrs:
                child.attrs["href"] = visible(str(child.attrs["href"]))
            if "src" in child.attrs:
                child.attrs["src"] = visible(str(child.attrs["src"]))
