"""Which database ``--db`` means: a file is SQLite's, a URL names its server."""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from persistence.sqlite import SqliteSaver, SqliteStore, listing
from runtime.cli.failing import CommandError
from runtime.cli.files import folder_of, require_file

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from persistence.contracts.listing import Listing


class _Server(NamedTuple):
    """A kind of server: what its URLs begin with, and what of this library works on it."""

    schemes: tuple[str, ...]
    module: str
    saver: str
    store: str


_SERVERS: Final = (
    _Server(("postgresql://", "postgres://"), "persistence.postgres", "PostgresSaver", "PostgresStore"),
    _Server(("redis://", "rediss://", "unix://"), "persistence.redis", "RedisSaver", "RedisStore"),
    _Server(("mongodb://", "mongodb+srv://"), "persistence.mongo", "MongoDBSaver", "MongoDBStore"),
)

_PASSWORD: Final = re.compile(r"(?<=[?&])(ssl|ssl_)?password=[^&]*&?")

FORMS: Final = "an SQLite file, postgresql://..., redis://... or mongodb://..."
"""What a database may be given as."""


def is_server(db: str) -> bool:
    """Whether a database is on a server, not in a file."""
    return _server_of(db) is not None


def named(db: str) -> str:
    """Return what to call a database where others may read it: a URL without its password."""
    if not is_server(db):
        return db
    scheme, _, rest = db.partition("://")
    place, slash, path = rest.partition("/")
    user, at, hosts = place.rpartition("@")
    return f"{scheme}://{user.partition(':')[0]}{at}{hosts}{slash}{_PASSWORD.sub('', path)}"


def saver_of(db: str) -> Any:
    """Return a closed saver. Raises CommandError if its driver is not installed."""
    server = _server_of(db)
    return SqliteSaver(db) if server is None else getattr(module_of(server.module), server.saver)(db)


def store_of(db: str, **settings: Any) -> Any:
    """Return a closed store. Raises CommandError if its driver is not installed."""
    server = _server_of(db)
    if server is None:
        return SqliteStore(db, **settings)
    return getattr(module_of(server.module), server.store)(db, **settings)


def look_into(db: str) -> AbstractContextManager[Listing]:
    """Open a database for reading.

    Raises:
        BackendOpenError: There is no such database, or it is none of this library.
        CommandError: Its driver is not installed.
    """
    server = _server_of(db)
    if server is None:
        return listing.look_into(db)
    found: AbstractContextManager[Listing] = module_of(f"{server.module}.listing").look_into(db)
    return found


def _server_of(db: str) -> _Server | None:
    return next((server for server in _SERVERS if db.startswith(server.schemes)), None)


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
