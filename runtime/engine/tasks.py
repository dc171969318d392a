"""One execution of a node in one superstep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime.types.constants import CONTROL_WRITES, NO_WRITES, NS_END, NS_SEP, PULL, PUSH
from runtime.types.ids import task_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.engine.plan import NodePlan
    from runtime.types.command import Send


class Moment:
    """Where a superstep stands: what its tasks' ids derive from."""

    __slots__ = ("checkpoint_id", "ns", "step", "stop")

    def __init__(self, checkpoint_id: str, ns: str, step: int, stop: int) -> None:
        self.checkpoint_id = checkpoint_id
        self.ns = ns
        self.step = step
        self.stop = stop
        """The first superstep that may not run any more."""


class Task:
    """A node to run, with the input it gets and, once it ran, what it wrote."""

    __slots__ = (
        "_id",
        "answers",
        "below",
        "caught",
        "error",
        "given",
        "interrupts",
        "moment",
        "node",
        "send",
        "send_index",
        "stand_in",
        "triggers",
        "writes",
    )

    def __init__(self, node: NodePlan, moment: Moment, *, send: Send | None = None, index: int = -1) -> None:
        self.node = node
        self.moment = moment
        self.send = send
        self.send_index = index
        self.triggers: tuple[str, ...] = node.triggers if send is None else ()
        self.writes: list[tuple[str, Any]] | None = None
        """None until it finished."""
        self.error: Any = None
        self.interrupts: tuple[Any, ...] = ()
        self.answers: list[Any] = []
        """Answers that earlier runs of this task were given, in the order of its questions."""
        self.below: dict[str, Any] = {}
        """Answers for questions of subgraphs that this task runs, by id."""
        self.given: Any = None
        """Arguments of a call that a node made."""
        self.caught = False
        """Whether its failure was handed to the node's error handler."""
        self.stand_in: HandlerTask | None = None
        """The error handler's task, once that has finished in its place."""
        self._id: str | None = None

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name

    @property
    def id(self) -> str:
        """Deterministic id; computed when first asked for."""
        if self._id is None:
            at = self.moment
            ns = self.name if not at.ns else f"{at.ns}{NS_SEP}{self.name}"
            if self.send is None:
                self._id = task_id(at.checkpoint_id, ns, at.step, self.name, PULL, *self.triggers)
            else:
                self._id = task_id(at.checkpoint_id, ns, at.step, self.name, PUSH, str(self.send_index))
        return self._id

    def rename(self, given: str) -> None:
        """Take an id from outside: an update that stands for a known task."""
        self._id = given

    @property
    def ns(self) -> str:
        """Namespace of the task: what its subgraphs and questions are named after."""
        own = f"{self.name}{NS_END}{self.id}"
        return own if not self.moment.ns else f"{self.moment.ns}{NS_SEP}{own}"

    @property
    def around(self) -> Any:
        """Scope of the node that called it, if it is a call."""
        return None

    @property
    def depth(self) -> int:
        """How many calls deep it is: a node's task is none."""
        return 0

    @property
    def path(self) -> tuple[Any, ...]:
        """Place in the superstep: decides the order in which writes are folded."""
        return (PULL, self.name) if self.send is None else (PUSH, self.send_index, False)

    @property
    def order(self) -> tuple[str, Any]:
        """Sort key with the order of ``path_text``."""
        return (PULL, self.name) if self.send is None else (PUSH, self.send_index)

    @property
    def path_text(self) -> str:
        """Text form of the path, as stored."""
        return self.node.path_text if self.send is None else path_text(self.path)

    @property
    def finished(self) -> bool:
        """Whether it wrote anything but control writes."""
        return self.writes is not None or self.stand_in is not None

    @property
    def effective(self) -> Task:
        """The task whose writes count: itself, or the error handler's."""
        return self.stand_in or self

    def stored_writes(self) -> list[tuple[str, Any]]:
        """Return what is recorded of a finished task."""
        return self.writes or [(NO_WRITES, None)]

    def __repr__(self) -> str:
        return f"<Task {self.name} step={self.moment.step} {'finished' if self.finished else 'due'}>"


class HandlerTask(Task):
    """The error handler of a failed task: same input, same superstep, in its place."""

    __slots__ = ("failed", "reason")

    def __init__(self, failed: Task, handler: NodePlan, reason: BaseException) -> None:
        super().__init__(handler, failed.moment)
        self.failed = failed
        self.reason = reason
        self.triggers = failed.triggers
        self.below = failed.below
        self.interrupts = failed.interrupts

    @property
    def id(self) -> str:
        """Deterministic: made from the failed task's."""
        if self._id is None:
            at = self.moment
            ns = self.name if not at.ns else f"{at.ns}{NS_SEP}{self.name}"
            self._id = task_id(at.checkpoint_id, ns, at.step, self.name, PULL, "node_error_handler", self.failed.id)
        return self._id

    @property
    def order(self) -> tuple[str, Any]:
        """The failed task's place in the superstep."""
        return self.failed.order


def handler_of(task: Task) -> HandlerTask:
    """Return what the error handler of a task's node is called if the task fails; the node must have one."""
    assert task.node.handler is not None  # noqa: S101 - see above
    return HandlerTask(task, task.node.handler, Exception())


def path_text(path: Sequence[Any]) -> str:
    """Return a task path as text that sorts like the path."""
    parts = (f"{part:010d}" if isinstance(part, int) and not isinstance(part, bool) else str(part) for part in path)
    return "~" + ", ".join(parts)


def is_output(channel: str) -> bool:
    """Tell whether a write to this channel makes its task finished."""
    return channel not in CONTROL_WRITES
