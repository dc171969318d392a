"""Graphs inside graphs: how a run that a node starts takes its place in the run around it.

A subgraph keeps its checkpoints under a namespace made of the node's name and its task's id; because the id says which
execution it is, a checkpoint found there belongs to this very execution, and the subgraph goes on from it: after a
pause, a failure or a retry. With ``checkpointer=True`` the namespace is made of names alone and its state outlives the
execution; the parent checkpoint noted in it then tells a continuation from a new call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from runtime.context.scope import SCOPE
from runtime.errors import (
    CheckpointNotFoundError,
    ChildCommand,
    ErrorCode,
    GraphInterrupt,
    InvalidUpdateError,
    ParentCommand,
    create_error_message,
)
from runtime.types.config import merge_configs, parse_config
from runtime.types.constants import NS_END, NS_SEP

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from persistence.contracts.checkpoint import CheckpointTuple
    from runtime.context.scope import Scope
    from runtime.run.conductor import Conductor
    from runtime.run.program import Call, Program
    from runtime.types.config import CallConfig


@dataclass(slots=True)
class Nested:
    """Where a run stands in the run of its parent graph."""

    scope: Scope
    """Of the parent's task that started it."""
    per_thread: bool
    """Whether its state is kept between executions."""
    parents: dict[str, str]
    """Namespace to checkpoint id, for every graph around it."""

    def continues(self, saved: CheckpointTuple) -> bool:
        """Tell whether a stored checkpoint belongs to this very execution."""
        if not self.per_thread:
            return True
        around = saved.metadata.get("parents") or {}
        return bool(around) and all(self.parents.get(ns) == checkpoint_id for ns, checkpoint_id in around.items())

    @property
    def answers(self) -> dict[str, Any] | None:
        """Answers for questions of this run or below it, by id; None if the parent was given none."""
        run = self.scope.run
        return self.scope.task.below if getattr(run, "answering", False) else None


@dataclass(slots=True)
class Travel:
    """Going back in time: where subgraphs start at their first visit."""

    bound: str
    """The parent's checkpoint: subgraphs with a state of their own start from their newest one before it."""
    targets: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Path of names to (namespace, checkpoint id) that was asked for inside a subgraph."""
    visited: set[str] = field(default_factory=set)

    def first_visit(self, ns: str) -> bool:
        """Note a visit; tell whether it is the first."""
        path = names_of(ns)
        if path in self.visited:
            return False
        self.visited.add(path)
        return True

    def target(self, ns: str) -> tuple[str, str] | None:
        """Return the checkpoint asked for inside a namespace."""
        return self.targets.get(names_of(ns))


def names_of(ns: str) -> str:
    """Return a namespace without task ids."""
    return NS_SEP.join(part.partition(NS_END)[0] for part in ns.split(NS_SEP))


def enclosing(config: Mapping[str, Any] | None) -> Scope | None:
    """Return the scope that a call takes its place in: the running node's, unless the config leads elsewhere.

    A config that names a thread, namespace or checkpoint of its own detaches the call; the config that the node was
    given, passed on, does not.
    """
    scope = SCOPE.get(None)
    if scope is None:
        return None
    configurable = (config or {}).get("configurable") or {}
    if configurable.get("__pregel_task_id") == scope.task.id:
        return scope
    return None if configurable.keys() & {"thread_id", "checkpoint_ns", "checkpoint_id"} else scope


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
    nested = Nested(scope, own is True, {**run.parents, run.ns: run.checkpoint_id})
    config = _config(program, run.config, given, ns)
    return (
        replace(program, saver=saver, store=run.store if program.store is None else program.store),
        replace(
            call,
            config=config,
            context=run.context if call.context is None else call.context,
            durability=run.call.durability,
            control=run.control if call.control is None else call.control,
            hub=call.hub if call.hub is not None else run.child_hub,
            nested=nested,
            travel=run.call.travel,
        ),
    )


def _config(program: Program, around: CallConfig, given: Mapping[str, Any] | None, ns: str) -> CallConfig:
    own = dict(given or {})
    own["configurable"] = {
        key: value
        for key, value in (own.get("configurable") or {}).items()
        if key not in ("thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map", "__pregel_task_id")
    }
    inherited: dict[str, Any] = {**around.raw, "configurable": dict(around.raw.get("configurable") or {})}
    for key in ("checkpoint_id", "checkpoint_map"):
        inherited["configurable"].pop(key, None)
    inherited["configurable"]["checkpoint_ns"] = ns
    return parse_config(merge_configs(program.defaults, inherited, own))


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
            parents = dict((found.metadata.get("parents") if found is not None else None) or {})
        if "" not in parents:
            msg = (
                f"There is no checkpoint {config.checkpoint_id!r} in namespace {config.checkpoint_ns!r} of thread "
                f"{config.thread_id!r} that says which checkpoint of the parent graph it belongs to."
            )
            raise CheckpointNotFoundError(msg)
        parents[config.checkpoint_ns] = config.checkpoint_id
        root = parents.pop("")
        configurable["checkpoint_id"] = root
        travel = Travel(root, {names_of(ns): (ns, checkpoint_id) for ns, checkpoint_id in parents.items()})
    return replace(call, config=parse_config({**config.raw, "configurable": configurable}), travel=travel)


async def run_nested(run: Conductor, start: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a subgraph for the node that called it: its pauses pause the node, its commands to the parent end it."""
    nested = run.nested
    if nested is None:
        return await start()
    visiting: set[str] = getattr(nested.scope.run, "visiting", set())
    if run.ns in visiting:
        raise InvalidUpdateError(
            create_error_message(
                message=f"Subgraph {run.plan.name!r} keeps its state under namespace {run.ns!r} and is already running "
                "there in this superstep. Run it from nodes of different names, or compile it without "
                "checkpointer=True.",
                error_code=ErrorCode.MULTIPLE_SUBGRAPHS,
            )
        )
    visiting.add(run.ns)
    try:
        output = await start()
    except ParentCommand as signal:
        raise ChildCommand(replace(signal.command, graph=None)) from None
    finally:
        visiting.discard(run.ns)
    if run.interrupts:
        known = {question.id for question in nested.scope.asked}
        nested.scope.asked.extend(question for question in run.interrupts if question.id not in known)
        raise GraphInterrupt(run.interrupts)
    return output
