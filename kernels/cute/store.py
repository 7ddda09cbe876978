"""Built kernels on disk: FOLDER/SOURCE/ARCHITECTURE-dslVERSION/NAME.{cubin,json}

SOURCE changes with the text of the kernels, so an old build is never taken for a new one. A build is made
in a folder beside and moved into place as a whole; what was there before it keeps working until then.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dsv4chat.kernels.cute.catalogue import names, source_key

FOLDER_VARIABLE = "DSV4CHAT_KERNELS"
HOME_VARIABLE = "DSV4CHAT_HOME"


@dataclass(frozen=True)
class Built:
    """One kernel's machine code. entry: its symbol; parameters: the bytes of each."""

    name: str
    cubin: bytes
    entry: str
    parameters: tuple[int, ...]


@dataclass(frozen=True)
class Build:
    """A folder of kernels built together."""

    folder: Path
    architecture: str
    dsl_version: str

    def kernels(self) -> list[str]:
        """Names of the kernels it holds whole."""
        return sorted(path.stem for path in self.folder.glob("*.cubin") if self._whole(path.stem))

    def _whole(self, name: str) -> bool:
        try:
            return bool(self.read(name).cubin)
        except (OSError, ValueError, TypeError, KeyError):
            return False

    def complete(self) -> bool:
        """Whether it holds every kernel."""
        return set(names()) <= set(self.kernels())

    def read(self, name: str) -> Built:
        """One kernel. Raises OSError, ValueError, TypeError or KeyError when it is missing or damaged."""
        about = json.loads((self.folder / f"{name}.json").read_text())
        cubin = (self.folder / f"{name}.cubin").read_bytes()
        return Built(name, cubin, about["entry"], tuple(about["parameters"]))


def folder() -> Path:
    """Where builds are kept: DSV4CHAT_KERNELS, or `kernels` in the program's cache folder."""
    if named := os.environ.get(FOLDER_VARIABLE):
        return Path(named)
    if home := os.environ.get(HOME_VARIABLE):
        return Path(home) / "cache" / "kernels"
    import platformdirs  # only here: a machine that is told the folder needs it not

    return platformdirs.user_cache_path("dsv4chat", appauthor=False) / "kernels"


def builds(root: Path | None = None) -> list[Build]:
    """All builds of the kernels as their source is now, newest DSL last."""
    found = []
    here = (root or folder()) / source_key()
    for path in sorted(here.glob("*-dsl*"), key=_age) if here.is_dir() else []:
        architecture, _, version = path.name.partition("-dsl")
        found.append(Build(path, architecture, version))
    return found


def find(architecture: str, root: Path | None = None) -> Build | None:
    """The newest complete build for an architecture."""
    fitting = [build for build in builds(root) if build.architecture == architecture and build.complete()]
    return fitting[-1] if fitting else None


@contextmanager
def new_build(architecture: str, dsl_version: str, root: Path | None = None) -> Iterator[Path]:
    """An empty folder to build into; put in place when the block ends without an error."""
    parent = (root or folder()) / source_key()
    parent.mkdir(parents=True, exist_ok=True)
    target = parent / f"{architecture}-dsl{dsl_version}"
    temporary = Path(tempfile.mkdtemp(prefix=".building-", dir=parent))
    try:
        yield temporary
        shutil.rmtree(temporary / "dump", ignore_errors=True)
        if target.exists():
            old = Path(tempfile.mkdtemp(prefix=".old-", dir=parent))
            os.replace(target, old / "build")
            shutil.rmtree(old, ignore_errors=True)
        os.replace(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _age(path: Path) -> float:
    return path.stat().st_mtime
