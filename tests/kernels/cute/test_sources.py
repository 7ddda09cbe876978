"""The cache's key covers every file that a kernel's machine code depends on."""

import ast
from pathlib import Path

import dsv4chat.kernels.cute as package
from dsv4chat.kernels.cute.catalogue import SOURCES

FOLDER = Path(package.__file__).parent
PREFIX = "dsv4chat.kernels.cute"


def imports(name):
    """The package's own modules a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse((FOLDER / name).read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith(PREFIX):
            inside = node.module.removeprefix(PREFIX).lstrip(".")
            found |= {inside} if inside else {alias.name for alias in node.names}
    return {f"{module}.py" for module in found}


def test_all_that_is_compiled_is_in_the_key():
    needed, open_ = set(), ["compile.py"]
    while open_:
        name = open_.pop()
        if name in needed or name == "catalogue.py":  # names only: it changes no machine code
            continue
        needed.add(name)
        open_ += imports(name)
    assert needed == set(SOURCES)
