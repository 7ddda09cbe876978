"""The connection to the history and its transactions. One thread at a time.

Every public method of the classes built on `Transactions` is one transaction (or one reading) and raises
StoreError, never sqlite3's errors.
"""

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from dsv4chat.store.errors import StoreBusy, StoreDamaged, StoreError, StoreUnwritable
from dsv4chat.store.instance import Instance

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


class Transactions:
    """One SQLite connection. `clock` gives the time in seconds since 1970."""

    def __init__(
        self, connection: sqlite3.Connection, instance: Instance, clock: Callable[[], float] = time.time
    ) -> None:
        self.connection = connection
        self.instance = instance
        self.clock = clock
        connection.row_factory = sqlite3.Row
        connection.text_factory = _text

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, its errors as StoreError. Several statements see one state of the history."""
        with self._translated():
            if self.connection.in_transaction:
                yield self.connection
                return
            self.connection.execute("BEGIN")
            try:
                yield self.connection
            finally:
                with suppress(sqlite3.Error):
                    self.connection.execute("ROLLBACK")

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it or nothing. Raises StoreError."""
        with self._translated():
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.connection
                self.connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self.connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            if (getattr(error, "sqlite_errorcode", 0) & 0xFF) in _BUSY:
                raise StoreBusy(
                    "Another program is writing to the history for a long time; try again."
                ) from error
            raise StoreUnwritable(f"The history cannot be written ({error}).") from error
        except sqlite3.Error as error:
            raise StoreDamaged(f"The history is damaged ({error}).") from error
        except UnicodeEncodeError as error:
            raise StoreError(f"The history cannot keep this text ({error}).") from error
        except (ValueError, json.JSONDecodeError) as error:
            raise StoreDamaged(f"An entry of the history cannot be read ({error}).") from error


def _text(stored: bytes) -> str:
    """A text of the file. One wrong byte in it is no reason to show nothing of its conversation."""
    return stored.decode(errors="replace")
