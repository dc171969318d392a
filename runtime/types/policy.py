"""Policies: how often to retry, how long to wait, what to keep, how durable to be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from numbers import Real
from typing import Any, Generic, Literal

from typing_extensions import TypeVar

from runtime.types.functions import is_async

Durability = Literal["exit", "async", "sync"]
"""When checkpoints become durable: at the end of the run, behind it, or before the next superstep."""

DURABILITIES: tuple[Durability, ...] = ("exit", "async", "sync")

MultitaskStrategy = Literal["enqueue", "reject"]
"""What a second run on a busy thread does: wait its turn, or fail with ThreadBusyError."""

_NOT_RETRIED = (
    ValueError,
    TypeError,
    ArithmeticError,
    ImportError,
    LookupError,
    NameError,
    SyntaxError,
    RuntimeError,
    ReferenceError,
    StopIteration,
    StopAsyncIteration,
    OSError,
)
_SERVER_ERROR = 500


def default_retry_on(exc: BaseException) -> bool:
    """Tell whether a failure may pass by itself: connections and server errors, not programming errors."""
    if isinstance(exc, ConnectionError):
        return True
    status = getattr(getattr(exc, "response", None), "status_code", None)
    if isinstance(status, int):
        return status >= _SERVER_ERROR
    return isinstance(exc, Exception) and not isinstance(exc, _NOT_RETRIED)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How a failing node is tried again, within one run."""

    initial_interval: float = 0.5
    """Seconds before the second attempt."""
    backoff_factor: float = 2.0
    max_interval: float = 128.0
    """Seconds; the longest pause."""
    max_attempts: int = 3
    """Attempts in all, the first included."""
    jitter: bool = True
    """Add a random part of up to one second to each pause."""
    retry_on: type[BaseException] | Sequence[type[BaseException]] | Callable[[Exception], bool] = default_retry_on
    """Which failures: a class, several, or a predicate."""

    def _replace(self, **changes: Any) -> RetryPolicy:
        """Return the policy with some fields changed, as named tuples do: it is one in LangGraph."""
        return replace(self, **changes)

    def __post_init__(self) -> None:
        for name in ("initial_interval", "backoff_factor", "max_interval", "max_attempts"):
            value = getattr(self, name)
            _check_number(name, value)
            if not value >= 0:  # NaN too
                msg = f"{name} must not be negative, got {value!r}."
                raise ValueError(msg)
        if self.max_attempts < 1:
            msg = f"max_attempts counts the first attempt too: it must be at least 1, got {self.max_attempts!r}."
            raise ValueError(msg)
        wanted: Any = self.retry_on
        several = isinstance(wanted, Sequence) and not isinstance(wanted, str)
        if not (all(map(_is_failure, wanted)) if several else _is_failure(wanted) or _is_predicate(wanted)):
            msg = f"retry_on must be an exception class, several, or a function of the exception, got {wanted!r}."
            raise TypeError(msg)
        if is_async(wanted):
            msg = f"retry_on must be a plain function, as what an async one returns is always true; got {wanted!r}."
            raise TypeError(msg)

    def matches(self, error: Exception) -> bool:
        """Tell whether this policy retries the error."""
        wanted = self.retry_on
        if isinstance(wanted, type):
            return isinstance(error, wanted)
        if isinstance(wanted, Sequence):
            return isinstance(error, tuple(wanted))
        return bool(wanted(error))

    def pause(self, failures: int, random: float) -> float:
        """Return the seconds to wait after ``failures`` failed attempts; ``random`` is in [0, 1)."""
        try:
            wait = min(self.max_interval, self.initial_interval * self.backoff_factor ** (failures - 1))
        except OverflowError:  # after a thousand doublings
            wait = self.max_interval
        return wait + random if self.jitter else wait


@dataclass(frozen=True, slots=True)
class TimeoutPolicy:
    """How long one attempt of an async node may take; cancellation is cooperative."""

    run_timeout: float | timedelta | None = None
    """Seconds for the whole attempt."""
    idle_timeout: float | timedelta | None = None
    """Seconds without a sign of life (a write, a stream event, ``runtime.heartbeat()``)."""
    refresh_on: Literal["auto", "heartbeat"] = "auto"
    """What counts as a sign of life: anything observable, or only ``runtime.heartbeat()``."""

    def __post_init__(self) -> None:
        for name in ("run_timeout", "idle_timeout"):
            value = getattr(self, name)
            if value is None:
                continue
            if not isinstance(value, timedelta):
                _check_number(name, value)
            if not _seconds(value) > 0:  # NaN is not
                msg = f"{name} must be greater than 0 s, got {value!r}."
                raise ValueError(msg)
        if self.refresh_on not in ("auto", "heartbeat"):
            msg = f"refresh_on must be 'auto' or 'heartbeat', got {self.refresh_on!r}."
            raise ValueError(msg)

    @property
    def run_seconds(self) -> float | None:
        """The run timeout in seconds."""
        return None if self.run_timeout is None else _seconds(self.run_timeout)

    @property
    def idle_seconds(self) -> float | None:
        """The idle timeout in seconds."""
        return None if self.idle_timeout is None else _seconds(self.idle_timeout)

    @classmethod
    def coerce(cls, value: Any) -> TimeoutPolicy | None:
        """Return the policy that a number of seconds, a timedelta, a policy or None stands for."""
        if value is None or isinstance(value, cls):
            return value
        return cls(run_timeout=value)


KeyFunctionT_co = TypeVar(
    "KeyFunctionT_co", covariant=True, bound=Callable[..., str | bytes], default=Callable[..., str | bytes]
)


@dataclass(frozen=True, slots=True)
class CachePolicy(Generic[KeyFunctionT_co]):
    """Keep a node's result for equal inputs.

    The input is all that counts: what else the node reads, as ``runtime.context``, its config, the store or the clock,
    is no part of the key. Where the result depends on such things, let them come with the state, or do not cache it.
    """

    key_func: KeyFunctionT_co | None = None
    """Makes the key from the node's input; by default the whole stored form of the input."""
    ttl: float | None = None
    """Seconds; None keeps it until it is cleared."""

    def __post_init__(self) -> None:
        if self.key_func is not None and not callable(self.key_func):
            msg = f"key_func must be a function of the node's input, got {self.key_func!r}."
            raise TypeError(msg)
        if is_async(self.key_func):
            msg = f"key_func must be a plain function, which waits for nothing, got {self.key_func!r}."
            raise TypeError(msg)
        if self.ttl is not None:
            _check_number("ttl", self.ttl)
            if not self.ttl >= 0:
                msg = f"ttl must not be negative, got {self.ttl!r}."
                raise ValueError(msg)


def _seconds(value: float | timedelta) -> float:
    return value.total_seconds() if isinstance(value, timedelta) else float(value)


def _check_number(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, Real):
        msg = f"{name} must be a number, got {value!r}."
        raise TypeError(msg)


def _is_failure(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseException)


def _is_predicate(function: object) -> bool:
    return callable(function) and not isinstance(function, type)
