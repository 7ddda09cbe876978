"""The engine as the app keeps it: started, loaded beside its tokenizer, watched. Knows no widget."""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from dsv4chat.app.events import (
    ChatEvent,
    EngineDown,
    EngineHangs,
    EngineLoading,
    EngineReady,
    EngineRecovered,
    EngineStarting,
    Notice,
)
from dsv4chat.app.ports import Engine
from dsv4chat.app.wording import seconds
from dsv4chat.encoding import EncodingError, Profile, Tokenizer, detect_profile
from dsv4chat.engine_process import EngineDied, EngineFailed, Hang
from dsv4chat.runtime.protocol import Load, Ready, SamplingParams
from dsv4chat.sampling_defaults import model_sampling

LOADING_SECONDS = 30.0  # of silence that a load may take


@dataclass(frozen=True)
class TextSide:
    """What turns text into ids for one model folder. fingerprint: of its tokenizer.json.

    sampling: how the model wants to be sampled where nobody says otherwise.
    """

    tokenizer: Tokenizer
    fingerprint: str
    profile: Profile
    notice: str | None
    sampling: SamplingParams = field(default_factory=SamplingParams)


def read_text_side(folder: Path, profile: str | None) -> TextSide:
    """Read the tokenizer and find the prompt profile; takes up to a second. Raises EncodingError."""
    tokenizer = Tokenizer.from_folder(folder)
    try:
        digest = hashlib.sha256((folder / "tokenizer.json").read_bytes()).hexdigest()
    except OSError as error:
        raise EncodingError(f"tokenizer.json in {folder} cannot be read ({error}).") from error
    choice = detect_profile(folder, profile)
    return TextSide(tokenizer, digest[:16], choice.profile, choice.notice, model_sampling(folder))


class EngineLink:
    """One engine at a time. state: "off", "starting", "loading", "ready" or "down".

    saves: the folder it saves the caches of conversations in, if there is one.

    make: a new, not yet started engine. read: gives the text side; called in a thread. post: takes events.
    """

    def __init__(
        self,
        make: Callable[[], Engine],
        read: Callable[[], TextSide],
        load: Load,
        post: Callable[[ChatEvent], None],
    ) -> None:
        self.state = "off"
        self.engine: Engine | None = None
        self.text: TextSide | None = None
        self.ready: Ready | None = None
        self._hangs = self._stalled = False
        self._make = make
        self._read = read
        self._load = load
        self.saves = load.cache_folder
        self._post = post

    async def start(self) -> None:
        """Start the engine and load its model; what goes wrong is told by `EngineDown`, never raised."""
        self.ready = None
        self._hangs = self._stalled = False
        self._post(EngineStarting())
        await self.close()
        self.state = "starting"
        reading = asyncio.create_task(asyncio.to_thread(self._read))
        engine = self.engine = self._make()
        try:
            await engine.start()
            self.state = "loading"
            async for item in engine.load(self._load):
                if isinstance(item, Ready):
                    self.ready = item
                else:
                    self._post(EngineLoading(item))
            self.text = await reading
        except (EngineDied, EngineFailed, EncodingError, OSError) as error:
            self.down(error)
            return
        finally:
            if not reading.done():
                reading.cancel()
            else:
                reading.exception()  # looked at, so that it is not reported as forgotten
        if self.ready is None:
            self.down(EngineFailed("EngineError", "The engine ended its loading without a model."))
            return
        self.state = "ready"
        self._post(EngineReady(self.ready, self.text.profile.value))
        if self.text.notice:
            self._post(Notice(self.text.notice, "warning"))

    def hangs(self, sentence: str) -> None:
        """Take note that the engine does not get on."""
        self._hangs = True
        self._post(EngineHangs(sentence))

    def recovered(self) -> None:
        """Take note that it gets on again, if it did not."""
        if self._hangs:
            self._hangs = False
            self._post(EngineRecovered())

    def down(self, error: Exception) -> None:
        """Take note that the engine cannot be used any more."""
        if self.state == "down":
            return
        self.state = "down"
        log = self.engine.log_path if self.engine else Path()
        self._post(EngineDown(str(error), log, getattr(error, "last_lines", ())))

    async def look(self) -> None:
        """Notice that the engine hangs or gets on again, and a death that no turn was waiting for."""
        engine = self.engine
        if self.state not in ("loading", "ready") or engine is None:
            return
        stalled = engine.stalled
        if stalled is not None and self.state == "loading" and stalled.seconds < LOADING_SECONDS:
            return  # large libraries are being brought in, during which nothing else can run
        if stalled is not None:
            self._stalled = True
            self.hangs(_how(stalled))
        elif self._stalled:
            self._stalled = False
            self.recovered()
        if self.state != "ready" or engine.alive:
            return
        try:
            await engine.ping()
        except (EngineDied, EngineFailed, TimeoutError) as error:
            self.down(error)

    async def close(self) -> None:
        """End the engine."""
        engine, self.engine, self.state = self.engine, None, "off"
        if engine is not None:
            await engine.close()


def _how(hang: Hang) -> str:
    if hang.answers:
        return f"The engine has been at the same step for {seconds(hang.seconds)}."
    return f"The engine has not answered for {seconds(hang.seconds)}."
