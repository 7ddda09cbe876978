"""A random model and a home of its own for commands that run as programs."""

import pytest

from tests.support.engines import save_random


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_random(tmp_path_factory.mktemp("model"), text=True)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DSV4CHAT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
