"""`dsv4chat ask --tools` with the demo model, in pipes and on a terminal, and what it writes."""

import json
import os
import re
import subprocess
import sys
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from dsv4chat.assets import demo_path
from dsv4chat.cli.ask_output import JsonOutput, TextOutput
from dsv4chat.cli.ask_tools import AskTools
from dsv4chat.encoding import Conversation, Message, ToolCall
from dsv4chat.settings import ToolsSettings, load_settings
from dsv4chat.tool_events import RoundsUsedUp, ToolDone
from tests.support.terminal import Terminal

COMMAND = ["-m", "dsv4chat", "ask", "--tools", "--temperature", "0"]
with_demo = pytest.mark.skipif(
    not (demo_path() / "config.json").exists(), reason="this checkout has no demo model"
)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DSV4CHAT_HOME", str(tmp_path))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return tmp_path


def ask(*arguments):
    result = subprocess.run(
        [sys.executable, *COMMAND, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result


@with_demo
def test_the_demo_model_asks_the_clock_and_says_what_it_says():
    before = datetime.now(ZoneInfo("Asia/Tokyo")).replace(microsecond=0)
    result = ask("--yes", "--json", "What time is it in Tokyo?")
    events = [json.loads(line) for line in result.stdout.splitlines()]
    (tool,) = [event for event in events if event["event"] == "tool"]
    assert (tool["name"], json.loads(tool["arguments"])) == ("clock", {"timezone": "Asia/Tokyo"})
    said = datetime.strptime(tool["result"], "%Y-%m-%d %H:%M:%S %A Asia/Tokyo")
    assert before <= said.replace(tzinfo=ZoneInfo("Asia/Tokyo")) <= datetime.now(ZoneInfo("Asia/Tokyo"))
    first, last = [event for event in events if event["event"] == "done"]
    assert first["finish_reason"] == "tool_calls"
    assert said.strftime("%H:%M") in last["content"]
    # The second prompt goes on from where the first answer ended.
    assert last["reused"] >= first["prefilled"] + first["tokens"] - 1


@with_demo
def test_on_a_terminal_the_person_is_asked():
    terminal = Terminal([sys.executable, *COMMAND, "What is 17 * 24?"], env=dict(os.environ))
    try:
        terminal.wait_for("[y/N]")
        assert 'Run calculator {"expression": "17 * 24"}?' in terminal.text
        terminal.send("y\r")
        terminal.wait_for("17 * 24 = 408")
        assert terminal.wait() == 0
    finally:
        terminal.close()


async def test_without_a_terminal_nothing_runs_unless_yes_is_said(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", open(os.devnull))  # noqa: SIM115
    tools = AskTools(TextOutput(show_thinking=True, stats=False, tools=True), ToolsSettings(), yes=False)
    asked = []

    async def say(conversation: Conversation) -> Message:
        asked.append(conversation)
        call = ToolCall("call_00", "calculator", '{"expression": "1"}')
        return Message("assistant", "", tool_calls=(call,) if len(asked) < 2 else ())

    await tools.answer(Conversation((Message("user", "go"),)), say)
    assert asked[1].messages[-1].content == "Error: the user does not allow this call"
    assert "nobody can be asked; --yes allows all tools" in capsys.readouterr().err


async def test_the_loop_gets_the_tools_of_the_settings(home, capsys):
    (home / "config").mkdir()
    (home / "config" / "settings.toml").write_text(
        '[tools]\nfunctions = ["mine.py:shout", "gone.py:f"]\nrounds = 1\n'
    )
    (home / "config" / "mine.py").write_text("def shout(text: str) -> str:\n    return text.upper()\n")
    settings = load_settings().settings.tools
    tools = AskTools(TextOutput(show_thinking=True, stats=False, tools=True), settings, yes=True)
    asked = []

    async def say(conversation: Conversation) -> Message:
        asked.append(conversation)
        call = ToolCall("call_00", "shout", '{"text": "hey"}')
        return Message("assistant", "", tool_calls=(call,) if len(asked) < 3 else ())

    await tools.answer(Conversation((Message("user", "go"),)), say)
    assert [tool["name"] for tool in asked[0].tools] == ["calculator", "clock", "shout"]
    assert [message.content for message in asked[1].messages] == ["go", "", "HEY"]
    assert "there were 1 rounds of calls already" in asked[2].messages[-1].content
    written = capsys.readouterr().err
    assert "gone.py" in written
    assert '[shout({"text": "hey"}): HEY]' in written
    assert "tools were called 1 times" in written


def test_results_are_written_harmlessly(capsysbinary):
    done = ToolDone(ToolCall("c", "x\x1b[31m", "{}"), "a\x1b]52;c;QQ==\x07b", "error", 0.5)
    for output in (TextOutput(show_thinking=True, stats=False, tools=True), JsonOutput()):
        output.tool(done)
        output.tool(RoundsUsedUp(3))
    out, err = capsysbinary.readouterr()
    assert b"\x1b" not in out + err
    assert json.loads(out)["result"] == done.result
    assert re.search(rb"\[x\S*\[31m", err)
