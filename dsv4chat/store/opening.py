"""Opening the history whatever state it is in: fresh, older, newer, broken, read-only, or not at all.

`open_history` always gives a working repository. When it is not the usual file, `notice` is the sentence to
show: what can be read of a broken file is brought back and the file itself kept under another name; a newer
one stays where it is and a file of this version stands beside it; and where nothing can be written the
history lives in memory until the program ends.
"""

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from dsv4chat.store.errors import StoreBusy, StoreDamaged, StoreError, StoreNewer, StoreUnwritable
from dsv4chat.store.instance import Instance
from dsv4chat.store.recovering import Recovered, recover
from dsv4chat.store.repository import Repository
from dsv4chat.store.schema import APPLICATION_ID, MIGRATIONS

FILE_NAME = "history.db"
_SUSPECTED = ".suspected"
BUSY_SECONDS = 10.0
LARGEST_COPY = 2_000_000_000  # bytes of a history that is read into memory where it cannot be written
KEEP_DELETED = 30 * 86_400.0  # seconds that something deleted can be brought back


@dataclass(frozen=True)
class Opened:
    """A usable history. `persistent` is False when it lives in memory only."""

    repository: Repository
    persistent: bool
    notice: str | None = None


def open_history(folder: Path) -> Opened:
    """The history in `folder` (created with mode 0700 if absent); see the module for what may happen."""
    try:
        _private_folder(folder)
        return _open_folder(folder)
    except (StoreUnwritable, StoreBusy) as error:
        reason = str(error)
    except OSError as error:
        reason = f"The folder {folder} cannot be used for the history ({error.strerror or error})."
    copy = _copy_in_memory(folder / FILE_NAME)
    if copy is not None:
        repository, came = copy
        return Opened(repository, False, f"{reason} {came} New messages are kept only until you quit.")
    return Opened(open_in_memory(), False, f"{reason} Conversations are kept only until you quit.")


def open_in_memory() -> Repository:
    """An empty history that ends with the program."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    _configure(connection)
    migrate(connection)
    return Repository(connection, Instance(None))


def _copy_in_memory(path: Path) -> tuple[Repository, str] | None:
    """What can be read of a history that cannot be written, in memory, and a sentence; None if nothing."""
    for copy in (_whole, _what_can_be_read):
        memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        try:
            return Repository(memory, Instance(None)), copy(path, memory)
        except (OSError, sqlite3.Error, StoreError):
            memory.close()
    return None


def _whole(path: Path, memory: sqlite3.Connection) -> str:
    if path.stat().st_size > LARGEST_COPY:
        raise StoreUnwritable(f"{path} is too large to be read into memory.")
    with closing(open_read_only(path)) as source:
        source.backup(memory)
    _check(memory, path)
    _configure(memory)
    migrate(memory)
    return "It can be read."


def _what_can_be_read(path: Path, memory: sqlite3.Connection) -> str:
    _configure(memory)
    migrate(memory)
    found = recover(path, memory)
    if not found.messages:
        raise StoreDamaged(f"Nothing in {path} can be read.")
    return found.sentence


def _open_folder(folder: Path) -> Opened:
    path = folder / FILE_NAME
    try:
        return _open_or_recover(path)
    except StoreNewer as error:
        own = folder / f"history-format-{len(MIGRATIONS)}.db"
        notice = f"{error} It is left as it is; this version writes to {own.name} beside it."
        opened = _open_or_recover(own)
        return Opened(opened.repository, True, f"{notice} {opened.notice}" if opened.notice else notice)


def _open_or_recover(path: Path) -> Opened:
    try:
        return Opened(_open_file(path), True)
    except StoreDamaged as error:
        return _recovered(path, str(error))


def _recovered(path: Path, reason: str) -> Opened:
    """A new history with what can be read of the damaged one, which stays until that is written."""
    fresh = path.with_suffix(".recovering")
    try:
        with _alone(path.parent):
            with suppress(StoreDamaged):
                return Opened(_open_file(path), True)  # another program was faster
            for left in (fresh, fresh.with_name(f"{fresh.name}-journal")):  # by a program that was killed
                left.unlink(missing_ok=True)
            os.close(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with closing(sqlite3.connect(fresh, isolation_level=None)) as connection:
                migrate(connection)
                try:
                    found = recover(path, connection)
                except StoreDamaged:
                    found = Recovered(0, 0, 0)
            aside = _set_aside(path)
            fresh.rename(path)
            path.with_suffix(_SUSPECTED).unlink(missing_ok=True)
    except (OSError, sqlite3.Error) as error:
        fresh.unlink(missing_ok=True)
        raise StoreUnwritable(f"{reason} It cannot be brought back now ({error}).") from error
    return Opened(_open_file(path), True, f"{reason} {found.sentence} The damaged file is kept as {aside}.")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Of several programs that would do the same in a folder, one at a time."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _open_file(path: Path) -> Repository:
    try:
        with closing(os.fdopen(os.open(path, os.O_CREAT | os.O_RDWR, 0o600), "rb")):
            path.chmod(0o600)
    except OSError as error:
        raise StoreUnwritable(f"The history {path} cannot be written ({error.strerror or error}).") from error
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        _version(connection, len(MIGRATIONS))  # before anything is written to what may not be ours
        _configure(connection)
        _check_if_suspected(connection, path)
        migrate(connection, backup=path.with_name(f"{path.stem}-before-format-{len(MIGRATIONS)}.db"))
        repository = Repository(connection, Instance(path.parent / "running"))
        repository.recover()
        repository.purge_deleted(repository.clock() - KEEP_DELETED)
    except sqlite3.OperationalError as error:
        connection.close()
        raise StoreUnwritable(f"The history {path} cannot be written ({error}).") from error
    except sqlite3.DatabaseError as error:
        connection.close()
        raise StoreDamaged(f"The history {path.name} is damaged ({error}).") from error
    except (StoreError, OSError):
        connection.close()
        raise
    return repository


def suspect(folder: Path) -> None:
    """Note that the history in `folder` was found damaged, so that it is checked when it is opened next."""
    with suppress(OSError):
        (folder / FILE_NAME).with_suffix(_SUSPECTED).touch(mode=0o600)


def _check_if_suspected(connection: sqlite3.Connection, path: Path) -> None:
    mark = path.with_suffix(_SUSPECTED)
    if mark.exists():
        _check(connection, path)
        mark.unlink(missing_ok=True)


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Raises StoreDamaged if SQLite finds anything wrong."""
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise StoreDamaged(f"The history {path.name} is damaged ({' '.join(found.split())}).")


def open_read_only(path: Path) -> sqlite3.Connection:
    """A connection that writes nothing, also where nothing can be written. Raises StoreUnwritable."""
    problem: Exception = FileNotFoundError(path)
    for way in ("mode=ro", "immutable=1"):
        try:
            connection = sqlite3.connect(f"{path.resolve().as_uri()}?{way}", uri=True)
            connection.execute("PRAGMA schema_version")
            return connection
        except sqlite3.Error as error:
            problem = error
    raise StoreUnwritable(f"{path} cannot be opened ({problem}).")


def _configure(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")


def migrate(
    connection: sqlite3.Connection, scripts: tuple[str, ...] = MIGRATIONS, backup: Path | None = None
) -> None:
    """Bring the database to version len(scripts), all scripts in one transaction, or leave it as it was.

    backup: where a copy of a non-empty older database is written first. Two programs may call this at once.
    Raises StoreNewer if the database has a higher version, StoreDamaged if it is somebody else's.
    """
    version = _version(connection, len(scripts))
    if version == len(scripts):
        return
    if version > 0 and backup is not None and not backup.exists():
        os.close(os.open(backup, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(sqlite3.connect(backup)) as copy:
            connection.backup(copy)
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection, len(scripts))  # another program may have been faster
        for script in scripts[version:]:
            for statement in _statements(script):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(scripts)}")
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection, known: int) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    owner: int = connection.execute("PRAGMA application_id").fetchone()[0]
    tables: int = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if tables and owner != APPLICATION_ID:
        raise StoreDamaged("The history file is a database of another program.")
    if version > known:
        raise StoreNewer(f"The history was written by a newer version of dsv4chat (format {version}).")
    return version if tables else 0


def _statements(script: str) -> list[str]:
    """The statements of a script (`executescript` would commit the transaction around them)."""
    statements, pending = [], ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            statements.append(pending.strip())
            pending = ""
    return statements


def _private_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)


def _set_aside(path: Path) -> Path:
    """Rename a damaged database and its WAL files; nothing is deleted."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    aside = path.with_name(f"{path.stem}-damaged-{stamp}.db")
    number = 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.stem}-damaged-{stamp}-{number}.db")
    try:
        path.rename(aside)
        for suffix in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    except OSError as error:
        raise StoreUnwritable(
            f"The history {path} is damaged and cannot be set aside ({error.strerror or error})."
        ) from error
    return aside
