"""The runtime's process, spoken to over its socket without the app's client."""

import contextlib
import socket
import subprocess
import sys

from dsv4chat.runtime.protocol import frame, read_reply


class Child:
    """A started child and our end of its socket. named: whether its log is told to it by name."""

    def __init__(self, log, command=("-P", "-m", "dsv4chat.runtime.child"), *, named=True):
        self.socket, theirs = socket.socketpair()
        self.log = log
        options = ["--fd", str(theirs.fileno()), "--threads", "1", *(["--log", str(log)] if named else [])]
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, *command, *options],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        theirs.close()
        self.socket.settimeout(60)
        self.stream = self.socket.makefile("rb")

    def send(self, *messages):
        self.socket.sendall(b"".join(map(frame, messages)))

    def receive(self):
        size = int.from_bytes(self.stream.read(4), "little")
        return read_reply(self.stream.read(size))

    def until(self, *kinds):
        """Every reply up to the first of `kinds`, that one last."""
        replies = [self.receive()]
        while not isinstance(replies[-1], kinds):
            replies.append(self.receive())
        return replies

    def wait(self, seconds):
        """The exit code; fails if it takes longer."""
        return self.process.wait(seconds)

    def end(self):
        self.stream.close()
        self.socket.close()
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait(5)
