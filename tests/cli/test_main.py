"""The program's entry: what ends it, and with which exit code."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from dsv4chat import __main__ as entry
from dsv4chat.cli import main


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, click.Abort])
def test_ctrl_c_that_no_command_takes_ends_quietly_with_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], interruption: type[BaseException]
) -> None:
    class Interrupted:
        def main(self, *, standalone_mode: bool) -> None:
            raise interruption

    monkeypatch.setattr("dsv4chat.cli.main", Interrupted())
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert ended.value.code == 130
    assert "Traceback" not in "".join(capsys.readouterr())


def test_wrong_usage_is_a_sentence_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["dsv4chat", "nope"])
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert ended.value.code == 2
    assert "No such command" in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], ["ask", "hi"], ["eval"]])
def test_a_model_in_the_home_folder_of_nobody_is_a_folder_that_is_not_there(command: list[str]) -> None:
    result = CliRunner().invoke(main, [*command, "--model", "~nobody-of-that-name/m"])
    assert isinstance(result.exception, SystemExit)
    assert result.exit_code == 1
    assert "There is no folder ~nobody-of-that-name/m; give" in result.output


@pytest.mark.parametrize(
    "command", [["history", "list"], ["history", "search", "x"], ["cache", "list"], ["ask", "hi"], ["doctor"]]
)
def test_standard_output_that_is_closed_is_a_sentence(tmp_path: Path, command: list[str]) -> None:
    program = [sys.executable, "-m", "dsv4chat", *command]
    result = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *program],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"DSV4CHAT_HOME": str(tmp_path)},
        timeout=60,
        check=False,
    )
    assert result.returncode == 1
    assert result.stderr == "Error: Standard output is closed, so there is nowhere to print.\n"
    assert list(tmp_path.iterdir()) == []  # it was not begun
