"""Graphs that ask and graphs inside graphs, for the stories about people in the loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from runtime.types import interrupt
from tests.stories.graphs import Log

Node = tuple[str, Callable[[Any], Awaitable[dict[str, Any]]]]


class Runs(Counter[str]):
    """Counts how often nodes ran, and makes nodes that count."""

    def step(self, name: str) -> Node:
        """Return a node that notes its name."""

        async def node(_state: Log) -> dict[str, Any]:
            self[name] += 1
            return {"log": [name]}

        return name, node

    def asker(self, name: str, *questions: Any) -> Node:
        """Return a node that asks questions in turn, ``name?`` by default, and notes the answers."""

        async def node(_state: Log) -> dict[str, Any]:
            self[name] += 1
            return {"log": [f"{name}:{interrupt(question)}" for question in questions or (f"{name}?",)]}

        return name, node

    def failer(self, name: str, times: int = 1, error: type[Exception] = ConnectionError) -> Node:
        """Return a node that fails so many times before it notes its name."""

        async def node(_state: Log) -> dict[str, Any]:
            self[name] += 1
            if self[name] <= times:
                raise error(name)
            return {"log": [name]}

        return name, node


def questions(result: dict[str, Any]) -> dict[str, str]:
    """Return the pending questions of a result: value to id."""
    return {one.value: one.id for one in result.get("__interrupt__", ())}


def asked(result: dict[str, Any]) -> list[str]:
    """Return what a result asks, sorted."""
    return sorted(questions(result))
