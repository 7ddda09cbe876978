"""How far a load is, told at most twenty times a second, with the time left."""

import time
from collections.abc import Callable

from dsv4chat.runtime.protocol import Loading, Reply

PROGRESS_SECONDS = 0.05


class LoadingProgress:
    """Takes an engine's progress and sends `Loading`."""

    def __init__(self, send: Callable[[Reply], None]) -> None:
        self._send = send
        self._started = time.perf_counter()
        self._sent = 0.0
        self._now = (0, 0, 0, 0)

    def __call__(self, bytes_done: int, bytes_total: int, tensors_done: int, tensors_total: int) -> None:
        self._now = (bytes_done, bytes_total, tensors_done, tensors_total)
        if time.perf_counter() - self._sent >= PROGRESS_SECONDS:
            self.last()

    def last(self) -> None:
        """Send the newest figures."""
        self._sent = time.perf_counter()
        bytes_done, bytes_total, tensors_done, tensors_total = self._now
        left = None
        if bytes_done:
            left = (self._sent - self._started) * (bytes_total - bytes_done) / bytes_done
        self._send(
            Loading(
                stage="Reading the weights",
                bytes_done=bytes_done,
                bytes_total=bytes_total,
                tensors_done=tensors_done,
                tensors_total=tensors_total,
                seconds_left=left,
            )
        )
