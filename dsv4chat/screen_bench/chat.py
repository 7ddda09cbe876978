"""The app as the benchmark runs it: a paced engine, a history of its own. `python -m` with a JSON job."""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from dsv4chat.app.app import ChatApp
from dsv4chat.app.engine_link import read_text_side
from dsv4chat.app.session import ChatSession
from dsv4chat.app.widgets.transcript import Transcript
from dsv4chat.paths import model_folder
from dsv4chat.runtime.protocol import Load
from dsv4chat.screen_bench.engine import PacedEngine
from dsv4chat.screen_bench.texts import answer, earlier_answer, question
from dsv4chat.store import BackgroundStore, ConversationSettings, GenerationRecord, open_history
from dsv4chat.store.figures import TokenFigures


@dataclass(frozen=True)
class Job:
    """What to do, and the file to write the times to."""

    result: str
    kind: str = "prose"
    tokens: int = 2000
    rate: float = 200.0
    history: int = 0


class BenchApp(ChatApp):
    """Measures how long the conversation takes to open: from asking the history to the drawn screen."""

    opened = 0.0

    def __init__(self, make_session: Callable[[], ChatSession], history: int) -> None:
        super().__init__(make_session)
        self._history = history

    async def _build(self) -> None:
        await super()._build()
        session, messages = self.session, self.chat.query_one(Transcript).messages
        # Without a history a record here is the first message of a quick typist, whose answer must go on.
        if not self._history or session is None or session.record is None:
            return
        while not messages.mounted:
            await asyncio.sleep(0.01)
        before = messages.mounted[-1]
        begun = time.monotonic()
        session.open_conversation(session.record.id)
        while not messages.mounted or messages.mounted[-1] is before:
            await asyncio.sleep(0.002)
        drawn = asyncio.Event()
        messages.call_after_refresh(drawn.set)
        await drawn.wait()
        self.opened = time.monotonic() - begun


def write_history(folder: Path, messages: int) -> None:
    """A conversation of so many messages, questions and answers in turn, with figures for their tokens."""
    history = open_history(folder).repository
    talk = history.create_conversation(ConversationSettings(thinking=False)).id
    parent: int | None = None
    generation = GenerationRecord("paced", "paced", "preview", layers=8, tokens=60)
    figures = TokenFigures()
    for number in range(60):
        figures.add(number, "answer", 5.0, -0.5, [1.0] * 8)
    for number in range(messages):
        if number % 2 == 0 or parent is None:
            parent = history.add_message(talk, parent, "user", question(number)).id
        else:
            parent = history.begin_answer(talk, parent, generation, thinking=False, effort=None).id
            history.finish_answer(parent, "complete", earlier_answer(number), None, 0, figures, generation)
    history.close()


def main(job: Job) -> None:
    """Run the app until it is left."""
    text = read_text_side(model_folder("demo"), None)
    engine = PacedEngine(text.tokenizer, answer(job.kind, job.tokens, text.tokenizer), job.rate)
    with tempfile.TemporaryDirectory() as folder:
        if job.history:
            write_history(Path(folder), job.history)

        def make_session() -> ChatSession:
            return ChatSession(
                make_engine=lambda: engine,
                read_text=lambda: text,
                load=Load(),
                store=BackgroundStore(Path(folder)),
                settings=ConversationSettings(thinking=False),
            )

        app = BenchApp(make_session, job.history)
        app.run()
        times = {
            "started": engine.started,
            "due": engine.due,
            "opened": app.opened,
            "processor": engine.processor,
        }
        Path(job.result).write_text(json.dumps(times))


def command(module: str, job: Job) -> list[str]:
    """The command line that runs a program of this package."""
    return [sys.executable, "-m", f"dsv4chat.screen_bench.{module}", json.dumps(asdict(job))]


if __name__ == "__main__":
    main(Job(**json.loads(sys.argv[1])))
