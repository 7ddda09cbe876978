"""`dsv4chat ask` run as a program."""

import json
import subprocess
import sys

COMMAND = [sys.executable, "-m", "dsv4chat", "ask"]


def ask(*arguments, stdin=subprocess.DEVNULL, text=None):
    """Run it to its end."""
    options = {"input": text} if text is not None else {"stdin": stdin}
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
        **options,
    )


def start(*arguments, **options):
    """Start it. Its streams are not buffered here, so that what follows a line is there for `communicate`."""
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        bufsize=0,
        **options,
    )


def lines(result):
    """The events it printed."""
    return [json.loads(line) for line in result.stdout.splitlines()]


def quiet(result):
    """The result, after checking that nobody was shown a traceback."""
    assert "Traceback" not in result.stderr
    return result
