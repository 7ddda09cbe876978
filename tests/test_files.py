"""Where files live, and the engine's logs."""

import contextlib
import os
from pathlib import Path

import pytest

from dsv4chat import paths
from dsv4chat.logs import KEPT, log_tail, new_engine_log


@pytest.mark.parametrize("name", ["data_folder", "cache_folder", "config_folder", "log_folder"])
def test_folders_are_made_private_under_the_home_that_is_named(tmp_path, monkeypatch, name):
    monkeypatch.setenv(paths.HOME_VARIABLE, str(tmp_path / "home"))
    folder = getattr(paths, name)()
    assert folder.is_relative_to(tmp_path / "home")
    assert folder.stat().st_mode & 0o077 == 0
    assert getattr(paths, name)() == folder


@pytest.mark.skipif(os.name != "posix" or os.uname().sysname != "Linux", reason="XDG folders")
def test_folders_are_the_platforms_otherwise(tmp_path, monkeypatch):
    monkeypatch.delenv(paths.HOME_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert paths.data_folder() == tmp_path / "data" / "dsv4chat"


def test_a_model_is_a_folder_or_the_one_that_comes_along():
    assert paths.model_folder("demo").name == "demo"
    assert paths.model_folder("~/m") == Path.home() / "m"


def test_only_the_newest_logs_are_kept(tmp_path):
    for number in range(KEPT + 5):
        path, descriptor = new_engine_log(tmp_path)
        os.write(descriptor, b"a\nb\n")
        os.close(descriptor)
        os.utime(path, (number, number))
        path.with_name(path.name + ".1").touch()
    assert len(list(tmp_path.glob("*.log"))) == KEPT
    assert len(list(tmp_path.glob("*.log.1"))) == KEPT
    assert log_tail(path) == ["a", "b"]
    assert path.stat().st_mode & 0o077 == 0
    assert log_tail(tmp_path / "none") == []


def test_a_log_folder_that_cannot_be_written_is_replaced(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setenv(paths.HOME_VARIABLE, str(blocked))
    folder = paths.log_folder()
    assert folder.is_dir()
    assert not folder.is_relative_to(blocked)
    with contextlib.suppress(OSError):
        folder.rmdir()
