"""PostgreSQL's errors, told apart by what to do about them."""

from __future__ import annotations

from typing import Final

import asyncpg

from persistence.errors import BackendError, PersistenceError, TransientBackendError

DRIVER_ERRORS: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
"""What a call of the driver raises; a time that ran out is an OSError too."""

_PASSING: Final = (
    "08",  # the connection is gone
    "40",  # rolled back: deadlock, serialization
    "25006",  # read only: this server has become a standby
    "25P03",  # nothing was heard from here in the middle of a transaction
    "53200",  # out of memory
    "53300",  # too many connections
    "55P03",  # a lock was not to be had in time
    "57",  # cancelled, shut down, starting up
)
"""SQLSTATEs, or their beginnings, of faults that may pass."""

_USELESS: Final = ("08", "25006", "25P03", "57P")
"""Those after which the connection is of no more use."""

_POOLER: Final = (
    "if a pooler such as PgBouncer stands between, set transaction_pooler=True and leave settings like search_path out "
    "of the URL"
)

_ADVICE: Final = {
    "08P01": _POOLER,
    "26000": _POOLER,
    "0A000": "a search by meaning needs the extension pgvector on the server",
    "25006": "it takes no writes: connect to the primary, for example with target_session_attrs=read-write",
    "28": "check user, password and pg_hba.conf",
    "3D000": "create the database first",
    "42501": "grant the role what it lacks; creating the tables needs CREATE on the schema",
    "42883": "create or migrate the tables with asetup()",
    "42P01": "create the tables with asetup()",
    "53100": "the server's disk is full: free space, then run the graph again",
    "53300": "lower pool_size or raise max_connections",
    "54000": "a name or value is longer than the server can index or store: shorten it",
    "57014": "the server's statement_timeout or an operator cancelled it",
}


def is_lost(error: BaseException) -> bool:
    """Whether the connection is of no more use after this error."""
    if isinstance(error, asyncpg.PostgresError):
        return _state(error).startswith(_USELESS)
    return isinstance(error, DRIVER_ERRORS)


def described(error: BaseException) -> str:
    """Return the server's words, its code and what to do."""
    if not isinstance(error, asyncpg.PostgresError):
        words = str(error).strip() or "no answer in time"
        return f"{words} ({type(error).__name__})"
    state = _state(error)
    advice = next((text for code, text in _ADVICE.items() if state.startswith(code)), None)
    words = f"{error} ({type(error).__name__} {state})"
    return words if advice is None else f"{words}: {advice}"


def passes(error: BaseException) -> bool:
    """Whether the same may succeed if it is tried again, on another connection if need be."""
    if isinstance(error, asyncpg.PostgresError):
        return _state(error).startswith(_PASSING)
    return not isinstance(error, asyncpg.ClientConfigurationError)


def write_fault(error: BaseException, name: str) -> BackendError:
    """Return what a failed write means."""
    if passes(error):
        return TransientBackendError(f"{name} could not answer, the outcome may be unknown: {described(error)}")
    return BackendError(f"{name}: nothing was saved: {described(error)}")


def read_fault(error: BaseException, name: str) -> PersistenceError:
    """Return what a failed read means."""
    kind = TransientBackendError if passes(error) else BackendError
    return kind(f"{name} cannot be read: {described(error)}")


def _state(error: BaseException) -> str:
    return getattr(error, "sqlstate", None) or ""
