"""A file that is there whole or not at all."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dsv4chat.exchange import whole_file


def write(path: Path, meanwhile: Callable[[], object], *, replace: bool = False) -> None:
    with whole_file(path, replace=replace) as file:
        file.write(b"ours")
        meanwhile()


def fails(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("replace", [False, True])
def test_what_fails_leaves_nothing_and_the_error_names_the_file(tmp_path: Path, replace: bool) -> None:
    path = tmp_path / "talk.md"
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(OSError, match="No space left") as failed:
        write(path, lambda: fails(full), replace=replace)
    assert (failed.value.errno, failed.value.filename) == (errno.ENOSPC, str(path))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError) as absent:
        write(tmp_path / "missing" / "talk.md", lambda: None)
    assert absent.value.filename == str(tmp_path / "missing" / "talk.md")


def test_a_file_that_is_there_is_replaced_only_if_it_may_be_and_only_in_the_end(tmp_path: Path) -> None:
    path = tmp_path / "talk.md"
    path.write_text("mine")
    with pytest.raises(FileExistsError):
        write(path, lambda: None)
    with pytest.raises(KeyboardInterrupt):
        write(path, lambda: fails(KeyboardInterrupt()), replace=True)
    assert path.read_text() == "mine"
    write(path, lambda: None, replace=True)
    assert path.read_text() == "ours"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_comes_while_it_is_written_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "talk.md"
    with pytest.raises(FileExistsError):
        write(path, lambda: path.write_text("mine"))
    assert path.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [path]


def test_a_name_as_long_as_one_can_be_is_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 252 + ".md")
    write(path, lambda: None)
    assert path.read_text() == "ours"
