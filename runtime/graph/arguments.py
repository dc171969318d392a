"""Checks of what a graph is described and compiled with, made where it is given and not where it is first used."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from runtime.errors import GraphDefinitionError, UnsupportedFunctionError
from runtime.types.policy import CachePolicy, RetryPolicy, TimeoutPolicy
from runtime.types.strangers import keeper_of_langgraph

P = ParamSpec("P")
R = TypeVar("R")


def renamed(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function refuse the keywords that LangGraph has given up, by their names of today.

    Raises TypeError, as for any keyword that a function does not have.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            for old in names.keys() & kwargs.keys():
                msg = f"{function.__qualname__}() has no keyword {old!r}: its name is {names[old]!r}."
                raise TypeError(msg)
            return function(*args, **kwargs)

        return checked

    return decorate


def policies(policy: RetryPolicy | Sequence[RetryPolicy] | None) -> tuple[RetryPolicy, ...]:
    """Return one policy or several as a tuple. Raises GraphDefinitionError for anything else."""
    if policy is None:
        return ()
    if isinstance(policy, RetryPolicy):
        return (policy,)
    # LangGraph's own policy is a tuple of its settings: it is shown as a whole.
    several = type(policy) in (list, tuple) and not hasattr(policy, "_fields")
    wrong = [one for one in policy if not isinstance(one, RetryPolicy)] if several else [policy]
    if wrong:
        msg = f"retry_policy must be a RetryPolicy of runtime.types, or a list of them; got {wrong[0]!r}."
        raise GraphDefinitionError(msg)
    return tuple(policy)


def cache_policy_of(policy: Any) -> CachePolicy | None:
    """Return the policy. Raises GraphDefinitionError for anything else."""
    if policy is None or isinstance(policy, CachePolicy):
        return policy
    msg = f"cache_policy must be a CachePolicy of runtime.types, got {policy!r}."
    raise GraphDefinitionError(msg)


def timeout_of(timeout: Any) -> TimeoutPolicy | None:
    """Return the policy that a timeout stands for. Raises GraphDefinitionError for what stands for none."""
    try:
        return TimeoutPolicy.coerce(timeout)
    except TypeError:
        msg = f"timeout must be seconds, a timedelta or a TimeoutPolicy of runtime.types, got {timeout!r}."
        raise GraphDefinitionError(msg) from None


def refuse_generators(function: Any, what: str) -> None:
    """Raise UnsupportedFunctionError for a function that yields."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        msg = f"Generators cannot be {what}: write to the stream with a StreamWriter instead, and return the result."
        raise UnsupportedFunctionError(msg)


def check_saver(saver: Any) -> None:
    """Raise TypeError for something that is no saver."""
    if saver is None or isinstance(saver, bool):
        return
    _refuse_keeper(saver, "checkpointer", "persistence.saver.BaseCheckpointSaver")
    if not isinstance(saver, type) and callable(getattr(saver, "get_tuple", None)):
        return
    _check(saver, "checkpointer must be a saver", "aget_tuple")


def check_store(store: Any) -> None:
    """Raise TypeError for something that is no store."""
    if store is not None:
        _refuse_keeper(store, "store", "persistence.store.BaseStore")
        _check(store, "store must be a BaseStore", "abatch")


def check_control(control: Any) -> Any:
    """Return the handle to drain a run. Raises TypeError for something that is none."""
    if control is None or hasattr(control, "drain_requested"):
        return control
    msg = (
        f"control must be a RunControl of runtime.runtime, whose request_drain() you call while the run is at work; "
        f"got {control!r}."
    )
    raise TypeError(msg)


def _refuse_keeper(given: Any, what: str, base: str) -> None:
    if (there := keeper_of_langgraph(given)) is not None:
        msg = (
            f"{what} is of LangGraph ({there}), which keeps other things: import it from persistence.memory, "
            f"persistence.sqlite or persistence.postgres; one of your own is made of {base}."
        )
        raise TypeError(msg)


def _check(given: Any, rule: str, method: str) -> None:
    if isinstance(given, type):
        got = f"the class {given.__name__}: make one"
    elif not callable(getattr(given, method, None)):
        got = type(given).__name__
    else:
        return
    msg = f"{rule} (see persistence.memory, persistence.sqlite), got {got}."
    raise TypeError(msg)
