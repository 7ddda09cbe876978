"""Lists and tables that are drawn in one piece, and those that cannot be."""

from textual.geometry import Offset
from textual.selection import Selection

from dsv4chat.app.widgets.compact_list import CompactBulletList
from dsv4chat.app.widgets.finished_markdown import FinishedMarkdown
from tests.support.host import drawn, hosted


async def test_a_list_with_code_inside_is_made_of_textuals_widgets_and_shows_all() -> None:
    for source in (
        "- before\n\n  ```python\n  x = 1\n  ```\n- after\n",
        "1. before\n\n   ```python\n   x = 1\n   ```\n2. after\n",
        "- outer\n  - before\n\n    ```python\n    x = 1\n    ```\n- after\n",
    ):
        async with hosted(lambda source=source: FinishedMarkdown(source), (40, 20)) as (host, _):
            shown = drawn(host)
            assert shown.index("before") < shown.index("x = 1") < shown.index("after")


async def test_items_without_a_text_keep_their_bullets_and_paragraphs_their_distance() -> None:
    source = "- \n- a\n\n  second\n- - inner\n\n3. three\n4. four\n"
    async with hosted(lambda: FinishedMarkdown(source), (30, 20)) as (host, _):
        lines = drawn(host).split("\n")
        assert [line.rstrip() for line in lines if line] == [
            "•",
            "• a",
            "  second",
            "•",
            "  ‣ inner",
            "3. three",
            "4. four",
        ]
        assert lines[lines.index("• a") + 1] == ""


async def test_columns_stand_as_they_are_aligned() -> None:
    source = "| left | middle | right |\n|:--|:-:|--:|\n| a | b | c |\n"
    async with hosted(lambda: FinishedMarkdown(source), (40, 20)) as (host, _):
        head, _, row = drawn(host).split("\n")
        assert (row.index("a"), row.index("c")) == (head.index("left"), head.index("right") + 4)
        assert head.index("middle") < row.index("b") < head.index("middle") + 5


async def test_a_drawn_list_gives_its_text_to_a_selection() -> None:
    async with hosted(lambda: FinishedMarkdown("- one\n- two\n"), (30, 10)) as (host, _):
        block = host.query_one(CompactBulletList)
        assert block.get_selection(Selection(Offset(2, 0), Offset(5, 1))) == ("one\n• two", "\n")
