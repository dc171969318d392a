"""A run that several consumers follow: one streams it, others stream the runs around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime.streaming.langchain import handlers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.engine.tasks import Task
    from runtime.streaming.hub import Hub, HubStatistics
    from runtime.streaming.tools import Teller


class Tee:
    """Reports to several hubs; stands wherever one hub may stand."""

    __slots__ = ("_hubs",)

    def __init__(self, hubs: tuple[Hub, ...]) -> None:
        self._hubs = hubs

    @property
    def hubs(self) -> tuple[Hub, ...]:
        """The hubs."""
        return self._hubs

    @property
    def full(self) -> bool:
        """Whether the run has to wait for a consumer."""
        return any(hub.full for hub in self._hubs)

    @property
    def tells_checkpoints(self) -> bool:
        """Whether it reports checkpoints."""
        return any(hub.tells_checkpoints for hub in self._hubs)

    async def room(self) -> None:
        """Return once every consumer has made room, or has left."""
        for hub in self._hubs:
            await hub.room()

    def statistics(self) -> HubStatistics:
        """Return how full the nearest consumer's buffer is and was."""
        return self._hubs[0].statistics()

    async def tasks_started(self, run: Any, tasks: Sequence[Task]) -> None:
        """Report tasks about to run."""
        for hub in self._hubs:
            await hub.tasks_started(run, tasks)

    async def task_finished(self, run: Any, task: Task, *, cached: bool = False) -> None:
        """Report what a task wrote."""
        for hub in self._hubs:
            await hub.task_finished(run, task, cached=cached)

    async def call_started(self, run: Any, task: Task) -> None:
        """Report a @task call about to run."""
        for hub in self._hubs:
            await hub.call_started(run, task)

    async def call_finished(self, run: Any, task: Task, value: Any, *, cached: bool = False) -> None:
        """Report the result of a @task call."""
        for hub in self._hubs:
            await hub.call_finished(run, task, value, cached=cached)

    async def task_failed(self, run: Any, task: Task, error: BaseException) -> None:
        """Report a failure."""
        for hub in self._hubs:
            await hub.task_failed(run, task, error)

    async def advanced(self, run: Any) -> None:
        """Report the state after a superstep, and its checkpoint."""
        for hub in self._hubs:
            await hub.advanced(run)

    async def resumed(self, run: Any) -> None:
        """Report the state that a resumed run starts from, and its checkpoint."""
        for hub in self._hubs:
            await hub.resumed(run)

    def paused(self, run: Any, questions: Sequence[Any] | None, tasks: Sequence[Task]) -> None:
        """Note that the run stops."""
        for hub in self._hubs:
            hub.paused(run, questions, tasks)

    async def checkpoint(self, run: Any) -> None:
        """Report the newest checkpoint."""
        for hub in self._hubs:
            await hub.checkpoint(run)

    @property
    def hears(self) -> bool:
        """Whether somebody listens to the models or tools that nodes call."""
        return any(hub.hears for hub in self._hubs)

    def handlers(self, ns: str, tell: Teller) -> list[Any]:
        """Return what listens to the models and tools that a task calls."""
        return handlers({mode for hub in self._hubs for mode in hub.modes}, ns, tell) if self.hears else []

    def given(self, value: Any) -> None:
        """Note the messages that a node is given."""
        for hub in self._hubs:
            hub.given(value)

    async def returned(self, run: Any, metadata: Any, result: Any) -> None:
        """Report the messages that a node returned."""
        for hub in self._hubs:
            await hub.returned(run, metadata, result)

    def custom(self, run: Any, item: Any, mode: str = "custom", *, once: bool = False, ns: str | None = None) -> None:
        """Report what a node wrote to its stream writer."""
        for hub in self._hubs:
            hub.custom(run, item, mode, once=once, ns=ns)

    async def put_custom(
        self, run: Any, item: Any, mode: str = "custom", *, once: bool = False, ns: str | None = None
    ) -> None:
        """Report what a sync node wrote, waiting for room."""
        for hub in self._hubs:
            await hub.put_custom(run, item, mode, once=once, ns=ns)


def joined(own: Hub | None, around: Hub | Tee | None) -> Hub | Tee | None:
    """Return where a subgraph reports to: to its own consumer, and to those around it that follow subgraphs."""
    above: tuple[Hub, ...] = around.hubs if isinstance(around, Tee) else () if around is None else (around,)
    hubs = (*(() if own is None else (own,)), *(hub for hub in above if hub.subgraphs))
    return Tee(hubs) if len(hubs) > 1 else hubs[0] if hubs else None
