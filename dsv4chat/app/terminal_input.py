"""What comes from the terminal, also when it is no UTF-8: a paste of other bytes must not end the chat."""

from codecs import IncrementalDecoder, getincrementaldecoder
from collections.abc import Callable
from functools import partial

from textual.driver import Driver


def forgiving(driver: type[Driver]) -> type[Driver]:
    """`driver`, reading bytes that are no UTF-8 as U+FFFD instead of failing; other drivers as they are."""
    try:
        from textual.drivers import linux_driver
    except ImportError:  # no POSIX terminal
        return driver
    if driver is not linux_driver.LinuxDriver:
        return driver

    class ForgivingDriver(linux_driver.LinuxDriver):
        def run_input_thread(self) -> None:
            # The name by which Textual's method looks for its decoder, which is a strict one.
            vars(linux_driver)["getincrementaldecoder"] = _replacing
            super().run_input_thread()

    return ForgivingDriver


def _replacing(encoding: str) -> Callable[[], IncrementalDecoder]:
    return partial(getincrementaldecoder(encoding), errors="replace")
