"""Building the kernels, on a machine with or without a GPU, where the DSL is installed."""

import importlib.metadata
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from dsv4chat.kernels.cute import store
from dsv4chat.kernels.cute.catalogue import ARCHITECTURES, names

DSL = "nvidia-cutlass-dsl"
TIMEOUT_SECONDS = 1800


class BuildError(RuntimeError):
    """The kernels cannot be built; the message says what to do."""


def dsl_version() -> str | None:
    """Version of the installed CuTe DSL, or None."""
    try:
        return importlib.metadata.version(DSL)
    except importlib.metadata.PackageNotFoundError:
        return None


def build(
    architecture: str,
    progress: Callable[[int, int, str], None] | None = None,
    *,
    only: Sequence[str] | None = None,
    root: Path | None = None,
) -> store.Build:
    """Compile every kernel (or `only` these) for one architecture into the cache.

    progress(done, all, name) is called after each. Raises BuildError.
    """
    if architecture not in ARCHITECTURES:
        raise BuildError(f"There are kernels for {' and '.join(ARCHITECTURES)} only, not for {architecture}.")
    version = dsl_version()
    if version is None:
        raise BuildError(
            f"Building needs the package {DSL}: install dsv4chat with its gpu extra, "
            "pip install 'dsv4chat[gpu]', or copy a built kernel cache here."
        )
    wanted = list(only) if only is not None else names()
    try:
        with store.new_build(architecture, version, root) as folder:
            _compile(architecture, folder, wanted, progress)
    except OSError as error:
        raise BuildError(f"The kernel cache {root or store.folder()} cannot be written: {error}") from error
    return next(
        build
        for build in store.builds(root)
        if build.architecture == architecture and build.dsl_version == version
    )


def _compile(
    architecture: str,
    folder: Path,
    wanted: Sequence[str],
    progress: Callable[[int, int, str], None] | None,
) -> None:
    command = [sys.executable, "-m", "dsv4chat.kernels.cute.compile", architecture, str(folder), *wanted]
    with (
        (folder / "errors").open("w+") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        assert process.stdout is not None
        done = 0
        for line in process.stdout:
            name = line.split()[0] if line.strip() else ""
            if name in wanted:
                done += 1
                if progress is not None:
                    progress(done, len(wanted), name)
        status = process.wait(TIMEOUT_SECONDS)
        errors.seek(0)
        said = errors.read().strip().splitlines()
    if status != 0:
        raise BuildError(
            f"The kernels did not compile for {architecture}: {said[-1][:300] if said else status}"
        )
    (folder / "errors").unlink()
