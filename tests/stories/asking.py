"""Tasks that ask, and readings of what was asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import anyio

from runtime.func import task
from runtime.types import interrupt


def pending(result: Any) -> list[Any]:
    """The values of the questions in a result."""
    return [one.value for one in result["__interrupt__"]]


def ids(result: Any) -> dict[Any, str]:
    """The id of each question in a result, by its value."""
    return {one.value: one.id for one in result["__interrupt__"]}


class Asking:
    """Tasks that ask, and how often each ran."""

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()
        self.ask = task(self._ask, name="ask")
        self.sync_ask = task(self._sync_ask, name="sync ask")
        self.work = task(self._work, name="work")

    async def _ask(self, *questions: str) -> list[Any]:
        self.runs[questions[0]] += 1
        return [interrupt(question) for question in questions]

    def _sync_ask(self, question: str) -> Any:
        self.runs[question] += 1
        return interrupt(question)

    async def _work(self, name: str) -> str:
        self.runs[name] += 1
        return name


async def all_of(futures: Sequence[Any]) -> list[Any]:
    """Await all, in a task group."""
    found: dict[int, Any] = {}

    async def wait(place: int) -> None:
        found[place] = await futures[place]

    async with anyio.create_task_group() as group:
        for place in range(len(futures)):
            group.start_soon(wait, place)
    return [found[place] for place in range(len(futures))]
