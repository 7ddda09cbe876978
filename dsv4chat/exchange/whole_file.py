"""A file that is there whole or not at all, whatever goes wrong while it is written."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def whole_file(path: Path, *, replace: bool = False) -> Iterator[IO[bytes]]:
    """What is written into it becomes `path` in the end.

    Raises OSError that names `path`: FileExistsError for one that is there, unless it may be replaced.
    """
    if not replace and os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    try:
        file = tempfile.NamedTemporaryFile(dir=path.parent, prefix=".dsv4chat-", delete=False)  # noqa: SIM115
        ours = [file.name]
        try:
            with file:
                yield file
            if not replace:
                path.touch(exist_ok=False)  # fails if someone else took the name meanwhile
                ours.append(str(path))
            os.replace(file.name, path)
        except BaseException:
            for name in ours:
                with suppress(OSError):
                    os.unlink(name)
            raise
    except OSError as error:
        # The person knows nothing of the temporary file, and a full disk names none at all.
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
