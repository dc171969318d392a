"""Killing one run after the other at random moments."""

from __future__ import annotations

import multiprocessing
import time
from typing import TYPE_CHECKING, Any

from benchmarks.crash.victim import KILLED_BY, live
from benchmarks.peers import LANGGRAPH

if TYPE_CHECKING:
    from random import Random

    from benchmarks.crash.victim import Victim

PATIENCE = 30.0
"""Seconds after which a run that does not come to its moment counts as hung."""
GLANCE = 0.0002
"""Seconds between two looks at the ledger."""
IMPORTED = ("benchmarks.crash.victim", "runtime.graph", "persistence.sqlite", "persistence.memory")
"""What the process that forks the victims has ready: a victim then starts in milliseconds."""
THEIRS = ("langgraph.graph", "langgraph.checkpoint.sqlite.aio")
"""The same for the peer, if the first victim is its."""


def processes(label: str) -> Any:
    """Return how processes are started: forked from a server that has no threads, where the system can."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*IMPORTED, *(THEIRS if label == LANGGRAPH else ())])
    return context


def kill(victim: Victim, random: Random) -> bool:
    """Start a run, kill it after a random superstep and a random part of the next; tell whether it was still running.

    Raises RuntimeError if its process ends by itself, or does not come so far.
    """
    moment = random.randrange(1, KILLED_BY)
    process = processes(victim.label).Process(target=live, args=(victim,), daemon=True)
    begun = time.perf_counter()
    process.start()
    try:
        first = _reached(process, victim, 1, PATIENCE)
        then = _reached(process, victim, moment, PATIENCE)
        time.sleep(random.random() * (then - first) / max(1, moment - 1))
    finally:
        process.kill()
        process.join()
        process.close()
    if time.perf_counter() - begun > PATIENCE:
        message = f"the run to be killed took more than {PATIENCE:g} s"
        raise RuntimeError(message)
    return victim.done() < victim.steps


def _reached(process: multiprocessing.process.BaseProcess, victim: Victim, count: int, patience: float) -> float:
    """Wait until so many nodes are done; return when that was."""
    until = time.perf_counter() + patience
    while victim.done() < count:
        if process.exitcode is not None or time.perf_counter() > until:
            message = f"the run to be killed stopped at {victim.done()} of {count} supersteps: {process.exitcode}"
            raise RuntimeError(message)
        time.sleep(GLANCE)
    return time.perf_counter()
