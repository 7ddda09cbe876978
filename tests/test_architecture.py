"""The arrows between the folders: dsv4chat -> runtime -> kernels, encoding below; no torch in the app."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = {"torch", "numpy", "transformers", "safetensors", "triton", "scipy"}
# Of the runtime the app knows the messages only; a command that runs the engine imports it when called.
COMMANDS_WITH_AN_ENGINE = {"bench", "compare", "doctor", "eval", "kernels"}


def modules(folder):
    return sorted(
        path
        for path in (ROOT / folder).rglob("*.py")
        if "training" not in path.relative_to(ROOT).parts and not _linked(path)
    )


def _linked(path):
    """Whether a path goes through one of the links that make the folders subpackages."""
    return any(parent.is_symlink() for parent in path.parents if parent != ROOT)


def imported(path, *, lazily=True):
    """Full names of what a file imports; lazily: also inside functions. TYPE_CHECKING blocks do not count."""
    found = set()

    def visit(node):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            return
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and not lazily:
            return
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: import by the full name"
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text(encoding="utf-8")))
    return found


def packages(names):
    """The top-level names, and for our own the first two parts."""
    return {name if not name.startswith("dsv4chat.") else ".".join(name.split(".")[:2]) for name in names} | {
        name.split(".")[0] for name in names if not name.startswith("dsv4chat")
    }


def describe(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", modules("encoding"), ids=describe)
def test_the_encoder_stands_alone(path):
    names = packages(imported(path))
    assert {name for name in names if name.startswith("dsv4chat.")} <= {"dsv4chat.encoding"}
    assert not names & HEAVY


@pytest.mark.parametrize("path", modules("kernels"), ids=describe)
def test_kernels_know_no_model(path):
    names = packages(imported(path))
    assert {name for name in names if name.startswith("dsv4chat.")} <= {"dsv4chat.kernels"}


@pytest.mark.parametrize("path", modules("runtime"), ids=describe)
def test_the_runtime_knows_no_app(path):
    names = packages(imported(path))
    allowed = {"dsv4chat.runtime", "dsv4chat.kernels", "dsv4chat.encoding", "dsv4chat.assets"}
    assert {name for name in names if name.startswith("dsv4chat.")} <= allowed


@pytest.mark.parametrize("path", modules("dsv4chat"), ids=describe)
def test_the_app_knows_the_messages_only(path):
    engine_allowed = path.parent.name == "cli" and path.stem.split("_")[0] in COMMANDS_WITH_AN_ENGINE
    names = imported(path, lazily=not engine_allowed)
    assert not packages(names) & (HEAVY | {"dsv4chat.kernels"})
    runtime = {name for name in names if name.startswith("dsv4chat.runtime")}
    assert all(name.startswith("dsv4chat.runtime.protocol") for name in runtime)


def in_a_new_process(code, **environment):
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | environment,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


REPORT = f"""
import sys
print(sorted({HEAVY!r} & set(sys.modules)))
"""


@pytest.mark.parametrize(
    "statement",
    [
        "import dsv4chat",
        "import dsv4chat.cli",
        "import dsv4chat.engine_process",
        "import dsv4chat.turns",
        "import dsv4chat.encoding",
        "import dsv4chat.store",
        "import dsv4chat.app",
        "from dsv4chat.app import run",
        "import dsv4chat.runtime.protocol",
        "from dsv4chat.runtime import SamplingParams, EngineError",
        "from dsv4chat.cli import main; main(['--help'], standalone_mode=False)",
        "from dsv4chat.cli import main; main(['ask', '--help'], standalone_mode=False)",
    ],
)
def test_importing_loads_nothing_heavy(statement):
    assert in_a_new_process(statement + REPORT).splitlines()[-1] == "[]"


def test_help_imports_no_command():
    code = """
import sys
from dsv4chat.cli import main
main(["--help"], standalone_mode=False)
print([name for name in sys.modules if name.startswith("dsv4chat.cli.") and name != "dsv4chat.cli.options"])
"""
    assert in_a_new_process(code).splitlines()[-1] == "[]"


def test_the_engine_is_found_when_asked_for():
    code = "import sys; from dsv4chat.runtime import Engine; print(Engine.__name__, 'torch' in sys.modules)"
    assert in_a_new_process(code).split() == ["Engine", "True"]


def test_a_full_turn_loads_no_torch_in_the_app(tmp_path):
    from tests.support.engines import save_random

    folder = save_random(tmp_path / "model", text=True)
    code = f"""
import asyncio
from pathlib import Path
from dsv4chat.encoding import Conversation, Message, Profile, Tokenizer
from dsv4chat.engine_process import EngineProcess
from dsv4chat.runtime.protocol import Load, SamplingParams
from dsv4chat.turns import Turn, TurnFinished, TurnToken

async def main():
    folder = Path({str(folder)!r})
    async with EngineProcess(threads=1) as engine:
        async for _ in engine.load(Load(model=str(folder))):
            pass
        conversation = Conversation((Message("user", "hi"),))
        params = SamplingParams(seed=1, max_tokens=8, ignore_eos=True)
        turn = Turn(engine, Tokenizer.from_folder(folder), Profile.PREVIEW, conversation, sampling=params)
        events = [event async for event in turn.events()]
    print(sum(isinstance(event, TurnToken) for event in events), isinstance(events[-1], TurnFinished))

asyncio.run(main())
"""
    said, heavy = in_a_new_process(code + REPORT, DSV4CHAT_HOME=str(tmp_path / "home")).splitlines()
    assert said == "8 True"
    assert heavy == "[]"
