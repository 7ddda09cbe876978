"""The same text through Textual's own `MarkdownStream`, piece by piece: what the app is held against."""

import asyncio
import json
import sys
import time
from pathlib import Path

from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Footer, Markdown, TextArea

from dsv4chat.encoding import Tokenizer
from dsv4chat.paths import model_folder
from dsv4chat.screen_bench.chat import Job
from dsv4chat.screen_bench.texts import answer


class PlainApp(App[None]):
    """A Markdown widget that is fed, and an input; Ctrl+J begins."""

    CSS = "VerticalScroll { height: 1fr; } TextArea { height: 5; }"
    BINDINGS = [("f8", "begin", "Begin"), ("ctrl+q", "quit", "Quit")]  # noqa: RUF012

    def __init__(self, pieces: list[str], rate: float) -> None:
        super().__init__()
        self._pieces = pieces
        self._rate = rate
        self.started = self.due = self.processor = 0.0

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Markdown("Message")
        yield TextArea()
        yield Footer()

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).anchor()
        self.query_one(TextArea).focus()

    def action_begin(self) -> None:
        self.run_worker(self._feed())

    async def _feed(self) -> None:
        stream = Markdown.get_stream(self.query_one(Markdown))
        self.started = time.monotonic()
        self.processor = -time.process_time()
        self.due = self.started + (len(self._pieces) - 1) / self._rate
        for step, piece in enumerate(self._pieces):
            wait = self.started + step / self._rate - time.monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
            await stream.write(piece)
        await stream.stop()
        self.processor += time.process_time()


def main(job: Job) -> None:
    """Run the app until it is left."""
    tokenizer = Tokenizer.from_folder(model_folder("demo"))
    decoder = tokenizer.decoder()
    pieces = [decoder.push(number) for number in answer(job.kind, job.tokens, tokenizer)]
    app = PlainApp(pieces, job.rate)
    app.run()
    times = {"started": app.started, "due": app.due, "opened": 0.0, "processor": app.processor}
    Path(job.result).write_text(json.dumps(times))


if __name__ == "__main__":
    main(Job(**json.loads(sys.argv[1])))
