"""A small random model on disk, and the runtime's process without one."""

import pytest

from dsv4chat.runtime import Engine
from tests.support.child import Child
from tests.support.engines import save_random


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_random(tmp_path_factory.mktemp("model"), text=True)


@pytest.fixture
def engine(folder):
    return Engine.load(folder, max_context=512)


@pytest.fixture
def fresh(tmp_path):
    child = Child(tmp_path / "child.log")
    yield child
    child.end()
