"""The runtime's process itself: how it is started with one end of a socket pair, and how it is ended."""

import asyncio
import contextlib
import fcntl
import signal
import socket
import sys
from collections.abc import Sequence

from dsv4chat.engine_errors import describe_exit
from dsv4chat.logs import EngineLog

CLOSE_SECONDS = 2.0

Process = asyncio.subprocess.Process


async def start_child(
    log: EngineLog, *, command: Sequence[str] | None = None, threads: int | None = None
) -> tuple[Process, socket.socket]:
    """A started child and our end of its socket. OSError if there is no such program.

    Its standard output and error are the log. command: what to start instead of the runtime.
    """
    ours, theirs = socket.socketpair()
    if theirs.fileno() < 3:
        # Someone closed our standard streams; the child's would take this number from it.
        theirs = socket.socket(fileno=fcntl.fcntl(theirs.detach(), fcntl.F_DUPFD_CLOEXEC, 3))
    # -P: a file in the user's folder must not stand in for a module of the same name.
    command = command or (sys.executable, "-P", "-m", "dsv4chat.runtime.child")
    options = ["--fd", str(theirs.fileno())]
    if log.named:
        options += ["--log", str(log.path)]
    if threads is not None:
        options += ["--threads", str(threads)]
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            *options,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log.descriptor,
            stderr=log.descriptor,
            pass_fds=(theirs.fileno(),),
            # Ctrl+C in the terminal is for the app; the child is told to stop over the socket.
            start_new_session=True,
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
        log.started()
    return process, ours


async def end_child(process: Process) -> None:
    """Wait for a child that has been asked to end; help with signals if it does not."""
    for end in (None, signal.SIGTERM, signal.SIGKILL):
        if end is not None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(end)
        if await _ended(process):
            return


async def how_it_ended(process: Process) -> str:
    """Why a child whose socket has closed is gone; it is killed if it is not."""
    if await _ended(process) and process.returncode is not None:
        return describe_exit(process.returncode)
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    return "it closed its connection and hung, and was killed"


async def _ended(process: Process) -> bool:
    try:
        await asyncio.wait_for(asyncio.shield(process.wait()), CLOSE_SECONDS)
    except TimeoutError:
        return False
    return True
