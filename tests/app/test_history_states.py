"""The chat starts and works whatever state its history is in, and loses nothing of it."""

import gzip
from pathlib import Path

import pytest

from dsv4chat.app.events import HistoryInMemory, Notice
from tests.support.app_parts import Parts
from tests.support.fake_engine import Script
from tests.support.sessions import ask, ready

FORMAT_1 = Path(__file__).parents[1] / "data" / "history-format-1.db.gz"


@pytest.mark.parametrize("kind", ["damaged", "of a newer version", "of an older version"])
async def test_a_chat_starts_whatever_state_its_history_is_in(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "history.db"
    old = gzip.decompress(FORMAT_1.read_bytes())
    if kind == "damaged":
        path.write_bytes(old[:5000])
    elif kind == "of a newer version":
        path.write_bytes(old[:60] + (99).to_bytes(4, "big") + old[64:])  # the place of user_version
    else:
        path.write_bytes(old)
    before = path.read_bytes()
    session = await ready(Parts(tmp_path, Script(["Hm.</think>Yes."])))
    notices = [event.sentence for event in session.events if isinstance(event, Notice)]
    assert not [event for event in session.events if isinstance(event, HistoryInMemory)]
    await ask(session, "Still there?")
    assert session.path[-1].content == "Yes."
    previews = [line.preview for line in await session.summaries()]
    await session.close()
    if kind == "of an older version":
        assert previews == ["second talk", "What is the capital of France? 深度求索"]
        assert notices == []
        return
    assert previews == ["Still there?"]
    assert len(notices) == 1
    kept = path if "newer" in kind else next(tmp_path.glob("history-damaged-*.db"))
    assert kept.read_bytes() == before
    assert ("newer version" if "newer" in kind else "Nothing could be brought back") in notices[0]
