"""What is told of a run that ended early, and the command that goes on with its thread."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Any, Final

from persistence.errors import PersistenceError
from runtime.cli.databases import named
from runtime.cli.failing import CommandError
from runtime.cli.loading import raised_at
from runtime.cli.stopping import InterruptError
from runtime.errors import KEPT_ANSWER, CheckpointNotFoundError, GraphRecursionError, UnknownInterruptError
from runtime.run.leasing import leases
from runtime.run.opening import LIST_THEM
from runtime.run.views import NO_CONTEXT
from runtime.types.constants import START

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from runtime.cli.stopping import StoppedError
    from runtime.graph import CompiledStateGraph
    from runtime.types.interrupts import Interrupt
    from runtime.types.snapshot import StateSnapshot

_OPTIONS: Final = (
    ("resume with None", "go on with --resume"),
    ("Resume it with None as input", "Go on with --resume"),
    ("config['recursion_limit']", "--recursion-limit"),
    ("Command(resume={id: answer})", """--answer '{"ID": ANSWER}'"""),
)
"""What messages advise programs to do, and how it is said on the command line."""

_BLAMED: Final = re.compile(r"^During task with name '(?P<node>.*)' and id ")


def head(args: argparse.Namespace) -> Any:
    """Return the config that addresses a command's thread; none without one."""
    return {"configurable": {} if args.thread is None else {"thread_id": args.thread}}


def progress_of(state: StateSnapshot) -> dict[str, Any]:
    """Return how far a thread is, for programs."""
    metadata = state.metadata or {}
    return {
        "checkpoint_id": state.config["configurable"].get("checkpoint_id"),
        "step": metadata.get("step"),
        "next": list(state.next),
        "interrupts": told(state.interrupts),
    }


def told(questions: Sequence[Interrupt]) -> list[dict[str, Any]]:
    """Return questions for programs."""
    return [{"id": question.id, "value": question.value} for question in questions]


def form_of_answers(questions: Sequence[Interrupt]) -> str:
    """Return what ``--answer`` takes: the answer, or if there are several questions one by its id, or more."""
    return "JSON" if len(questions) == 1 else json.dumps({question.id: "..." for question in questions})


def _in_options(message: str) -> str:
    """Return an error's message with the command's options in place of what a program would write."""
    for code, option in _OPTIONS:
        message = message.replace(code, option)
    return message


async def failure(error: Exception, graph: CompiledStateGraph, args: argparse.Namespace) -> CommandError:
    """Say which node failed, what the thread holds now and how to go on."""
    kind = type(error).__name__
    notes = list(getattr(error, "__notes__", ()))
    nodes = [match["node"] for note in notes if (match := _BLAMED.match(note))]
    facts: dict[str, Any] = {"thread": args.thread}
    hints: list[str] = []
    if nodes:
        who = "The start of the graph" if nodes[0] == START else f"Node {nodes[0]!r}"
        message = f"{who} failed: {kind}: {error}"
        facts |= {"node": nodes[0], "at": raised_at(error)}
        hints.append(facts["at"] or "")
    else:
        message = _in_options(str(error))
        if isinstance(error, CheckpointNotFoundError):
            listed = shlex.join(["actorgraph", "history", args.thread, "--db", named(args.db)])
            message = message.replace(LIST_THEM, f"List the known ones: {listed}")
    if NO_CONTEXT in notes:
        hints.append(f"{NO_CONTEXT.partition(':')[0]}: give one with --context JSON.")
    told_otherwise = (KEPT_ANSWER, NO_CONTEXT)
    hints += [note for note in notes if not _BLAMED.match(note) and not note.startswith(told_otherwise)]
    state = None if graph.checkpointer is None or args.thread is None else await _state_if_readable(graph, args)
    if state is not None and state.metadata is not None and nodes:
        facts |= progress_of(state) | {"resume": command_line(args, "--resume")}
        hints += [
            _saved(args, state),
            f"Once the cause is gone, go on from there: {facts['resume']}",
        ]
        if any(note.startswith(KEPT_ANSWER) for note in notes):
            facts["ask_again"] = command_line(args, "--resume", "--checkpoint", facts["checkpoint_id"])
            hints.append(f"{KEPT_ANSWER} To be asked again: {facts['ask_again']}")
    elif state is not None and isinstance(error, GraphRecursionError):
        facts |= progress_of(state) | {"resume": command_line(args, "--resume")}
        hints.append(_go_on(args))
    elif state is not None and isinstance(error, UnknownInterruptError) and state.interrupts:
        facts["interrupts"] = told(state.interrupts)
        hints.append(f"Answer it: {command_line(args, '--answer', form_of_answers(state.interrupts))}")
    return CommandError(message, kind=kind, hint="\n".join(hint for hint in hints if hint) or None, **facts)


async def stopped(kind: type[StoppedError], graph: CompiledStateGraph, args: argparse.Namespace) -> StoppedError:
    """Say how far a run is that was stopped from outside, and how to go on with it."""
    if graph.checkpointer is None or args.thread is None:
        msg = f"{kind.by} stopped the run. Nothing keeps it, so it begins anew: run it with --db FILE to go on with it."
        return kind(msg, thread=args.thread)
    kept = f"{kind.by} stopped the run; what had finished is saved."
    state = await _state_if_readable(graph, args)
    if state is None:
        return kind(kept, _go_on(args), thread=args.thread)
    if state.metadata is None:
        return kind(f"{kind.by} stopped the run before anything of it was saved: run it again.", thread=args.thread)
    facts: dict[str, Any] = {"thread": args.thread, **progress_of(state)}
    hints = [_saved(args, state)]
    if state.interrupts:
        hints.append(f"Answer it: {command_line(args, '--answer', form_of_answers(state.interrupts))}")
    elif state.next:
        facts["resume"] = command_line(args, "--resume")
        hints.append(_go_on(args))
    return kind(kept, "\n".join(hints), **facts)


async def not_begun(kind: type[StoppedError], graph: CompiledStateGraph, args: argparse.Namespace) -> StoppedError:
    """Say that a run was stopped from outside before it had come by its thread."""
    holder = await _holder(graph, args)
    waited = "." if holder is None else f": it waited for thread {args.thread!r}, held by a run of {holder}."
    msg = f"{kind.by} stopped the run before it had begun{waited}"
    return kind(msg, "Nothing of it is saved: run it again.", thread=args.thread)


async def _holder(graph: CompiledStateGraph, args: argparse.Namespace) -> str | None:
    """Return in words which other process holds a command's thread; None if none does, or where that is not known."""
    saver: Any = graph.checkpointer
    if not leases(saver):
        return None
    try:
        row = await saver.alease(args.thread)
    except PersistenceError:  # the run's own end is what the caller must see
        return None
    if row is None or not row.held or row.owner == saver.lease_owner or saver.is_dead(row):
        return None
    return str(saver.owner_in_words(row))


def stopped_at_once(args: argparse.Namespace) -> StoppedError:
    """Say how to go on with a run that a second Ctrl-C left where it was, or that may not have begun."""
    hint = None if args.thread is None else f"If thread {args.thread!r} was begun: {command_line(args, '--resume')}"
    return InterruptError("Ctrl-C stopped the command; what was saved by then is kept.", hint, thread=args.thread)


def _saved(args: argparse.Namespace, state: StateSnapshot) -> str:
    step = progress_of(state)["step"]
    return f"Thread {args.thread!r} is saved up to step {step}; left to run: {', '.join(state.next) or 'nothing'}."


def _go_on(args: argparse.Namespace) -> str:
    return f"Go on with thread {args.thread!r}: {command_line(args, '--resume')}"


async def _state_if_readable(graph: CompiledStateGraph, args: argparse.Namespace) -> StateSnapshot | None:
    try:
        return await graph.aget_state(head(args))
    except Exception:  # noqa: BLE001 - the run's own error is what the caller must see
        return None


def command_line(args: argparse.Namespace, *how: str) -> str:
    """Return the command that goes on with the thread, ready to be pasted into a shell."""
    words = ["actorgraph", "run", args.target, *how, "--thread", args.thread, "--db", named(args.db)]
    if args.name is not None:
        words += ["--name", args.name]
    if args.durability != "async":
        words += ["--durability", args.durability]
    if args.context is not None:
        words += ["--context", json.dumps(args.context)]
    if args.recursion_limit is not None:
        words += ["--recursion-limit", str(args.recursion_limit)]
    return shlex.join(words)
