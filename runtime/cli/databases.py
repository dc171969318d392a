"""Which database ``--db`` means: a file is SQLite's, a URL names its server."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from persistence.sqlite import SqliteSaver, listing
from runtime.cli.failing import CommandError
from runtime.cli.files import folder_of, require_file

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from persistence.contracts.listing import Listing

_SERVERS: Final = ("postgresql://", "postgres://")


def is_server(db: str) -> bool:
    """Whether a database is on a server, not in a file."""
    return db.startswith(_SERVERS)


def named(db: str) -> str:
    """Return what to call a database where others may read it: a URL without its password."""
    password = urlsplit(db).password if is_server(db) else None
    return db if password is None else db.replace(f":{password}@", "@", 1)


def saver_of(db: str) -> Any:
    """Return a closed saver. Raises CommandError if its driver is not installed."""
    return module_of("persistence.postgres").PostgresSaver(db) if is_server(db) else SqliteSaver(db)


def look_into(db: str) -> AbstractContextManager[Listing]:
    """Open a database for reading.

    Raises:
        BackendOpenError: There is no such database, or it is none of this library.
        CommandError: Its driver is not installed.
    """
    if not is_server(db):
        return listing.look_into(db)
    found: AbstractContextManager[Listing] = module_of("persistence.postgres.listing").look_into(db)
    return found


def require_place(db: str, *, exists: bool) -> None:
    """Check a file's folder, or the file itself if it must exist, before anything is opened. Raises CommandError."""
    if is_server(db):
        return
    folder_of(db)
    if exists:
        require_file(db)


def module_of(module: str) -> Any:
    """Return a module whose driver may be missing; no other command waits for its import. Raises CommandError."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise CommandError(str(error), kind="ModuleNotFoundError") from error
