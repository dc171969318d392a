"""Plans and cells to try the engine on, without a run."""

from __future__ import annotations

import copy
import operator
from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

from runtime.channels import AnyValue, EphemeralValue, LastValue, Topic, UntrackedValue
from runtime.engine.cells import Cells
from runtime.engine.plan import Plan
from runtime.engine.tasks import Moment, Task
from runtime.graph import START, StateGraph
from runtime.types import Send

PARENT = "1f05e7a0-0000-6000-8000-000000000001"
"""Some checkpoint id."""


def refusing(left: list[int], right: list[int]) -> list[int]:
    """Concatenate; no sevens."""
    if 7 in right:
        msg = "no sevens"
        raise ValueError(msg)
    return left + right


class Picky(LastValue[int]):
    """A channel of a program's own, that refuses some values."""

    __slots__ = ()

    def update(self, values: Sequence[int]) -> bool:
        """Take anything but seven."""
        if 7 in values:
            msg = "no sevens"
            raise ValueError(msg)
        return super().update(values)


class Everything(TypedDict, total=False):
    """A key of each kind."""

    last: int
    items: Annotated[list[int], operator.add]
    refusing: Annotated[list[int], refusing]
    picky: Annotated[int, Picky]
    any: Annotated[int, AnyValue]
    flash: Annotated[int, EphemeralValue(int)]
    topic: Annotated[list[int], Topic(int)]
    untracked: Annotated[int, UntrackedValue(int)]


def idle(_state: Any) -> None:
    """Do nothing."""


def described(*nodes: str, schema: Any = Everything, deferred: Sequence[str] = ()) -> StateGraph[Any, Any, Any, Any]:
    """Describe nodes that all start at once."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(schema)
    for name in nodes:
        builder.add_node(name, idle, defer=name in deferred)
        builder.add_edge(START, name)
    return builder


def plan_of(builder: StateGraph[Any, Any, Any, Any], **options: Any) -> Plan:
    """Return what the engine sees of a graph."""
    return builder.compile(**options).program.plan


def moment(step: int = 0, ns: str = "") -> Moment:
    """Return a superstep to make tasks in."""
    return Moment(PARENT, ns, step, 100)


def pulled(plan: Plan, name: str, *writes: tuple[str, Any]) -> Task:
    """Return a task that the state triggered, with what it wrote."""
    task = Task(plan.nodes[name], moment())
    task.writes = [*writes, *plan.nodes[name].edge_writes]
    return task


def sent(plan: Plan, name: str, index: int, *writes: tuple[str, Any]) -> Task:
    """Return a task that a Send started, with what it wrote."""
    task = Task(plan.nodes[name], moment(), send=Send(name, None), index=index)
    task.writes = [*writes, *plan.nodes[name].edge_writes]
    return task


def everything_in(cells: Cells) -> dict[str, Any]:
    """Return all that cells hold, to compare before and after."""
    held = {slot: getattr(cells, slot) for slot in Cells.__slots__ if slot not in ("plan", "channels")}
    held["channels"] = {key: (channel.peek(), channel.checkpoint()) for key, channel in cells.channels.items()}
    return copy.deepcopy(held)
