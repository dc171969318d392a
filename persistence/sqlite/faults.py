"""SQLite's errors, told apart by what to do about them."""

from __future__ import annotations

import sqlite3
from typing import Final

from persistence.errors import BackendError, CorruptDataError, PersistenceError, TransientBackendError

_PASSING: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_ADVICE: Final = {
    sqlite3.SQLITE_FULL: "the disk is full: free space, then run the graph again",
    sqlite3.SQLITE_IOERR: "the disk failed: check it before going on",
    sqlite3.SQLITE_READONLY: "the file cannot be written: check its permissions and those of its directory",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened: check that its directory exists and can be written",
    sqlite3.SQLITE_TOOBIG: "one value is larger than SQLite can store",
}


def primary_code(error: sqlite3.Error) -> int:
    """Return the primary result code, -1 if the driver itself raised."""
    code = getattr(error, "sqlite_errorcode", None)
    return -1 if code is None else code & 0xFF


def described(error: sqlite3.Error) -> str:
    """Return SQLite's words, its code's name and what to do."""
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    advice = _ADVICE.get(primary_code(error))
    return f"{error} ({name})" if advice is None else f"{error} ({name}): {advice}"


def write_fault(error: sqlite3.Error, path: str) -> BackendError:
    """Return what a failed write means; nothing of its transaction was kept."""
    if primary_code(error) in _PASSING:
        message = f"{path} is locked by another connection: {described(error)}"
        return TransientBackendError(message)
    return BackendError(f"{path}: nothing was saved: {described(error)}")


def read_fault(error: sqlite3.Error, path: str) -> PersistenceError:
    """Return what a failed read means."""
    code = primary_code(error)
    if code in _PASSING:
        return TransientBackendError(f"{path} is locked by another connection: {described(error)}")
    if code in _DAMAGED:
        return CorruptDataError(f"{path} is damaged: {described(error)}; restore it from a backup.")
    return BackendError(f"{path} cannot be read: {described(error)}")
