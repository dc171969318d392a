"""How threads stand and what became of their tasks, where a task failed and asked, in either order."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, TypedDict

import pytest

from persistence.sqlite import SqliteSaver
from runtime.func import entrypoint, task
from runtime.graph import START, StateGraph
from runtime.graph.recovery import with_saver
from runtime.types import Command as Go
from runtime.types import Send, interrupt

if TYPE_CHECKING:
    from tests.runtime.cli.commands import Command


class Asking(TypedDict):
    n: int


fails = {"now": False}


def twice(_state: Asking) -> Asking:
    """Fail when told to, before the first question or on its answer."""
    if fails["now"]:
        raise ValueError("no")
    first = interrupt("first?")
    if first == "copy":
        copy()
    if first == "fail":
        raise ValueError("no")
    return {"n": interrupt("second?")}


def copy() -> None:
    """Keep what is stored while the node is at work, which is what would be left if its process died."""
    with closing(sqlite3.connect("asks.db")) as source, closing(sqlite3.connect("died.db")) as target:
        source.backup(target)


def below(asks: Callable[[Asking], Asking]) -> StateGraph:
    return StateGraph(Asking).add_node("asks", asks).add_edge(START, "asks")


def parent() -> StateGraph:
    return StateGraph(Asking).add_node("sub", below(twice).compile()).add_edge(START, "sub")


def sending() -> StateGraph:
    return StateGraph(Asking).add_node("asks", twice).add_conditional_edges(START, lambda _state: [Send("asks", {})])


def calling() -> Any:
    called = task(twice)

    @entrypoint()
    async def flow(given: Asking) -> Asking:
        return await called(given)

    return flow


STEPS: dict[str, tuple[list[Any], str, str]] = {
    "failed": (["fails"], "failed", "failed"),
    "failed-asked": (["fails", None], "asking", "asked"),
    "asked-failed": ([{"n": 1}, Go(resume="fail")], "failed", "failed"),
    "failed-asked-failed": (["fails", None, Go(resume="fail")], "failed", "failed"),
    "asked-twice": ([{"n": 1}, Go(resume=1)], "asking", "asked"),
    "failed-asked-twice": (["fails", None, Go(resume=1)], "asking", "asked"),
    "asked-died": ([{"n": 1}, Go(resume="copy")], "unfinished", "answered"),
}


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("shape", ["plain", "below", "sent", "called"])
def test_who_asks_after_a_failure_is_asking_and_who_failed_on_the_answer_failed(
    command: Command, shape: str, steps: str
) -> None:
    given, status, outcome = STEPS[steps]
    config: Any = {"configurable": {"thread_id": "t"}}
    with SqliteSaver("asks.db") as saver:
        made: dict[str, Callable[[], Any]] = {
            "plain": lambda: below(twice).compile(saver),
            "below": lambda: parent().compile(saver),
            "sent": lambda: sending().compile(saver),
            "called": lambda: with_saver(calling(), saver),
        }
        graph = made[shape]()
        for one in given:
            fails["now"] = one == "fails"
            with suppress(ValueError):
                graph.invoke({"n": 1} if one == "fails" else one, config, durability="sync")
    db = "died.db" if steps.endswith("died") else "asks.db"
    (found,) = command("threads", "--db", db, "--json").document["threads"]
    assert found["status"] == status
    newest = command("history", "t", "--db", db, "--json").document["checkpoints"]
    shown = command("show", "t", "--db", db, "--json").document["tasks"]
    own = next(each["tasks"] for each in newest if not each["namespace"])
    assert {each["outcome"] for each in own} == {each["outcome"] for each in shown} == {outcome}
