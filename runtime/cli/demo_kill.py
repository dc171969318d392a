"""The demo's story in one mode: a child runs the graph and is killed, a second one goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio.streams.text import TextReceiveStream

from persistence.sqlite.listing import look_into
from runtime.cli.demo_child import SURVIVOR, VICTIM
from runtime.cli.demo_graph import NODES
from runtime.cli.failing import CommandError
from runtime.cli.triggers import task_name

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from anyio.abc import Process

PATIENCE: Final = 20.0
"""Seconds that a child may take, on however slow a machine."""

PROMISES: Final = {
    "exit": "One save when the run ends: a kill loses the run.",
    "async": "Saved behind the run, in order: what was acknowledged is kept.",
    "sync": "Saved before the next step begins: every finished step is kept.",
}


@dataclass(slots=True)
class Story:
    """What happened in one mode."""

    mode: str
    thread: str
    acknowledged: list[str] = field(default_factory=list)
    """Nodes whose results the first process knew to be durable when it was killed."""
    finished: list[str] = field(default_factory=list)
    """Nodes that had finished by then."""
    kept: list[str] = field(default_factory=list)
    """Nodes whose results the file holds after the kill."""
    ran_again: list[str] = field(default_factory=list)
    """Nodes that the second process ran although the first had begun them."""
    resumed: bool = False
    """False: nothing was saved, so the second process started over with the input."""


def contradictions(story: Story) -> list[str]:
    """Return where what was seen contradicts what the mode promises."""
    kept, found = set(story.kept), []
    if story.finished != ["change_topic", SURVIVOR]:
        found.append(f"{story.mode}: {story.finished} had finished at the kill, not change_topic and {SURVIVOR}")
    if story.mode == "exit" and kept:
        found.append(f"exit: {_names(story.kept)} kept, although nothing is saved before the end")
    if story.mode == "exit" and story.resumed:
        found.append("exit: the second process resumed a thread that should be empty")
    lost = [node for node in story.acknowledged if node not in kept]
    if lost:
        found.append(f"{story.mode}: {_names(lost)} acknowledged and lost")
    if story.mode == "sync":
        lost = [node for node in ("change_topic", SURVIVOR) if node not in kept]
        if lost:
            found.append(f"sync: {_names(lost)} finished and lost")
    wasted = [node for node in story.ran_again if node in kept]
    if wasted:
        found.append(f"{story.mode}: {_names(wasted)} kept, and run again nevertheless")
    forgotten = [node for node in (*story.finished, VICTIM) if node not in kept and node not in story.ran_again]
    if forgotten:
        found.append(f"{story.mode}: {_names(forgotten)} not kept, and not run again either")
    return found


def tell_story(mode: str, db: str, thread: str, ledger: Path) -> Story:
    """Let the graph run, kill it inside ``joke``, see what was kept, and let a second process go on."""
    where = ["--db", db, "--thread", thread, "--mode", mode, "--ledger", str(ledger)]
    acknowledged = anyio.run(_run_and_kill, where, mode)
    first = _executions(ledger)
    with look_into(db) as listing:
        done = {
            task_name(task.path)
            for checkpoint in listing.checkpoints(thread)
            for task in listing.tasks(thread, checkpoint.checkpoint_ns, checkpoint.checkpoint_id)
            if task.outcome == "done"
        }
    resumed = anyio.run(_go_on, where, mode)
    again = _executions(ledger)[len(first) :]
    return Story(
        mode,
        thread,
        acknowledged=_in_order(acknowledged),
        finished=_in_order({node for node, moment in first if moment == "end"}),
        kept=_in_order(done),
        ran_again=_in_order({node for node, _ in first} & {node for node, _ in again}),
        resumed=resumed,
    )


async def _run_and_kill(where: list[str], mode: str) -> set[str]:
    """Start the first process and kill it inside ``joke``; return the nodes it said to be acknowledged."""
    acknowledged: set[str] = set()
    hanging = False
    async with await _child([*where, "--hang"]) as child:
        async with aclosing(_events(child, f"first run in mode {mode}")) as events:
            async for event in events:
                hanging = hanging or event["event"] == "hanging"
                acknowledged |= set(event.get("tasks", ()))
                # exit acknowledges nothing before the end, so there is nothing more to wait for.
                if hanging and (mode == "exit" or SURVIVOR in acknowledged):
                    child.kill()
                    break
        await child.wait()
    return acknowledged


async def _go_on(where: list[str], mode: str) -> bool:
    """Let a second process finish; return whether it found something to resume."""
    resumed = False
    what = f"second run in mode {mode}"
    async with await _child([*where, "--resume"]) as child, aclosing(_events(child, what)) as events:
        async for event in events:
            resumed = resumed or event["event"] == "resumed"
    return resumed


async def _child(words: list[str]) -> Process:
    root = str(Path(__file__).parents[2])
    inherited = os.environ.get("PYTHONPATH")
    environment = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{inherited}" if inherited else root}
    command = [sys.executable, "-m", "runtime.cli.demo_child", *words]
    return await anyio.open_process(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)


async def _events(child: Process, what: str) -> AsyncGenerator[dict[str, Any], None]:
    """Yield what a child says, until it ends. Raises CommandError if it is silent for too long, or fails."""
    assert child.stdout is not None  # noqa: S101 - a pipe, see _child
    rest = ""
    stream = TextReceiveStream(child.stdout)
    while True:
        try:
            with anyio.fail_after(PATIENCE):
                rest += await stream.receive()
        except anyio.EndOfStream:
            break
        except TimeoutError:
            child.kill()
            msg = f"The demo's {what} was silent for {PATIENCE:g} s and was ended."
            raise CommandError(msg, kind="DemoFailed") from None
        *lines, rest = rest.split("\n")
        for line in lines:
            yield json.loads(line)
    await _require_success(child, what)


async def _require_success(child: Process, what: str) -> None:
    await child.wait()
    if child.returncode:
        assert child.stderr is not None  # noqa: S101 - a pipe, see _child
        said = [chunk async for chunk in TextReceiveStream(child.stderr)]
        msg = f"The demo's {what} ended with exit code {child.returncode}."
        raise CommandError(msg, kind="DemoFailed", hint="".join(said).strip() or None)


def _executions(ledger: Path) -> list[tuple[str, str]]:
    """Return what began and ended so far, as (node, moment)."""
    return [(node, moment) for _, node, moment in map(str.split, ledger.read_text().splitlines())]


def _in_order(nodes: set[str]) -> list[str]:
    return [node for node in NODES if node in nodes]


def _names(nodes: list[str]) -> str:
    return ", ".join(nodes)
