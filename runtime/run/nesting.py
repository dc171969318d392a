"""Graphs inside graphs: how a run that a node starts takes its place in the run around it.

A subgraph keeps its checkpoints under a namespace made of the node's name and its task's id; because the id says which
execution it is, a checkpoint found there belongs to this very execution, and the subgraph goes on from it: after a
pause, a failure or a retry. With ``checkpointer=True`` the namespace is made of names alone and its state outlives the
execution; the caller noted in its checkpoints then tells a continuation from a new call.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import anyio

from persistence.contracts.saver import takes_units
from runtime.context.scope import SCOPE
from runtime.errors import (
    ChildCommand,
    ConfigError,
    GraphDrained,
    ParentCommand,
)
from runtime.run.journal import Journal
from runtime.run.keeping import sole_user, tasks_around, used_twice
from runtime.run.metadata import CALL_MARK, CALLER, KEPT_AT
from runtime.run.subruns import subruns_of
from runtime.run.travelling import id_in, names_of
from runtime.types.config import merge_configs, parse_config, passed_down
from runtime.types.constants import CALLERS, NS_SEP

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from persistence.contracts.checkpoint import CheckpointTuple
    from runtime.context.scope import Scope
    from runtime.engine.tasks import Task
    from runtime.run.conductor import Conductor
    from runtime.run.program import Call, Program
    from runtime.run.travelling import Travel
    from runtime.types.config import CallConfig

_PLACE = ("thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map", "__pregel_task_id")


@dataclass(slots=True)
class Family:
    """What a run shares with all that are nested in it."""

    visiting: set[str] = field(default_factory=set)
    """Namespaces in which subgraphs are at work."""
    users: dict[str, list[Task]] = field(default_factory=dict)
    """By namespace of a state that is kept, the tasks and calls around the subgraph that used it last."""
    loose_answers: list[Any] = field(default_factory=list)
    """An answer given while nothing waited: the next question gets it."""
    spare_answers: list[Any] = field(default_factory=list)
    """The answer to the question of a subgraph; if that does not wait for it any more, its next one gets it."""


@dataclass(slots=True)
class Nested:
    """Where a run stands in the run of its parent graph."""

    scope: Scope
    """Of the parent's task that started it."""
    per_thread: bool
    """Whether its state is kept between executions."""
    parents: dict[str, str]
    """Namespace to checkpoint id, for every graph around it."""
    aside: bool
    """Whether the task started it beside its own line of work, so maybe at once with others."""
    unsure: bool = False
    """Whether its number among the task's calls depends on timing: it, or one before it, is aside."""
    shape: str = ""
    """Which graph it runs."""
    turn: int = 0
    """How many calls of the same graph the task made before it."""
    in_line: int = 0
    """How many calls the task's own line of work made before it."""
    line: int | None = None
    """The task of the event loop that started it, if aside."""
    mark: str | None = None
    """What tells it apart from others that were started at once with it."""
    kept_at: str | None = None
    """What its state is found by the next time, if it is kept."""

    def continues(self, saved: CheckpointTuple, travel: Travel | None) -> bool:
        """Tell whether a stored checkpoint belongs to this very execution.

        Raises InvalidUpdateError if it belongs to another task of the same superstep.
        """
        if not self.per_thread:
            return True
        task = self.scope.task
        caller = saved.metadata.get(CALLER)
        if caller == task.id or (travel is not None and caller == id_in(travel.stored(task.ns))):
            return True
        if saved.metadata.get("parents") == self.parents and not hasattr(task, "caller"):
            raise used_twice(f"node {task.name!r}")
        return False

    @property
    def around(self) -> Conductor:
        """The parent's run."""
        return cast("Conductor", self.scope.run)

    @property
    def taken(self) -> set[str]:
        """Namespaces that the subgraphs of the task's attempt use."""
        return subruns_of(self.scope).taken

    @property
    def answers(self) -> dict[str, Any] | None:
        """Answers for questions of this run or below it, by id; None if the parent was given none."""
        below = self.scope.task.below
        return below if below or self.around.answering else None


def enclosing(*configs: Mapping[str, Any] | None) -> Scope | None:
    """Return the scope that a call takes its place in: the running node's, unless a config leads elsewhere.

    A config that names a thread, namespace or checkpoint of its own detaches the call; the config that the node was
    given, passed on, does not.
    """
    scope = SCOPE.get(None)
    if scope is None or scope.run.depth == 0:
        return None
    return None if any(_leads_elsewhere(config, scope) for config in configs) else scope


def _leads_elsewhere(config: Mapping[str, Any] | None, scope: Scope) -> bool:
    configurable = (config or {}).get("configurable") or {}
    if configurable.get("__pregel_task_id") == scope.task.id:
        own = scope.config["configurable"]
        return any(configurable.get(key) != own.get(key) for key in ("thread_id", "checkpoint_ns"))
    return bool(configurable.keys() & {"thread_id", "checkpoint_ns", "checkpoint_id"})


def detached(call: Call) -> Call:
    """Return a call that leads elsewhere without what the node's config says of the node's own place."""
    scope = SCOPE.get(None)
    configurable = call.config.configurable
    if scope is None or configurable.get("__pregel_task_id") != scope.task.id:
        return call
    own = scope.config["configurable"]
    kept = {
        key: value
        for key, value in configurable.items()
        if key == "thread_id" or key not in _PLACE or value != own.get(key)
    }
    return replace(call, config=parse_config({**call.config.raw, "configurable": kept}))


def placed(program: Program, call: Call, scope: Scope, given: Mapping[str, Any] | None) -> tuple[Program, Call]:
    """Return the program and call of a subgraph in its place."""
    run: Any = scope.run
    saver = own = program.saver
    if own is None or own is True:
        saver = run.program.saver
    elif own is False:
        saver = None
    index = scope.children
    scope.children += 1
    base = names_of(scope.task.ns) if own is True else scope.task.ns
    ns = base if index == 0 else f"{base}{NS_SEP}{index}"
    subruns, shape = subruns_of(scope), program.plan.shape
    subruns.beside = subruns.beside or call.aside
    nested = Nested(
        scope,
        own is True,
        {**run.parents, run.ns: run.checkpoint_id},
        call.aside,
        unsure=subruns.beside,
        shape=shape,
        turn=subruns.turn(shape),
        in_line=subruns.in_line,
        line=anyio.get_current_task().id if call.aside else None,
    )
    subruns.in_line += not call.aside
    config = _config(program, run.config, given, ns)
    if saver is not None and config.thread_id is None:
        msg = (
            f"Subgraph {program.plan.name!r} has a checkpointer of its own, so the call must name a thread: "
            "config={'configurable': {'thread_id': '...'}}."
        )
        raise ConfigError(msg)
    if takes_units(saver):
        program.register_types(saver)
    return (
        replace(program, saver=saver, store=run.store if program.store is None else program.store),
        replace(
            call,
            config=config,
            context=run.context if call.context is None else call.context,
            durability=run.call.durability,
            control=run.control if call.control is None else call.control,
            nested=nested,
            travel=run.call.travel,
        ),
    )


def _config(program: Program, around: CallConfig, given: Mapping[str, Any] | None, ns: str) -> CallConfig:
    own = dict(given or {})
    own["configurable"] = {key: value for key, value in (own.get("configurable") or {}).items() if key not in _PLACE}
    inherited: dict[str, Any] = {**around.raw, "configurable": dict(around.raw.get("configurable") or {})}
    for key in ("checkpoint_id", "checkpoint_map"):
        inherited["configurable"].pop(key, None)
    inherited["configurable"]["checkpoint_ns"] = ns
    if "__pregel_task_id" in ((given or {}).get("configurable") or {}):
        for key in ("tags", "callbacks"):  # the node's own config, passed on, has them already
            if key in own:
                inherited[key] = own.pop(key)
    if "callbacks" in inherited:
        inherited["callbacks"] = passed_down(inherited["callbacks"])
    return parse_config(merge_configs(inherited, program.defaults, own))


def journal_of(program: Program, call: Call) -> Journal | None:
    """Return the journal of a run, or None if nothing of it is kept."""
    if program.saver in (None, True, False):
        return None
    nested, config, extra = call.nested, call.config, call.config.stored
    if nested is not None and (nested.per_thread or nested.mark is not None):
        extra = {**extra, CALLER: nested.scope.task.id}
    if nested is not None and nested.mark is not None:
        extra = {**extra, CALL_MARK: nested.mark}
    if nested is not None and nested.kept_at is not None:
        callers = [task.id for task in tasks_around(nested)]
        extra = {**extra, KEPT_AT: nested.kept_at, **({CALLERS: callers} if len(callers) > 1 else {})}
    parents = {} if nested is None else nested.parents
    thread_id, ns, untracked = config.thread_id or "", config.checkpoint_ns, program.plan.untracked
    journal = Journal(program.saver, thread_id, ns, call.durability, extra, parents, untracked=untracked)
    journal.keeps_exit = nested is None or nested.per_thread
    return journal


async def run_nested(run: Conductor, start: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a subgraph for the node that called it: its pauses pause the node, its commands to the parent end it."""
    nested = run.nested
    if nested is None:
        return await start()
    scope = nested.scope
    if run.journal is not None and run.ns in run.family.visiting:
        raise used_twice(f"namespace {run.ns!r}")
    subruns = subruns_of(scope)
    kept = nested.per_thread and run.journal is not None
    run.family.visiting.add(run.ns)
    try:
        with sole_user(run) if kept else nullcontext():
            output = await subruns.run(start)
    except ParentCommand as signal:
        if run.journal is None:
            scope.forget(run)
        raise ChildCommand(replace(signal.command, graph=None)) from None
    finally:
        run.family.visiting.discard(run.ns)
    if run.targeted and nested.around.carried is not None:
        nested.around.carried.changes(scope)
    if run.paused:
        scope.questions.take_over(run.interrupts)
        await subruns.pause(run.interrupts)
    return output


def drained(run: Conductor) -> bool:
    """Tell whether to pause for a drain of the run around this one.

    A subgraph without state runs to its end instead: it would have to start over.

    Raises GraphDrained where the drain was asked for.
    """
    control, nested = run.control, run.nested
    if control is None or not control.drain_requested:
        return False
    if nested is None or control is not nested.around.control:
        raise GraphDrained(control.drain_reason or "shutdown", run.config.thread_id)
    return run.journal is not None


async def save_subgraphs(run: Conductor, task: Task) -> None:
    """Save what a task that does not end well has run to its end, so that this is not done again."""
    for ns, child in list(run.unsaved.items()):
        if child.nested is not None and child.nested.scope.task is task:
            del run.unsaved[ns]
            await child.close()
