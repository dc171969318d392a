"""Redis's errors, told apart by what to do about them."""

from __future__ import annotations

import re
from typing import Final

from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    DataError,
    RedisClusterException,
    RedisError,
    ResponseError,
)

from persistence.errors import BackendError, PersistenceError, TransientBackendError

DRIVER_ERRORS: Final = (RedisError, RedisClusterException, OSError)
"""What a call of the driver raises; a time that ran out is an OSError too."""

_PASSING: Final = frozenset(
    {"BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "NOREPLICAS", "READONLY", "TRYAGAIN", "UNBLOCKED"}
)
"""Codes of faults that may pass."""

_ADVICE: Final = {
    "BUSY": "a script of another program keeps it busy",
    "CROSSSLOT": "keys are spread over a cluster here, which is not supported: connect to one primary server",
    "LOADING": "it has just started and loads its data",
    "MISCONF": "it cannot write to its own disk, so it refuses changes: look at its log",
    "MOVED": "this is a node of a cluster, which is not supported: connect to one primary server",
    "NOAUTH": "check user and password: redis://user:password@host:6379/0",
    "NOPERM": "grant the user eval, evalsha and ping, and all keys that begin with the prefix",
    "OOM": "it has no memory left (maxmemory): delete or prune threads, set a ttl, or give it more",
    "READONLY": "it is a replica, and takes no writes: connect to the primary",
    "WRONGPASS": "check user and password: redis://user:password@host:6379/0",
    "WRONGTYPE": "another program uses a key of ours: give one of both another prefix",
}

_CLASSES: Final = {
    "AuthenticationError": "NOAUTH",
    "BusyLoadingError": "LOADING",
    "ClusterCrossSlotError": "CROSSSLOT",
    "ClusterDownError": "CLUSTERDOWN",
    "MasterDownError": "MASTERDOWN",
    "MovedError": "MOVED",
    "NoPermissionError": "NOPERM",
    "OutOfMemoryError": "OOM",
    "ReadOnlyError": "READONLY",
    "TryAgainError": "TRYAGAIN",
}
"""The driver's classes by name: not every version has them all."""

_CODE: Final = re.compile(rf"\b({'|'.join(sorted({*_PASSING, *_ADVICE}))})\b")


def described(error: BaseException) -> str:
    """Return the server's words and what to do."""
    words = str(error).strip() or "no answer in time"
    advice = _ADVICE.get(_code(error))
    words = f"{words} ({type(error).__name__})"
    return words if advice is None else f"{words}: {advice}"


def passes(error: BaseException) -> bool:
    """Whether the same may succeed if it is tried again, on another connection if need be."""
    if isinstance(_meant(error), AuthenticationError | AuthorizationError | DataError | RedisClusterException):
        return False
    if isinstance(error, ResponseError):
        return _code(error) in _PASSING
    return True


def is_lost(error: BaseException) -> bool:
    """Whether other connections that are open may be of no more use either: what ended one, ended them all."""
    return _code(error) == "READONLY" or (passes(error) and not isinstance(error, ResponseError))


def write_fault(error: BaseException, name: str) -> BackendError:
    """Return what a failed write means."""
    if passes(error):
        return TransientBackendError(f"{name} could not answer, the outcome may be unknown: {described(error)}")
    return BackendError(f"{name}: nothing was saved: {described(error)}")


def read_fault(error: BaseException, name: str) -> PersistenceError:
    """Return what a failed read means."""
    kind = TransientBackendError if passes(error) else BackendError
    return kind(f"{name} cannot be read: {described(error)}")


def _code(error: BaseException) -> str:
    """Return the error's code: the driver cuts it off where it has a class; inside of scripts it may stand anywhere."""
    known = _CLASSES.get(type(_meant(error)).__name__)
    if known is not None or not isinstance(error, ResponseError):
        return known or ""
    found = _CODE.search(str(error))
    return found[1] if found else ""


def _meant(error: BaseException) -> BaseException:
    """Return the refusal that the driver calls a lost connection when it comes as one is made; else the error."""
    cause = error.__cause__ or error.__context__
    return cause if isinstance(cause, AuthenticationError) else error
