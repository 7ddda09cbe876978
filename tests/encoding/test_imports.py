"""The encoder stands alone and loads fast."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["torch", "transformers", "numpy", "tokenizers", "dsv4chat.runtime"])
def test_importing_the_encoder_does_not_import(module: str) -> None:
    imports = "import sys, dsv4chat.encoding, dsv4chat.cli.prompt, dsv4chat.cli.parse"
    code = f"{imports}; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
