"""Where files live: the platform's folders for data, cache, settings and logs.

Everything is under one folder instead when the environment variable DSV4CHAT_HOME names it. Folders are made
on first use, readable by their owner only.
"""

import errno
import os
import tempfile
from pathlib import Path

import platformdirs

from dsv4chat.assets import demo_path

APP = "dsv4chat"
HOME_VARIABLE = "DSV4CHAT_HOME"


def data_folder() -> Path:
    """Conversations. Raises OSError when it cannot be made (a read-only home, a full disk)."""
    return _private(_under_home("data") or platformdirs.user_data_path(APP, appauthor=False))


def cache_folder() -> Path:
    """What can be made again: saved caches of conversations. Raises OSError when it cannot be made."""
    return _private(_under_home("cache") or platformdirs.user_cache_path(APP, appauthor=False))


def saved_caches() -> Path:
    """The folder that the engine saves caches of conversations in. Raises OSError when it cannot be made."""
    return cache_folder() / "conversations"


def config_folder() -> Path:
    """Settings. Raises OSError when it cannot be made."""
    return _private(_under_home("config") or platformdirs.user_config_path(APP, appauthor=False))


def log_folder() -> Path:
    """Logs. Raises OSError when it cannot be made or written into (a full disk)."""
    folder = _private(_under_home("log") or platformdirs.user_log_path(APP, appauthor=False))
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        file.write(b"\n")  # a full disk still makes files, but takes nothing into them
    return folder


def no_log_notice() -> str | None:
    """The sentence to say when there is no place for logs; None when there is one."""
    try:
        log_folder()
    except OSError as error:
        return f"{_place('logs')} ({_reason(error)}): the engine's log is kept only while it runs."
    return None


def no_data_notice() -> str | None:
    """The sentence to say when there is no place for the history; None when there is one."""
    try:
        data_folder()
    except OSError as error:
        return f"{_place('the history')} ({_reason(error)}): conversations are kept only until you quit."
    return None


def model_folder(name: str) -> Path:
    """The folder of a model as given on the command line: "demo", or a path."""
    return demo_path() if name == "demo" else expanded(name)


def expanded(path: str) -> Path:
    """A path with ~ and ~person replaced; as in a shell, the name of nobody is left as it is."""
    return Path(os.path.expanduser(path))


def no_cache_notice() -> str | None:
    """The sentence to say when there is no place for saved caches; None when there is one."""
    try:
        cache_folder()
    except OSError as error:
        return f"{_place('saved caches')} ({_reason(error)}): conversations are read again after a restart."
    return None


def _place(what: str) -> str:
    home = os.environ.get(HOME_VARIABLE)
    return f"{HOME_VARIABLE} ({home}) cannot be used" if home else f"There is no folder for {what}"


def _reason(error: OSError) -> str:
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "a file is in its place"
    return error.strerror or type(error).__name__


def _under_home(part: str) -> Path | None:
    home = os.environ.get(HOME_VARIABLE)
    if not home:
        return None
    try:
        return Path(home).expanduser() / part
    except RuntimeError:
        raise FileNotFoundError(errno.ENOENT, "it names the home folder of nobody", home) from None


def _private(folder: Path) -> Path:
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder
