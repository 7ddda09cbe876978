"""The child must not outlive the app, not even while it hangs.

Normally the socket tells: when it closes, a thread ends the process. A process that is stopped, or stuck in
native code that lets no other thread run, does not hear that. On Linux the kernel itself ends it then, with
the thread that started it, which in the app is the main one. Elsewhere such a process is ended by hand.
"""

import contextlib
import ctypes
import signal
import sys

_PR_SET_PDEATHSIG = 1  # prctl(2)


def end_with_the_parent() -> None:
    """From now on this process is killed when the thread that started it ends, where that can be had."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
