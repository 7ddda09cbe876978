"""Why there is no answer yet: the engine starts, loads its model, or is gone."""

from typing import TYPE_CHECKING

from textual.content import Content
from textual.widgets import Static

from dsv4chat.app.styles import beside
from dsv4chat.app.wording import seconds, size
from dsv4chat.visible import visible

if TYPE_CHECKING:
    from dsv4chat.runtime.protocol import Loading

_BAR = 12  # cells


class EngineBanner(Static):
    """Hidden while the engine is ready."""

    DEFAULT_CSS = beside(__file__)

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("", markup=False, id=id)

    def show_starting(self) -> None:
        """The process is being started."""
        self._show("Starting the engine…", failed=False)

    def show_loading(self, progress: "Loading") -> None:
        """The model is being loaded."""
        share = progress.bytes_done / progress.bytes_total if progress.bytes_total else 0.0
        filled = min(_BAR, int(share * _BAR))
        parts = [f"{visible(progress.stage).capitalize() or 'Loading'} {'━' * filled}{'─' * (_BAR - filled)}"]
        if progress.bytes_total:
            parts.append(f"{size(progress.bytes_done)} of {size(progress.bytes_total)}")
        if progress.seconds_left is not None:
            parts.append(f"{seconds(progress.seconds_left)} left")
        if progress.tensors_total:
            parts.append(f"{progress.tensors_done:,} of {progress.tensors_total:,} tensors")
        self._show("  ".join(parts), failed=False)

    def show_failed(self, sentence: str, key: str) -> None:
        """The engine is gone; `key` starts it again."""
        how = f"{key} starts it again, and so does the next message · F4 shows its log"
        self._show(f"{visible(sentence)}\n{how}", failed=True)

    def show_hanging(self, sentence: str, key: str) -> None:
        """The engine does not get on; `key` starts it again."""
        self._show(
            f"{visible(sentence)}\n{key} starts it again, and the answer so far is kept · F4 shows its log",
            failed=True,
        )

    def hide(self) -> None:
        """The engine is ready."""
        self.display = False

    def _show(self, sentence: str, *, failed: bool) -> None:
        self.set_class(failed, "-failed")
        self.display = True
        self.update(Content(sentence), layout=failed or not self.display)
