"""Policies: which failures are tried again, how long to wait, what counts as a timeout."""

from __future__ import annotations

import math
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import InvalidUpdateError, NodeTimeoutError
from runtime.types import CachePolicy, RetryPolicy, TimeoutPolicy, default_retry_on

seconds = st.floats(0, 1e6)


class Answer:
    """Looks like the response of an HTTP client's error."""

    def __init__(self, status: Any) -> None:
        self.status_code = status


def http_error(status: Any) -> Exception:
    error = OSError("http")
    error.response = Answer(status)  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize(
    "error",
    [
        ConnectionError(),
        ConnectionResetError(),
        http_error(500),
        http_error(503),
        AssertionError(),
        MemoryError(),
        InvalidUpdateError(),
        NodeTimeoutError("n", elapsed=1, kind="run", run_timeout=1),
        ExceptionGroup("several", [ValueError()]),
        Exception(),
    ],
    ids=repr,
)
def test_what_may_pass_is_tried_again(error: Exception) -> None:
    assert default_retry_on(error)


@pytest.mark.parametrize(
    "error",
    [
        ValueError(),
        TypeError(),
        ZeroDivisionError(),
        ModuleNotFoundError(),
        KeyError(),
        NameError(),
        SyntaxError(),
        RuntimeError(),
        RecursionError(),
        ReferenceError(),
        StopIteration(),
        StopAsyncIteration(),
        OSError(),
        TimeoutError(),
        http_error(404),
        http_error("500"),
        KeyboardInterrupt(),
    ],
    ids=repr,
)
def test_what_will_not_pass_is_not(error: BaseException) -> None:
    assert not default_retry_on(error)


@pytest.mark.parametrize(
    ("retry_on", "matches"),
    [
        (KeyError, True),
        (LookupError, True),
        (ValueError, False),
        ((ValueError, KeyError), True),
        ([ValueError], False),
        ((), False),
        (lambda error: error.args == ("k",), True),
        (lambda _error: 0, False),
    ],
)
def test_failures_are_chosen_by_class_by_several_or_by_a_predicate(retry_on: Any, matches: bool) -> None:
    assert RetryPolicy(retry_on=retry_on).matches(KeyError("k")) is matches


@given(seconds, st.floats(1, 10), seconds, st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_pauses_grow_to_their_limit_and_never_shrink(
    first: float, factor: float, longest: float, failures: int, random: float
) -> None:
    policy = RetryPolicy(initial_interval=first, backoff_factor=factor, max_interval=longest, jitter=False)
    pause = policy.pause(failures, random)
    assert min(first, longest) <= pause <= longest
    assert pause <= policy.pause(failures + 1, random)


def test_the_first_pauses_double() -> None:
    policy = RetryPolicy(jitter=False)
    assert [policy.pause(failures, 0.9) for failures in range(1, 5)] == [0.5, 1, 2, 4]


@given(st.floats(0, 1, exclude_max=True))
def test_jitter_adds_up_to_a_second(random: float) -> None:
    assert RetryPolicy().pause(1, random) == 0.5 + random


@pytest.mark.parametrize("name", ["initial_interval", "backoff_factor", "max_interval", "max_attempts"])
@pytest.mark.parametrize("value", [-1, math.nan])
def test_a_negative_pause_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} must not be negative"):
        RetryPolicy(**{name: value})


@pytest.mark.parametrize("given", [3, 3.0, timedelta(seconds=3), TimeoutPolicy(run_timeout=3)])
def test_a_timeout_is_seconds_a_timedelta_or_a_policy(given: Any) -> None:
    policy = TimeoutPolicy.coerce(given)
    assert policy is not None
    assert (policy.run_seconds, policy.idle_seconds, policy.refresh_on) == (3.0, None, "auto")


def test_no_timeout_is_none() -> None:
    assert TimeoutPolicy.coerce(None) is None


def test_a_policy_may_limit_both() -> None:
    policy = TimeoutPolicy(run_timeout=timedelta(minutes=1), idle_timeout=0.5, refresh_on="heartbeat")
    assert (policy.run_seconds, policy.idle_seconds) == (60.0, 0.5)


@pytest.mark.parametrize("name", ["run_timeout", "idle_timeout"])
@pytest.mark.parametrize("value", [0, -1, timedelta(0), timedelta(seconds=-1), math.nan])
def test_a_timeout_is_longer_than_nothing(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} must be greater than 0 s"):
        TimeoutPolicy(**{name: value})


def test_what_refreshes_a_timeout_is_one_of_two() -> None:
    with pytest.raises(ValueError, match="refresh_on must be 'auto' or 'heartbeat', got 'beat'"):
        TimeoutPolicy(idle_timeout=1, refresh_on="beat")  # type: ignore[arg-type]


def test_policies_are_values() -> None:
    assert RetryPolicy() == RetryPolicy()
    assert CachePolicy(ttl=1) != CachePolicy(ttl=2)
    assert hash(TimeoutPolicy(run_timeout=1)) == hash(TimeoutPolicy(run_timeout=1))


def test_the_first_attempt_counts() -> None:
    assert RetryPolicy(max_attempts=1).max_attempts == 1
    with pytest.raises(ValueError, match="must be at least 1, got 0"):
        RetryPolicy(max_attempts=0)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: RetryPolicy(max_attempts="3"), "max_attempts must be a number, got '3'"),  # type: ignore[arg-type]
        (lambda: RetryPolicy(initial_interval=None), "initial_interval must be a number"),  # type: ignore[arg-type]
        (lambda: RetryPolicy(retry_on="ValueError"), "retry_on must be an exception class"),  # type: ignore[arg-type]
        (lambda: RetryPolicy(retry_on=[ValueError, 3]), "retry_on must be an exception class"),  # type: ignore[list-item]
        (lambda: RetryPolicy(retry_on=int), "retry_on must be an exception class"),  # type: ignore[arg-type]
        (lambda: RetryPolicy(retry_on=ValueError("x")), "retry_on must be an exception class"),  # type: ignore[arg-type]
        (lambda: TimeoutPolicy("5"), "run_timeout must be a number, got '5'"),  # type: ignore[arg-type]
        (lambda: TimeoutPolicy(idle_timeout=True), "idle_timeout must be a number, got True"),
        (lambda: CachePolicy(ttl="60"), "ttl must be a number, got '60'"),  # type: ignore[arg-type]
        (lambda: CachePolicy(key_func="k"), "key_func must be a function of the node's input"),  # type: ignore[arg-type]
    ],
)
def test_a_policy_says_at_once_what_it_cannot_be_made_of(make: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        make()


@pytest.mark.parametrize(("kind", "run", "idle"), [("run", 2, None), ("idle", None, 2)])
def test_a_timeout_tells_which_it_was(kind: str, run: float | None, idle: float | None) -> None:
    error = NodeTimeoutError("n", elapsed=3, kind=kind, run_timeout=run, idle_timeout=idle)
    assert (error.run_timeout, error.idle_timeout, error.timeout) == (run, idle, 2)
    told = str(error)
    assert told.startswith(f"Node 'n' exceeded its {kind} timeout of 2 s")
    assert "this attempt was cancelled after 3.000 s." in told
    assert f"TimeoutPolicy({kind}_timeout=...)" in told
    assert ("heartbeat()" in told, "no sign of life" in told) == (kind == "idle", kind == "idle")


def test_a_result_is_not_kept_for_less_than_no_time() -> None:
    with pytest.raises(ValueError, match="ttl must not be negative"):
        CachePolicy(ttl=-1)
    assert CachePolicy(ttl=0.5).ttl == 0.5


class Asking:
    async def __call__(self, _given: Any) -> bool:
        return False


async def asked(_given: Any) -> bool:
    return False


@pytest.mark.parametrize("function", [asked, partial(asked), Asking()], ids=["function", "partial", "object"])
def test_functions_that_must_answer_at_once_are_not_async(function: Any) -> None:
    with pytest.raises(TypeError, match="retry_on must be a plain function"):
        RetryPolicy(retry_on=function)
    with pytest.raises(TypeError, match="key_func must be a plain function"):
        CachePolicy(key_func=function)
