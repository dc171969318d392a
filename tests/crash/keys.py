"""A graph whose tasks of every kind note their idempotency keys, in a process that dies and in one that goes on."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio._backends._asyncio  # anyio imports them at the first run, which every child's is
import anyio._backends._trio

from persistence.sqlite import SqliteSaver
from runtime.func import task
from runtime.graph import END, START, StateGraph
from runtime.runtime import Runtime, get_runtime
from runtime.types import Send
from tests.crash.ledger import Ledger
from tests.crash.recovering import die
from tests.stories.graphs import Log, thread

THREADS = ("t", "u")
COPY = "copy"
"""Of the first thread, as its process left it: a thread of its own, though its checkpoints and tasks have the ids."""
TASKS = ("node", "sent 1", "sent 2", "caller", "call 1", "call 2", "below", "below sent 1", "below sent 2")
"""What is at work at the same time in each thread: nodes, tasks of a Send, calls, and tasks of a subgraph."""


class Story:
    """The graph, and who is at work in it."""

    def __init__(self, notes: Ledger, *, dies: bool) -> None:
        self._notes = notes
        self._dies = dies
        self._at_work = 0

    async def work(self, what: str, runtime: Runtime[Any]) -> dict[str, Any]:
        """Note the key of the task that this is; die, if asked to, once all are at it."""
        info = runtime.execution_info
        assert info is not None
        self._notes.note(info.thread_id, what.replace(" ", "_"), info.idempotency_key)
        if self._dies:
            self._at_work += 1
            if self._at_work == len(TASKS) * len(THREADS):
                die()
            await anyio.sleep_forever()
        return {"log": [what]}

    def node(self, what: str) -> Any:
        """Return a node of its own."""

        async def node(_state: Any, runtime: Runtime[None]) -> dict[str, Any]:
            return await self.work(what, runtime)

        return node

    async def sent(self, what: str, runtime: Runtime[None]) -> dict[str, Any]:
        """Be the node that a Send runs."""
        return await self.work(what, runtime)

    async def caller(self, _state: Any, runtime: Runtime[None]) -> dict[str, Any]:
        """Be a node that calls tasks."""

        @task
        async def call(what: str) -> dict[str, Any]:
            return await self.work(what, get_runtime())

        calls = [call(f"call {number}") for number in (1, 2)]
        async with anyio.create_task_group() as group:
            group.start_soon(self.work, "caller", runtime)
            for each in calls:
                await each
        return {}

    def builder(self, *, below: str = "") -> StateGraph:
        """Return a graph of a node and tasks of a Send, at the top beside a caller and a subgraph of the same kind."""
        graph = StateGraph(Log).add_node("node", self.node(below or "node")).add_edge(START, "node")
        graph.add_node("sent", self.sent)
        names = [f"{below} sent {number}".strip() for number in (1, 2)]
        graph.add_conditional_edges(START, lambda _: [Send("sent", name) for name in names])
        if not below:
            graph.add_node("caller", self.caller).add_edge(START, "caller")
            graph.add_node("sub", self.builder(below="below").compile()).add_edge(START, "sub").add_edge("sub", END)
        return graph


def run(where: str, ledger: str, loop: str, *, dies: bool) -> None:
    """Be a process that begins the runs and dies, or one that goes on with them."""

    async def main() -> None:
        story = Story(Ledger(Path(ledger)), dies=dies)
        async with SqliteSaver(where) as saver, anyio.create_task_group() as group:
            graph = story.builder().compile(saver)
            if not dies:
                await saver.acopy_thread(THREADS[0], COPY)
            for name in THREADS if dies else (*THREADS, COPY):
                given: Any = {"log": []} if dies else None
                group.start_soon(partial(graph.ainvoke, given, thread(name), durability="sync"))

    anyio.run(main, backend=loop)
