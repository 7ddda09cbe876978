"""The list of options: pages where there is room, nothing where there is none."""

from textual.widgets.option_list import Option

from dsv4chat.app.widgets.choice_list import ChoiceList
from tests.support.host import hosted


def choices() -> ChoiceList:
    return ChoiceList(*(Option(f"choice {number}") for number in range(20)), compact=True)


async def test_a_page_is_as_long_as_the_list_is_high() -> None:
    async with hosted(choices, (30, 6)) as (host, pilot):
        shown = host.query_one(ChoiceList)
        shown.focus()
        await pilot.press("pagedown")
        assert shown.highlighted == shown.scrollable_content_region.height
        await pilot.press("pageup")
        assert shown.highlighted == 0


async def test_without_a_row_the_page_keys_do_nothing() -> None:
    async with hosted(choices, (30, 6)) as (host, pilot):
        shown = host.query_one(ChoiceList)
        shown.focus()
        shown.styles.height = 0
        await pilot.pause()
        await pilot.press("down", "pagedown", "pagedown", "pageup")
        assert shown.highlighted == 1
