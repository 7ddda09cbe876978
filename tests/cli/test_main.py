"""The program's entry: what ends it, and with which exit code."""

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
