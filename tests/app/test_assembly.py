"""The real parts put together from the command line, the settings file and the environment."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from dsv4chat.app.assembly import build_session
from dsv4chat.app.events import Notice
from dsv4chat.app.options import ChatOptions
from dsv4chat.assets import demo_path
from dsv4chat.runtime.protocol import SamplingParams
from dsv4chat.settings import load_settings
from tests.support.app_parts import wait_for


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DSV4CHAT_HOME", str(tmp_path))
    folder = tmp_path / "config"
    folder.mkdir()
    return folder


async def test_new_conversations_begin_as_the_settings_say(config: Path) -> None:
    (config / "mine.py").write_text("def shout(text: str) -> str:\n    return text.upper()\n")
    (config / "settings.toml").write_text(
        '[chat]\nsystem = "Be brief."\nthinking = false\n[sampling]\ntemperature = 0.5\n'
        '[tools]\nenabled = true\nfunctions = ["mine.py:shout"]\n'
    )
    session = build_session(ChatOptions())
    assert session.settings.system == "Be brief."
    assert not session.settings.thinking
    assert session.sampling.temperature == 0.5
    assert [tool["name"] for tool in session.settings.tools] == ["calculator", "clock", "shout"]
    assert session.tools.on
    session.store.close()


async def test_tools_are_off_unless_asked_for_and_the_command_line_wins(config: Path) -> None:
    (config / "settings.toml").write_text("[chat]\nthinking = false\n")
    session = build_session(ChatOptions(thinking=True, effort="max"))
    assert session.settings.tools == []
    assert (session.settings.thinking, session.settings.effort) == (True, "max")
    session.store.close()


async def test_a_changed_setting_holds_at_once_and_is_in_the_file(config: Path) -> None:
    session = build_session(ChatOptions())
    assert session.preferences.set("sampling", "top_k", "7") is None
    assert session.sampling.top_k == 7
    assert session.preferences.set("chat", "effort", "low") is None
    assert session.defaults.effort == session.settings.effort == "low"
    assert session.preferences.set("tools", "functions", ["gone.py:f"]) is None
    await session.tools.toolbox()
    assert any(isinstance(event, Notice) and "gone.py" in event.sentence for event in session.events)
    kept = load_settings(config / "settings.toml").settings
    assert (kept.sampling.top_k, kept.chat.effort, kept.tools.functions) == (7, "low", ["gone.py:f"])
    with pytest.raises(ValueError, match="top_k"):
        session.preferences.set("sampling", "top_k", -1)
    session.store.close()


async def test_a_conversation_wins_over_the_settings_and_they_over_the_model(
    config: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    shutil.copytree(demo_path(), model)
    (model / "generation_config.json").write_text('{"temperature": 0.6, "top_p": 0.9, "top_k": 40}')
    (config / "settings.toml").write_text("[sampling]\ntop_p = 1.0\n")
    session = build_session(ChatOptions(model=str(model)))
    assert session.sampling == SamplingParams()
    await session.open_history()
    session.start_engine()
    await wait_for(lambda: session.can_send)
    assert session.sampling == SamplingParams(temperature=0.6, top_p=1.0, top_k=40)
    session.set_settings(replace(session.settings, sampling={"top_k": 1, "max_tokens": 2}))
    assert session.submit("12 + 30")
    await wait_for(lambda: not session.busy)
    made = session.path[-1].generation
    assert made is not None
    assert made.sampling == {"temperature": 0.6, "top_k": 1, "max_tokens": 2}
    await session.close()


async def test_a_broken_settings_file_is_told_and_left_alone(config: Path) -> None:
    (config / "settings.toml").write_text("broken [")
    session = build_session(ChatOptions())
    assert any(isinstance(event, Notice) and "cannot be used" in event.sentence for event in session.events)
    trouble = session.preferences.set("sampling", "seed", 3)
    assert trouble is not None
    assert "correct it first" in trouble
    assert session.sampling.seed == 3
    assert (config / "settings.toml").read_text() == "broken ["
    session.store.close()
