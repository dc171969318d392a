"""Going back in time through graphs inside graphs: where each of them starts from.

A graph that goes back gives its tasks new ids, so their subgraphs get new namespaces. A journey remembers which old
namespace each new one stands for, and so finds what a subgraph had done by the point that was asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from runtime.engine.tasks import handler_of
from runtime.engine.vetting import vet
from runtime.errors import CheckpointNotFoundError
from runtime.types.command import Command
from runtime.types.config import parse_config
from runtime.types.constants import NS_END, NS_SEP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.engine.tasks import Moment, Task
    from runtime.run.calls import CallTask
    from runtime.run.program import Call, Program
    from runtime.run.retaining import Kept


@dataclass(slots=True)
class Travel:
    """One journey, shared by the runs that take part in it."""

    bound: str
    """Newest checkpoint that counts: what subgraphs did later has not happened."""
    targets: dict[str, str] = field(default_factory=dict)
    """Stored namespace to the checkpoint that its graph starts from: the addressed one, and those it was reached by."""
    callers: dict[str, str] = field(default_factory=dict)
    """By target, the task or call that ran the graph there, where its state is kept and so several may have run it."""
    answering: bool = False
    """Whether questions of the past are answered, maybe anew; otherwise the targets are replayed."""
    given: frozenset[str] = frozenset()
    """Ids of the questions that are answered."""
    moved: dict[str, str] = field(default_factory=dict)
    """Namespace of a task to the one that it had in the past."""
    moments: dict[str, Moment] = field(default_factory=dict)
    """By checkpoint that a superstep starts from now, where it stood in the past."""
    visited: set[str] = field(default_factory=set)
    kept: dict[int, list[Kept]] = field(default_factory=dict)
    """By saver, what subgraphs have kept since the point that the journey goes back to (see run/retaining)."""

    @property
    def start(self) -> str:
        """The point that the root goes back to, or where it does not the outermost subgraph that does."""
        return min((self.bound, *self.targets.values()))

    def first_visit(self, ns: str) -> bool:
        """Note a visit; tell whether it is the first. A later one goes on from what the first has left."""
        if ns in self.visited:
            return False
        self.visited.add(ns)
        return True

    def stored(self, ns: str) -> str:
        """Return the namespace under which the past of a namespace is stored."""
        new = max((each for each in self.moved if ns == each or ns.startswith(each + NS_SEP)), key=len, default="")
        return self.moved[new] + ns[len(new) :] if new else ns

    def leads_into(self, task_ns: str) -> bool:
        """Tell whether a target lies inside a task; the namespace is the one of the past."""
        if any(target == task_ns or target.startswith(task_ns + NS_SEP) for target in self.targets):
            return True
        names, own = names_of(task_ns), id_in(task_ns)
        kept = [target for target in self.targets if target == names or target.startswith(names + NS_SEP)]
        direct = [target for target in kept if target == names or target[len(names) + 1 :].isdigit()]
        return any(self.callers.get(target, own) == own for target in direct) if direct else bool(kept)

    def follow(self, old: Sequence[Task], new: Sequence[Task]) -> None:
        """Note what the tasks of a superstep are called now."""
        for task in old[:1]:
            self.moments.update((each.moment.checkpoint_id, task.moment) for each in new[:1])
        before = {task.path: task for task in old}
        for task in new:
            if (was := before.get(task.path)) is not None:
                self.moved[task.ns] = was.ns
                if task.node.handler is not None:
                    self.moved[handler_of(task).ns] = handler_of(was).ns

    def follow_call(self, call: CallTask) -> None:
        """Note what a call of a @task function was called in the past."""
        past = self.moments.get(call.moment.checkpoint_id)
        if past is not None:
            self.moved[call.ns] = call.ns_at(past, self.stored(call.caller.ns))


def id_in(ns: str) -> str:
    """Return the id of the task whose namespace this is."""
    return ns.rpartition(NS_SEP)[2].partition(NS_END)[2]


def names_of(ns: str) -> str:
    """Return a namespace without task ids."""
    return NS_SEP.join(part.partition(NS_END)[0] for part in ns.split(NS_SEP))


async def rooted(program: Program, call: Call) -> Call:
    """Return a call whose config leads into a subgraph as one of the root that travels there.

    The root goes back to the checkpoint at which the subgraph ran; on its way down every subgraph starts from the
    point that the addressed one was reached through.
    """
    config = call.config
    if not config.checkpoint_ns or program.saver is None:
        return call
    configurable = {**config.configurable, "checkpoint_ns": ""}
    parents: dict[str, str] = dict(configurable.pop("checkpoint_map", None) or {})
    configurable.pop("checkpoint_id", None)
    travel = None
    if config.checkpoint_id is not None:
        if "" not in parents:
            place = {key: getattr(config, key) for key in ("thread_id", "checkpoint_ns", "checkpoint_id")}
            found = await program.saver.aget_tuple({"configurable": place})
            parents = dict((vet(found).metadata.get("parents") if found is not None else None) or {})
        if "" not in parents:
            msg = (
                f"There is no checkpoint {config.checkpoint_id!r} in namespace {config.checkpoint_ns!r} of thread "
                f"{config.thread_id!r} that says which checkpoint of the parent graph it belongs to."
            )
            raise CheckpointNotFoundError(msg)
        parents[config.checkpoint_ns] = config.checkpoint_id
        configurable["checkpoint_id"] = parents.pop("")
        answering = isinstance(call.input, Command) and call.input.resume is not None
        travel = Travel(config.checkpoint_id, parents, answering=answering)
    return replace(call, config=parse_config({**config.raw, "configurable": configurable}), travel=travel)
