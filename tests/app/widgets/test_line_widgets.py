"""Lines and panels of numbers, and the input; each widget alone."""

import pytest

from dsv4chat.app.live_figures import LatencyFigures, ResidualFigures
from dsv4chat.app.widgets.composer import Composer
from dsv4chat.app.widgets.engine_banner import EngineBanner
from dsv4chat.app.widgets.latency_panel import LatencyPanel
from dsv4chat.app.widgets.metrics_line import MetricsLine
from dsv4chat.app.widgets.residual_panel import ResidualPanel
from dsv4chat.app.widgets.status_line import StatusLine
from dsv4chat.app.widgets.title_bar import TitleBar
from dsv4chat.app.widgets.waiting_messages import WaitingMessages
from dsv4chat.runtime.protocol import Loading
from tests.support.host import drawn, hosted


def latency(count: int = 100) -> LatencyFigures:
    figures = LatencyFigures()
    figures.begin_turn(431)
    for step in range(count):
        figures.token(10.0 + step % 4)
    figures.reused, figures.first_token, figures.prefill, figures.first_decode = 412, 148.0, 136.0, 12.0
    return figures


def residual(layers: int, count: int = 50) -> ResidualFigures:
    figures = ResidualFigures(["window", "csa", "hca"] * layers)
    figures.kinds = figures.kinds[:layers]
    for step in range(count):
        figures.token([1.5 * 1.1 ** (layer * 60 / layers) * (1 + step % 3) for layer in range(layers)])
    return figures


async def test_the_latency_panel_shows_each_number_once_it_is_known() -> None:
    async with hosted(lambda: LatencyPanel(LatencyFigures())) as (host, pilot):
        assert "no tokens yet" in drawn(host)
        size = host.widget.outer_size
        host.widget.figures = latency()
        host.widget.refresh()
        await pilot.pause()
        lines = [line.strip("│╭╮╰╯─ ") for line in drawn(host).split("\n")]
        assert lines[1].split() == ["13.0", "ms", "last", "token", "87.0", "tok/s"]
        assert lines[2].endswith("▇▇██")
        assert lines[3].split() == ["p50", "11.0", "p95", "13.0", "max", "13.0"]
        assert lines[4].split() == ["first", "token", "148", "ms"]
        assert lines[5].split() == ["prefill,", "decode", "136", "+", "12.0", "ms"]
        assert lines[6].split() == ["prompt", "reused", "412", "of", "431"]
        assert host.widget.outer_size == size


@pytest.mark.parametrize("layers", [1, 5, 8, 30, 43, 61, 100])
async def test_the_residual_panel_has_a_fixed_size_for_any_number_of_layers(layers: int) -> None:
    async with hosted(lambda: ResidualPanel(residual(layers)), (60, 24)) as (host, _):
        lines = drawn(host).split("\n")
        assert len(lines) == 19
        assert all(len(line) == 39 for line in lines)
        assert f"L{layers}" in lines[10]
        assert "L1" in lines[17]
        peak = residual(layers).rows[-1][-1]
        assert lines[1].split()[1] == (f"{peak:.0f}" if peak >= 100 else f"{peak:.1f}")
        assert f"at layer {layers}" in lines[1]
        assert ("one column a layer" in lines[9]) == (31 < layers <= 62)


async def test_residual_columns_rise_with_the_layers_and_keep_their_envelope() -> None:
    figures = ResidualFigures(["window"] * 8)
    figures.token([2.0**layer * 8 for layer in range(8)])
    figures.token([2.0**layer for layer in range(8)])
    async with hosted(lambda: ResidualPanel(figures), (60, 24)) as (host, _):
        lines = [line[6:38] for line in drawn(host).split("\n")[2:9]]
        columns = ["".join(line[3 * column] for line in lines) for column in range(8)]
        heights = [7 - column.count(" ") for column in columns]
        assert heights == sorted(heights)
        styles = host.widget.get_visual_style("residual-panel--envelope")
        assert styles is not None
        assert columns[0][-2] in "▁▂▃▄▅▆▇█"  # the envelope above a value of 1


async def test_the_metrics_line_drops_what_does_not_fit() -> None:
    for width, expected in ((100, "|X|"), (40, "tok/s"), (12, "ms")):
        async with hosted(lambda: MetricsLine(latency(), residual(8)), (width, 3)) as (host, _):
            line = drawn(host).split("\n")[0]
            assert expected in line
            assert len(line) <= width
    async with hosted(lambda: MetricsLine(LatencyFigures(), ResidualFigures())) as (host, _):
        assert drawn(host).strip() == "no tokens yet"


async def test_the_status_line_shows_mode_context_and_warning() -> None:
    async with hosted(StatusLine, (80, 3)) as (host, pilot):
        line = host.widget
        assert drawn(host).strip() == "● thinking"
        line.effort, line.used, line.room, line.warning = "max", 4096, 8192, "history not saved"
        await pilot.pause()
        assert drawn(host).split() == [
            "●", "thinking", "max", "history", "not", "saved", "━━━━━─────", "4096", "of", "8192",
        ]  # fmt: skip
        line.thinking = False
        await pilot.pause()
        assert drawn(host).strip().startswith("○ thinking off")
        await pilot.resize_terminal(36, 3)
        await pilot.pause()
        assert all(len(row) <= 36 for row in drawn(host).split("\n"))


async def test_the_title_gives_way_to_the_model() -> None:
    async with hosted(TitleBar, (60, 3)) as (host, pilot):
        host.widget.title, host.widget.model = "A rather long title of a conversation", "demo · cpu"
        await pilot.pause()
        line = drawn(host).split("\n")[0]
        assert line.startswith(" dsv4chat · A rather long title")
        assert line.endswith("demo · cpu")
        assert "…" in line
        await pilot.resize_terminal(24, 3)
        await pilot.pause()
        assert drawn(host).split() == ["dsv4chat", "demo", "·", "cpu"]


async def test_the_banner_shows_progress_and_failure_and_hides() -> None:
    async with hosted(EngineBanner, (100, 10)) as (host, pilot):
        host.widget.show_loading(
            Loading(
                stage="loading weights",
                bytes_done=10_000_000,
                bytes_total=20_000_000,
                tensors_done=1200,
                tensors_total=2400,
                seconds_left=75.0,
            )
        )
        await pilot.pause()
        assert drawn(host).strip() == (
            "Loading weights ━━━━━━──────  10.0 MB of 20.0 MB  1 min 15 s left  1,200 of 2,400 tensors"
        )
        host.widget.show_failed("It \x1b[31mbroke.", "F5")
        await pilot.pause()
        assert "It ␛[31mbroke." in drawn(host)
        assert "F5 starts it again" in drawn(host)
        host.widget.hide()
        await pilot.pause()
        assert drawn(host) == ""


async def test_enter_submits_and_keeps_the_text_until_it_is_cleared() -> None:
    async with hosted(Composer) as (host, pilot):
        host.widget.focus()
        await pilot.press(*"hello", "enter")
        (submitted,) = [message for message in host.heard if isinstance(message, Composer.Submitted)]
        assert submitted.text == "hello"
        assert submitted.control is host.widget
        assert host.widget.text == "hello"


async def test_an_edited_message_is_marked_and_the_draft_comes_back() -> None:
    async with hosted(Composer, (80, 10)) as (host, pilot):
        host.widget.focus()
        await pilot.press(*"draft")
        host.widget.begin_edit(7, "what I said")
        await pilot.pause()
        assert "another version of your message" in drawn(host)
        assert host.widget.text == "what I said"
        host.widget.begin_edit(8, "other")
        host.widget.end_edit()
        await pilot.pause()
        assert host.widget.text == "draft"
        assert host.widget.editing is None
        assert "another version" not in drawn(host)


async def test_waiting_messages_are_listed_and_taken_back_from_the_end() -> None:
    async with hosted(WaitingMessages, (80, 10)) as (host, pilot):
        assert drawn(host) == ""
        for text in ("one", "t\x1bwo", "three", "four"):
            host.widget.add(text, "after this answer")
        await pilot.pause()
        shown = drawn(host)
        assert "› t␛wo" in shown
        assert "four" not in shown
        assert "and 1 more, sent after this answer · ↑ takes the last one back" in shown
        assert host.widget.take_back() == "four"
        assert host.widget.next() == "one"
        host.widget.put_first("one")
        assert host.widget.take_all() == "one\n\nt\x1bwo\n\nthree"
        await pilot.pause()
        assert drawn(host) == ""


async def test_a_large_paste_is_taken_quickly_and_drawn_harmlessly() -> None:
    async with hosted(Composer) as (host, pilot):
        text = "line with \x1b[31m\n" * 60_000
        host.widget.insert(text)
        await pilot.pause()
        assert host.widget.text == text
        assert "\x1b" not in drawn(host)
        assert host.widget.size.height <= 8


async def test_what_is_typed_before_a_sent_text_is_cleared_stays() -> None:
    async with hosted(Composer) as (host, pilot):
        host.widget.focus()
        await pilot.press(*"hello", "left", "left", "enter", *"next")
        host.widget.clear_sent()
        assert host.widget.text == "next"
        host.widget.clear_sent()
        assert host.widget.text == ""


@pytest.mark.parametrize("layers", [8, 43, 100])
@pytest.mark.parametrize("height", [10, 12, 5])
async def test_in_little_room_the_residual_panel_is_its_columns(layers: int, height: int) -> None:
    async with hosted(lambda: ResidualPanel(residual(layers)), (60, 24)) as (host, pilot):
        host.widget.styles.height = height
        await pilot.pause()
        lines = drawn(host).split("\n")
        assert len(lines) == height
        marks = {character for line in lines[2:-2] for character in line[5:-1]} - set(" │⁰¹²³⁴10")
        assert marks
        assert all(character in "▁▂▃▄▅▆▇█" or "⠀" < character <= "⣿" for character in marks)
        assert "▀" not in drawn(host)
        peak = residual(layers).rows[-1][-1]
        assert lines[1].split()[1] == (f"{peak:.0f}" if peak >= 100 else f"{peak:.1f}")
