"""The search screen alone, over a search that is given."""

from collections.abc import Callable

from textual.widgets import Input, OptionList

from dsv4chat.app.screens.search_screen import PAGE, SearchScreen
from dsv4chat.store import Found
from tests.support.app_parts import wait_until
from tests.support.host import drawn, hosted_screen

NOW = 1_000_000.0


def found(message: int, excerpt: str = "the red ship sails", **more: object) -> Found:
    return Found(7, message, f"Title {message}", "user", NOW - 600, excerpt, ((4, 7),), **more)  # type: ignore[arg-type]


class Searches:
    """Answers with messages numbered downwards from `count`; remembers what was asked."""

    def __init__(self, count: int) -> None:
        self.asked: list[tuple[str, int | None]] = []
        self.count = count

    async def __call__(self, words: str, before: int | None) -> list[Found]:
        self.asked.append((words, before))
        last = self.count if before is None else before - 1
        return [found(number) for number in range(last, max(0, last - PAGE), -1)]


def screen(search: Searches, words: str = "") -> Callable[[], SearchScreen]:
    return lambda: SearchScreen(search, words, now=lambda: NOW)


async def test_leaving_the_program_during_a_search_is_no_error() -> None:
    class Slow(Searches):
        async def __call__(self, words: str, before: int | None) -> list[Found]:
            await host.screen.query(OptionList).remove()  # as the end of the program does
            return await super().__call__(words, before)

    search = Slow(3)
    async with hosted_screen(screen(search)) as (host, pilot, _):
        await pilot.press("r")
        await wait_until(pilot, lambda: search.asked)
        await pilot.pause(0.1)


async def test_typing_searches_and_enter_gives_the_marked_message() -> None:
    search = Searches(3)
    async with hosted_screen(screen(search)) as (host, pilot, given):
        await pilot.press(*"red")
        await wait_until(pilot, lambda: "3 messages, newest first" in drawn(host))
        shown = drawn(host)
        assert "Title 3 · you · 10 min" in shown
        assert "the red ship sails" in shown
        assert search.asked[-1] == ("red", None)
        await pilot.press("down", "enter")
        await wait_until(pilot, lambda: given)
        assert given == [found(2)]


async def test_words_given_are_searched_at_once_and_escape_leaves() -> None:
    search = Searches(1)
    async with hosted_screen(screen(search, "ship")) as (host, pilot, given):
        await wait_until(pilot, lambda: "1 message, newest first" in drawn(host))
        await pilot.press("escape")
        await wait_until(pilot, lambda: given == [None])
        assert search.asked == [("ship", None)]


async def test_older_messages_are_loaded_when_the_mark_comes_to_the_end() -> None:
    search = Searches(PAGE + 7)
    async with hosted_screen(screen(search, "x")) as (host, pilot, _):
        await wait_until(pilot, lambda: f"{PAGE} messages and more" in drawn(host))
        options = host.screen.query_one(OptionList)
        options.highlighted = PAGE - 1
        await wait_until(pilot, lambda: options.option_count == PAGE + 7)
        assert f"{PAGE + 7} messages, newest first" in drawn(host)
        assert search.asked[-1] == ("x", 8)


async def test_nothing_found_and_nothing_asked_are_told_apart() -> None:
    search = Searches(0)
    async with hosted_screen(screen(search, "x")) as (host, pilot, _):
        await wait_until(pilot, lambda: "Nothing found." in drawn(host))
        host.screen.query_one(Input).value = ""
        await wait_until(pilot, lambda: "Nothing found." not in drawn(host))
        await pilot.press("enter", "down", "pageup")
        assert search.asked == [("x", None)]


async def test_escape_sequences_and_markup_in_what_is_found_are_shown() -> None:
    async def search(words: str, before: int | None) -> list[Found]:
        return [
            Found(1, 1, "[b]t\x1b]52", "assistant", NOW, "a \x1b[31m [red]x[/red] z", ((2, 7),), "reasoning")
        ]

    async with hosted_screen(lambda: SearchScreen(search, "x", now=lambda: NOW), (60, 15)) as (
        host,
        pilot,
        _,
    ):
        await wait_until(pilot, lambda: "[red]x[/red]" in drawn(host))
        assert "[b]t␛]52 · thinking · now" in drawn(host)
        assert "␛[31m" in drawn(host)
