"""``actorgraph run``: run a graph from the command line, on a thread that is kept in a file."""

from __future__ import annotations

import json
import shlex
import sys
import uuid
from contextlib import ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

import anyio

from runtime.cli.building import built
from runtime.cli.databases import named, require_place, saver_of
from runtime.cli.failing import CommandError, UsageError
from runtime.cli.loading import load_graph
from runtime.cli.plain import in_words, visible
from runtime.cli.resuming import (
    command_line,
    failure,
    form_of_answers,
    head,
    not_begun,
    progress_of,
    stopped,
    stopped_at_once,
    told,
)
from runtime.cli.showing import stdout_reserved
from runtime.cli.stopping import InterruptError, TerminationError, drained_by_sigterm
from runtime.errors import GraphDrained
from runtime.runtime import RunControl
from runtime.types.command import Command
from runtime.types.constants import INTERRUPT

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from runtime.cli.showing import Screen
    from runtime.graph import CompiledStateGraph
    from runtime.graph.stream import GraphStream
    from runtime.types.interrupts import Interrupt
    from runtime.types.snapshot import StateSnapshot


_BEGINNINGS: Final = ("{", "[", '"')
"""What only JSON begins with, and a text that somebody forgot to quote does not."""
_AROUND: Final = 20
"""Characters shown before and after a place."""


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
        try:
            # asyncio, because the databases' drivers live there; which loop it is cannot be seen from outside.
            result = anyio.run(_run, args, screen, given, backend="asyncio")
        except KeyboardInterrupt as error:
            raise stopped_at_once(args) from error
    if args.json:
        screen.document(result)
    return 0


async def _run(args: argparse.Namespace, screen: Screen, given: Any) -> dict[str, Any]:
    saver = None if args.db is None else saver_of(args.db)
    # Before the saver is opened, which creates the file: a mistyped graph must not leave one behind.
    graph = await load_graph(args.target, saver, args.name)
    _require_no_saver(graph, args)
    control, turn = RunControl(), _Turn(graph)
    with drained_by_sigterm(control, waits=turn.waits, leave=turn.leave, quiet=args.json):
        async with saver if saver is not None else nullcontext():
            with turn.scope:
                return await _ran(graph, args, screen, given, control, turn)
            raise await (stopped if turn.begun else not_begun)(TerminationError, graph, args)


def _require_no_saver(graph: CompiledStateGraph, args: argparse.Namespace) -> None:
    """Raise UsageError if the graph would use a saver of its own."""
    if args.db is None and graph.checkpointer not in (None, False, True):
        msg = (
            f"{args.target} is compiled with a saver of its own, which this command cannot open: give --db FILE, which "
            "keeps the thread there instead, and --thread ID if it is to have a name."
        )
        raise UsageError(msg)


class _Turn:
    """The time until a run has come by its thread: nothing of it is stored, so it can be left at once."""

    def __init__(self, graph: CompiledStateGraph) -> None:
        self.scope = anyio.CancelScope()
        self._runs = graph.program.active
        self._left: tuple[Any, ...] = ()
        self._over = False

    def waits(self) -> bool:
        """Tell whether it lasts."""
        return not self._over and all(run.waits for run in tuple(self._runs))

    def leave(self) -> None:
        """Cancel the run."""
        self._left = tuple(self._runs)
        self.scope.cancel()

    @property
    def begun(self) -> bool:
        """Whether a run that was to leave had come by its thread before it could."""
        return any(not run.waits for run in self._left)

    @contextmanager
    def running(self) -> Iterator[None]:
        """End it with the run, at the latest."""
        try:
            yield
        finally:
            self._over = True


async def _ran(
    graph: CompiledStateGraph, args: argparse.Namespace, screen: Screen, given: Any, control: RunControl, turn: _Turn
) -> dict[str, Any]:
    config = _config(args)
    if args.answer is not None:
        _require_question(await graph.aget_state(config), args)
    elif not args.resume:
        given = built(graph, given)
    if graph.program.interrupt_before == graph.program.interrupt_after == frozenset():
        graph.program.lost_pause = True  # questions that nothing keeps are told of here, with --db in place of code
    options: dict[str, Any] = {
        "config": config,
        "durability": args.durability,
        "context": args.context,
        "control": control,
    }
    try:
        with turn.running():
            came, questions = await _called(graph, given, args, screen, options)
    except anyio.get_cancelled_exc_class() as cancelled:
        if turn.scope.cancel_called:
            raise
        # By asyncio, for a Ctrl-C: once, so what follows can wait.
        raise await stopped(InterruptError, graph, args) from cancelled
    except GraphDrained as error:
        if not control.drain_requested:  # but by a graph that a node called
            raise await failure(error, graph, args) from error
        raise await stopped(TerminationError, graph, args) from error
    except Exception as error:
        raise await failure(error, graph, args) from error
    state = None if graph.checkpointer is None or args.thread is None else await graph.aget_state(head(args))
    result: dict[str, Any] = {"thread": args.thread, **came}
    if state is not None:
        result |= progress_of(state)
    elif questions:
        result["interrupts"] = told(questions)
    if not args.json:
        _show(result, state, args, screen)
    return result


async def _called(
    graph: CompiledStateGraph, given: Any, args: argparse.Namespace, screen: Screen, options: dict[str, Any]
) -> tuple[dict[str, Any], Sequence[Interrupt]]:
    """Run the graph. Return what came of it, for programs, and the questions put."""
    if args.stream is None:
        with screen.progress(f"Running {args.target}"):
            output = await graph.ainvoke(given, **options)
        return {"output": output}, _questions_in(output)
    modes = list(dict.fromkeys((args.stream, "updates")))  # updates tell of questions, whatever is shown
    chunks, questions = await _streamed(graph.astream(given, stream_mode=modes, **options), args.stream, screen)
    return {"chunks": chunks}, questions


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
        if isinstance(error, json.JSONDecodeError) and text.lstrip()[:1] in _BEGINNINGS:
            raise _broken(text, option, error) from error
        shown = text if len(text) <= 60 else f"{text[:60]}…"  # noqa: PLR2004 - enough to recognise it by
        quoted = "" if len(text) > len(shown) else f"; a text is written {shlex.quote(json.dumps(text))}"
        msg = f"{option} is not JSON ({error}): {shown!r}{quoted}"
        raise UsageError(msg) from error


def _broken(text: str, option: str, error: json.JSONDecodeError) -> UsageError:
    """Say where text that begins as JSON stops being it."""
    before, after = text[: error.pos][-_AROUND:], text[error.pos :][:_AROUND]
    behind = f"behind {before!r}" if before.strip() else "at its beginning"
    found = f"there is {after!r}" if after.strip() else "it ends"
    msg = f"{option} is broken JSON: line {error.lineno}, column {error.colno}, {behind}, {found}. {error.msg}."
    return UsageError(msg)


def _config(args: argparse.Namespace) -> Any:
    config = head(args)
    if args.checkpoint is not None:
        config["configurable"]["checkpoint_id"] = args.checkpoint
    if args.recursion_limit is not None:
        config["recursion_limit"] = args.recursion_limit
    return config


# ---- what came of it -----------------------------------------------------------------------------------------------


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
        screen.command("Answer it", command_line(args, "--answer", form_of_answers(state.interrupts)))
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
