"""``actorgraph run``: run a graph from the command line, on a thread that is kept in a file."""

from __future__ import annotations

import json
import re
import shlex
import sys
import uuid
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING, Any, Final

import anyio

from runtime.cli.building import built
from runtime.cli.databases import named, require_place, saver_of
from runtime.cli.failing import CommandError, UsageError
from runtime.cli.loading import load_graph, raised_at
from runtime.cli.plain import in_words, visible
from runtime.cli.showing import stdout_reserved
from runtime.errors import KEPT_ANSWER, CheckpointNotFoundError
from runtime.run.opening import LIST_THEM
from runtime.types.command import Command
from runtime.types.constants import INTERRUPT

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from runtime.cli.showing import Screen
    from runtime.graph import CompiledStateGraph
    from runtime.graph.stream import GraphStream
    from runtime.types.interrupts import Interrupt
    from runtime.types.snapshot import StateSnapshot

_BLAMED: Final = re.compile(r"^During task with name '(?P<node>.*)' and id ")


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Run the graph to its end, a pause or an error, and show what came of it."""
    given = _input(args)
    if args.db is None and (args.thread is not None or args.checkpoint is not None or args.resume or args.answer):
        msg = "--thread, --checkpoint, --resume and --answer need --db FILE: without it nothing is kept."
        raise UsageError(msg)
    if args.db is not None:
        require_place(args.db, exists=args.input is None)
    if args.db is not None and args.thread is None:
        if args.input is None:
            msg = "--resume and --answer need --thread ID: which thread is to go on?"
            raise UsageError(msg)
        args.thread = str(uuid.uuid4())
    with ExitStack() as reserved:
        if args.json:
            reserved.enter_context(stdout_reserved())
        # asyncio, because the databases' drivers live there; which loop it is cannot be seen from outside.
        result = anyio.run(_run, args, screen, given, backend="asyncio")
    if args.json:
        screen.document(result)
    return 0


async def _run(args: argparse.Namespace, screen: Screen, given: Any) -> dict[str, Any]:
    saver = None if args.db is None else saver_of(args.db)
    # Before the saver is opened, which creates the file: a mistyped graph must not leave one behind.
    graph = await load_graph(args.target, saver, args.name)
    async with saver if saver is not None else nullcontext():
        config = _config(args)
        if args.answer is not None:
            _require_question(await graph.aget_state(config), args)
        elif not args.resume:
            given = built(graph, given)
        result: dict[str, Any] = {"thread": args.thread}
        options: dict[str, Any] = {"durability": args.durability, "context": args.context}
        try:
            if args.stream is None:
                with screen.progress(f"Running {args.target}"):
                    result["output"] = output = await graph.ainvoke(given, config, **options)
                questions = _questions_in(output)
            else:
                modes = list(dict.fromkeys((args.stream, "updates")))  # updates tell of questions, whatever is shown
                stream = graph.astream(given, config, stream_mode=modes, **options)
                result["chunks"], questions = await _streamed(stream, args.stream, screen)
        except Exception as error:
            raise await _failure(error, graph, args) from error
        state = None if graph.checkpointer is None or args.thread is None else await graph.aget_state(_head(args))
        if state is not None:
            result |= _progress_of(state)
        elif questions:
            result["interrupts"] = _told(questions)
        if not args.json:
            _show(result, state, args, screen)
        return result


def _require_question(state: StateSnapshot, args: argparse.Namespace) -> None:
    """Raise CommandError unless the thread waits for an answer: no other run would see it."""
    if state.interrupts:
        return
    if state.metadata is None:
        msg = f"There is no thread {args.thread!r} in {named(args.db)}, so there is no question to answer."
        raise CommandError(msg, kind="ThreadNotFound", hint=f"List them: actorgraph threads --db {named(args.db)}")
    msg = f"Thread {args.thread!r} has no question that waits for an answer. Nothing was run."
    hint = f"Go on without one: {command_line(args, '--resume')}" if state.next else "It has run to its end."
    raise CommandError(msg, kind="NoPendingQuestion", hint=hint, thread=args.thread, next=list(state.next))


def _questions_in(output: Any) -> Sequence[Interrupt]:
    """Return the questions that a result or an update tells of."""
    return output.get(INTERRUPT, ()) if isinstance(output, dict) else ()


async def _streamed(stream: GraphStream, shown: str, screen: Screen) -> tuple[list[Any], list[Interrupt]]:
    """Show chunks of one mode as they come; for programs, collect them. Return them and the questions put."""
    chunks: list[Any] = []
    questions: list[Interrupt] = []
    async with stream:
        async for mode, chunk in stream:
            if mode == "updates":
                questions += _questions_in(chunk)
            if mode != shown:
                continue
            if screen.as_json:
                chunks.append(chunk)
            elif isinstance(chunk, dict):
                screen.pairs(chunk.items())
            else:
                screen.say(in_words(chunk))
    return chunks, questions


def _input(args: argparse.Namespace) -> Any:
    if args.resume:
        return None
    if args.answer is not None:
        return Command(resume=parse_json(args.answer, "--answer"))
    return parse_json(sys.stdin.read() if args.input == "-" else args.input, "--input")


def parse_json(text: str, option: str) -> Any:
    """Return what JSON text given on the command line holds. Raises UsageError."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        shown = text if len(text) <= 60 else f"{text[:60]}…"  # noqa: PLR2004 - enough to recognise it by
        quoted = "" if len(text) > len(shown) else f"; a text is written {shlex.quote(json.dumps(text))}"
        msg = f"{option} is not JSON ({error}): {shown!r}{quoted}"
        raise UsageError(msg) from error


def _config(args: argparse.Namespace) -> Any:
    config = _head(args)
    if args.checkpoint is not None:
        config["configurable"]["checkpoint_id"] = args.checkpoint
    if args.recursion_limit is not None:
        config["recursion_limit"] = args.recursion_limit
    return config


def _head(args: argparse.Namespace) -> Any:
    return {"configurable": {} if args.thread is None else {"thread_id": args.thread}}


# ---- what came of it -----------------------------------------------------------------------------------------------


def _progress_of(state: StateSnapshot) -> dict[str, Any]:
    metadata = state.metadata or {}
    return {
        "checkpoint_id": state.config["configurable"].get("checkpoint_id"),
        "step": metadata.get("step"),
        "next": list(state.next),
        "interrupts": _told(state.interrupts),
    }


def _told(questions: Sequence[Interrupt]) -> list[dict[str, Any]]:
    return [{"id": question.id, "value": question.value} for question in questions]


def _show(result: dict[str, Any], state: StateSnapshot | None, args: argparse.Namespace, screen: Screen) -> None:
    if "output" in result:
        output = result["output"]
        if isinstance(output, dict):
            screen.pairs((str(key), value) for key, value in output.items() if key != INTERRUPT)
        else:
            screen.say(in_words(output))
    if state is None:
        _show_lost(result.get("interrupts", ()), screen)
        return
    screen.say()
    where = f"thread {visible(args.thread)}, step {result['step']}, checkpoint {result['checkpoint_id']}"
    if state.interrupts:
        _show_questions(result["interrupts"], screen)
        screen.say(f"Waiting for an answer: {where}.", "yellow")
        screen.command("Answer it", command_line(args, "--answer", "JSON"))
    elif state.next:
        screen.say(f"Paused before {', '.join(state.next)}: {where}.", "yellow")
        screen.command("Go on", command_line(args, "--resume"))
    else:
        screen.say(f"Done: {where}.", "green")


def _show_questions(questions: Sequence[dict[str, Any]], screen: Screen) -> None:
    for question in questions:
        screen.say(f"Question {question['id']}: {in_words(question['value'])}", "bold yellow")


def _show_lost(questions: Sequence[dict[str, Any]], screen: Screen) -> None:
    """Tell of questions of a run that is kept nowhere."""
    if not questions:
        return
    _show_questions(questions, screen)
    screen.say("The run stopped there. Nothing keeps it, so it cannot be answered: run it again with --db FILE.", "red")


async def _failure(error: Exception, graph: CompiledStateGraph, args: argparse.Namespace) -> CommandError:
    """Say which node failed, what the thread holds now and how to go on."""
    kind = type(error).__name__
    notes = list(getattr(error, "__notes__", ()))
    nodes = [match["node"] for note in notes if (match := _BLAMED.match(note))]
    facts: dict[str, Any] = {"thread": args.thread}
    hints: list[str] = []
    if nodes:
        message = f"Node {nodes[0]!r} failed: {kind}: {error}"
        facts |= {"node": nodes[0], "at": raised_at(error)}
        hints.append(facts["at"] or "")
    else:
        message = str(error)
        if isinstance(error, CheckpointNotFoundError):
            listed = shlex.join(["actorgraph", "history", args.thread, "--db", named(args.db)])
            message = message.replace(LIST_THEM, f"List the known ones: {listed}")
    if nodes and args.context is None and graph.program.context_schema is not None:
        hints.append("The graph has a context_schema, and this run had no context: give one with --context JSON.")
    hints += [note for note in notes if not _BLAMED.match(note) and not note.startswith(KEPT_ANSWER)]
    state = None if graph.checkpointer is None or args.thread is None else await _state_if_readable(graph, args)
    if state is not None and state.metadata is not None and nodes:
        facts |= _progress_of(state) | {"resume": command_line(args, "--resume")}
        hints += [
            f"Thread {args.thread!r} is saved up to step {facts['step']}; left to run: {', '.join(state.next)}.",
            f"Once the cause is gone, go on from there: {facts['resume']}",
        ]
        if any(note.startswith(KEPT_ANSWER) for note in notes):
            facts["ask_again"] = command_line(args, "--resume", "--checkpoint", facts["checkpoint_id"])
            hints.append(f"{KEPT_ANSWER} To be asked again: {facts['ask_again']}")
    return CommandError(message, kind=kind, hint="\n".join(hint for hint in hints if hint) or None, **facts)


async def _state_if_readable(graph: CompiledStateGraph, args: argparse.Namespace) -> StateSnapshot | None:
    try:
        return await graph.aget_state(_head(args))
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
