"""Which tasks are due: those whose triggers hold something new, and every Send."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.channels import MISSING
from runtime.engine.cells import orphaned
from runtime.engine.tasks import Moment, Task
from runtime.types.constants import TASKS

if TYPE_CHECKING:
    from runtime.engine.cells import Cells
    from runtime.engine.plan import NodePlan


def due(cells: Cells, moment: Moment) -> list[Task]:
    """Return the tasks of a superstep: Sends by index, then nodes by name.

    Costs what the last superstep touched: only subscribers of updated channels are looked at, unless what was updated
    is not known (a checkpoint of an older format).
    """
    tasks = [Task(node, moment) for node in due_nodes(cells)]
    if TASKS in cells.channels:
        sends = cells.peek(TASKS)
        if sends is not MISSING:
            tasks = [*_sent(cells, moment), *tasks]
    return tasks


def foreseen(cells: Cells, moment: Moment) -> list[Task] | None:
    """Return what is due next, before the superstep that leads there is saved; None if that cannot be told.

    What stands in the way is raised when it is asked for in earnest, after the superstep is saved.
    """
    try:
        return due(cells, moment)
    except Exception:  # noqa: BLE001 - see above
        return None


def due_nodes(cells: Cells) -> list[NodePlan]:
    """Return the nodes that the channels trigger, by name."""
    plan = cells.plan
    if cells.updated is None:
        names = set(plan.nodes)
    else:
        subscribers = plan.subscribers
        names = set()
        for key in cells.updated:
            if key in subscribers:
                names.update(subscribers[key])
    if not names:
        return []
    if len(names) == 1:
        node = plan.nodes[names.pop()]
        return [node] if _triggered(cells, node) else []
    return [plan.nodes[name] for name in sorted(names) if _triggered(cells, plan.nodes[name])]


def _triggered(cells: Cells, node: NodePlan) -> bool:
    seen = cells.seen.get(node.name)
    for trigger in node.triggers:
        if cells.peek(trigger) is not MISSING and (
            seen is None or trigger not in seen or seen[trigger] != cells.versions.get(trigger)
        ):
            return True
    return False


def _sent(cells: Cells, moment: Moment) -> list[Task]:
    plan = cells.plan
    tasks = []
    for index, send in enumerate(cells.peek(TASKS)):
        node = plan.nodes.get(send.node) or plan.nodes.get(plan.aliases.get(send.node, ""))
        if node is None:
            raise orphaned(send.node, plan)
        tasks.append(Task(node, moment, send=send, index=index))
    return tasks
