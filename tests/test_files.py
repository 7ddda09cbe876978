"""Where files live, and the engine's logs."""

import os
import resource
import tempfile
from pathlib import Path

import pytest

from dsv4chat import paths
from dsv4chat.logs import KEPT, EngineLog, has_name, log_tail


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
    assert paths.model_folder("~nobody-of-that-name/m") == Path("~nobody-of-that-name/m")


def test_only_the_newest_logs_are_kept(tmp_path):
    for number in range(KEPT + 5):
        log = EngineLog(tmp_path)
        path = log.path
        os.write(log.descriptor, b"a\nb\n")
        log.started()
        log.close()
        os.utime(path, (number, number))
        path.with_name(path.name + ".1").touch()
    assert len(list(tmp_path.glob("*.log"))) == KEPT
    assert len(list(tmp_path.glob("*.log.1"))) == KEPT
    assert log_tail(path) == ["a", "b"]
    assert path.stat().st_mode & 0o077 == 0
    assert log_tail(tmp_path / "none") == []


def test_without_a_place_for_logs_there_is_one_without_a_name_and_a_sentence(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv(paths.HOME_VARIABLE, str(blocked))
    log = EngineLog()
    os.write(log.descriptor, b"a\nb\n")
    log.started()
    assert not has_name(log.path)
    assert log_tail(log.path) == ["a", "b"]
    assert list((tmp_path / "tmp").iterdir()) == []
    log.close()
    log.close()
    assert log_tail(log.path) == []


def test_a_full_disk_is_no_place_for_logs(tmp_path, monkeypatch):
    monkeypatch.setenv(paths.HOME_VARIABLE, str(tmp_path / "home"))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))  # as good as a full disk
    try:
        log, notice = EngineLog(), paths.no_log_notice()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not log.named
    assert notice is not None
    assert "cannot be used (File too large)" in notice
    assert list((tmp_path / "home" / "log").iterdir()) == []
    log.close()


@pytest.mark.parametrize("part", ["log", "data"])
def test_a_place_that_cannot_be_used_is_told_in_a_sentence_that_names_it(tmp_path, monkeypatch, part):
    notice = getattr(paths, f"no_{part}_notice")
    monkeypatch.setenv(paths.HOME_VARIABLE, str(tmp_path / "home"))
    assert notice() is None
    (tmp_path / "file").touch()
    monkeypatch.setenv(paths.HOME_VARIABLE, str(tmp_path / "file"))
    sentence = notice()
    assert sentence is not None
    assert sentence.startswith(
        f"DSV4CHAT_HOME ({tmp_path / 'file'}) cannot be used (a file is in its place): "
    )
    assert sentence.endswith(".")


@pytest.mark.parametrize("name", ["data_folder", "cache_folder", "config_folder", "log_folder"])
def test_a_home_in_the_folder_of_nobody_is_a_place_that_cannot_be_used(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(paths.HOME_VARIABLE, "~nobody-of-that-name/x")
    with pytest.raises(OSError, match="the home folder of nobody"):
        getattr(paths, name)()
    notice = paths.no_data_notice()
    assert notice is not None
    assert "(~nobody-of-that-name/x) cannot be used (it names the home folder of nobody)" in notice
    assert list(tmp_path.iterdir()) == []
