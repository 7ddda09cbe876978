"""When Python looks for garbage in cycles: while nobody waits for the screen.

A look through everything takes 30 ms and more, in which no key is answered. What is there when the model is
ready, a tokenizer's large tables among it, lives as long as the program and is never looked at again; what
came since is looked at when an answer has been over for a while and nobody types. Before the first paint
there is none to find, and looking would take a tenth of that time.
"""

import gc
from time import monotonic as now

QUIET = 3.0  # seconds without anything going on before it may be looked
_NEVER = 1_000_000_000


def put_off() -> None:
    """Do not look until `begin`."""
    gc.disable()


def begin() -> None:
    """Look from now on, if it was put off; not at what is there now."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


class Garbage:
    """Takes over from Python's own thresholds with `settle`; call `busy` whenever something goes on,
    and `look` now and then.
    """

    def __init__(self) -> None:
        self._settled = self._anything = False
        self._last = 0.0

    def settle(self) -> None:
        """All there is now will stay."""
        gc.freeze()
        gc.set_threshold(*gc.get_threshold()[:2], _NEVER)
        self._settled = True

    def busy(self, *, made: bool = False) -> None:
        """Something goes on; made: and something that can become garbage."""
        self._last = now()
        self._anything |= made

    def look(self) -> None:
        """Look for garbage if there may be some and this is a good moment."""
        if self._settled and self._anything and now() - self._last >= QUIET:
            self._anything = False
            gc.collect()
