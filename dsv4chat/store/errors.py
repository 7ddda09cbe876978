"""Errors of the history. Each carries one sentence that says what is wrong and what to do."""


class StoreError(Exception):
    """The history cannot do what was asked; `str(error)` is meant for a person."""


class StoreDamaged(StoreError):  # noqa: N818 - named by what happened, as the others
    """The file is not a history, or SQLite finds it malformed."""


class StoreIndexDamaged(StoreDamaged):
    """Only the full-text index is malformed; `rebuild_index` makes it anew from the messages."""


class StoreNewer(StoreError):  # noqa: N818
    """The file was written by a newer version of this program."""


class StoreUnwritable(StoreError):  # noqa: N818
    """The folder is read-only, the disk is full, or the file may not be written."""


class StoreMissing(StoreError):  # noqa: N818
    """There is no such conversation or message (any more)."""


class StoreBusy(StoreError):  # noqa: N818
    """Another program holds the history locked for longer than one waits."""
