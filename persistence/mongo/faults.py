"""MongoDB's errors, told apart by what to do about them."""

from __future__ import annotations

from typing import Any, Final

from bson.errors import BSONError
from pymongo.errors import (
    BulkWriteError,
    ConnectionFailure,
    OperationFailure,
    PyMongoError,
)

from persistence.errors import BackendError, CheckpointConflictError, PersistenceError, TransientBackendError

DRIVER_ERRORS: Final = (PyMongoError, BSONError, OSError)
"""What a call of the driver raises; a time that ran out is one of these too."""

FOLLOWS: Final = "follows"
"""The unique index by which at most one checkpoint follows a head."""

DUPLICATE: Final = 11000

_LABELS: Final = ("TransientTransactionError", "UnknownTransactionCommitResult", "RetryableWriteError")

_PASSING: Final = frozenset(
    {
        6,  # host unreachable
        7,  # host not found
        24,  # lock timeout
        43,  # cursor not found: the server was started again
        50,  # time limit exceeded
        64,  # write concern timeout
        89,  # network timeout
        91,  # shutdown in progress
        112,  # write conflict
        133,  # no member to read from
        134,  # read concern majority not available yet
        189,  # primary stepped down
        202,  # network interface exceeded time limit
        246,  # snapshot unavailable
        251,  # no such transaction: it was aborted
        262,  # exceeded time limit
        9001,  # socket exception
        10107,  # not writable primary
        11600,  # interrupted at shutdown
        11602,  # interrupted by a change of state
        13435,  # not primary, no secondary ok
        13436,  # not primary or secondary
    }
)
"""Codes of faults that may pass."""

_ADVICE: Final = {
    13: "grant the user the role readWrite on the database",
    18: "check user, password and authSource: mongodb://user:password@host:27017/?authSource=admin",
    20: "it has no transactions: set transactions=False",
    263: "it has no such transactions: set transactions=False",
    8000: "check user, password and authSource",
    10334: "a document would be larger than the server takes: store less in one task or item",
    14031: "the server's disk is full: free space, then run the graph again",
    17419: "a document would be larger than the server takes: store less in one task or item",
}


def described(error: BaseException) -> str:
    """Return the server's words, its code and what to do."""
    code = _code(error)
    advice = _ADVICE.get(code) if code is not None else None
    words = f"{_words(error)} ({type(error).__name__}{'' if code is None else f' {code}'})"
    return words if advice is None else f"{words}: {advice}"


def passes(error: BaseException) -> bool:
    """Whether the same may succeed if it is tried again, on another connection if need be."""
    if isinstance(error, PyMongoError) and any(map(error.has_error_label, _LABELS)):
        return True
    if isinstance(error, OperationFailure):
        # Two that create one document at once: whoever tries again finds it.
        return _code(error) in _PASSING or (_code(error) == DUPLICATE and not is_claimed(error))
    return isinstance(error, ConnectionFailure | OSError)


def is_claimed(error: BaseException) -> bool:
    """Whether another checkpoint follows the head already."""
    told = _first(error)
    return _code(error) == DUPLICATE and (FOLLOWS in told.get("keyPattern", ()) or f"index: {FOLLOWS}" in _words(error))


def write_fault(error: BaseException, name: str) -> BackendError:
    """Return what a failed write means."""
    if passes(error):
        return TransientBackendError(f"{name} could not answer, the outcome may be unknown: {described(error)}")
    if is_claimed(error):
        return CheckpointConflictError(
            f"A thread in {name} has moved on: another writer stored a checkpoint after the one that this unit "
            "follows. It was not saved; load the thread again and repeat the call."
        )
    return BackendError(f"{name} refused: {described(error)}")


def read_fault(error: BaseException, name: str) -> PersistenceError:
    """Return what a failed read means."""
    kind = TransientBackendError if passes(error) else BackendError
    return kind(f"{name} cannot be read: {described(error)}")


def _first(error: BaseException) -> dict[str, Any]:
    """Return what the server says of the first fault."""
    details: Any = getattr(error, "details", None) or {}
    if isinstance(error, BulkWriteError):
        faults = details.get("writeErrors") or details.get("writeConcernErrors") or [{}]
        return dict(faults[0])
    return dict(details)


def _code(error: BaseException) -> int | None:
    if isinstance(error, BulkWriteError):
        return _first(error).get("code")
    return getattr(error, "code", None)


def _words(error: BaseException) -> str:
    words = _first(error).get("errmsg") or str(error).partition(", Timeout:")[0].partition(", full error:")[0]
    return str(words).strip() or "no answer in time"
