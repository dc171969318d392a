"""Ctrl-C in a blocking call: the run ends and is saved, then the program hears of it."""

from __future__ import annotations

import select
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

PROGRAM = """
    import signal, sys, threading
    import anyio
    from persistence.memory import InMemorySaver
    from tests.stories.graphs import CONFIG, chain

    ended = threading.Event()

    async def node(state):
        print("working", flush=True)
        try:
            await anyio.sleep(30)
        finally:
            ended.set()

    graph = chain("first", ("node", node)).compile(InMemorySaver())
    try:
        graph.invoke({}, CONFIG)
    except KeyboardInterrupt:
        print("interrupted", ended.wait(5), graph.get_state(CONFIG).next)
"""


@pytest.mark.slow
def test_an_interrupt_from_the_keyboard_cancels_the_run() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "working\n"
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=15)
    finally:
        child.kill()
    assert out == "interrupted True ('node',)\n"
    assert child.returncode == 0


SYNC_PROGRAM = """
    import time
    from persistence.memory import InMemorySaver
    from tests.stories.graphs import CONFIG, chain

    def node(state):
        print("working", flush=True)
        time.sleep(0.5)
        print("done", flush=True)

    graph = chain(("node", node), "next").compile(InMemorySaver())
    try:
        graph.invoke({}, CONFIG)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.slow
def test_after_an_interrupt_a_program_ends_quietly_once_its_sync_node_has_ended() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SYNC_PROGRAM)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "working\n"
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=15)
    finally:
        child.kill()
    assert (out, err, child.returncode) == ("done\ninterrupted\n", "", 0)


IMPATIENT = """
    import time
    from persistence.memory import InMemorySaver
    from tests.stories.graphs import CONFIG, chain

    def node(state):
        print("working", flush=True)
        time.sleep(3)
        print("done", flush=True)

    graph = chain(("node", node), "next").compile(InMemorySaver())
    try:
        graph.invoke({}, CONFIG)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


CALL = "graph.invoke({}, CONFIG)"
READ = """for chunk in graph.stream({}, CONFIG):
            pass"""
READ_IN_WITH = """with graph.stream({}, CONFIG) as stream:
            next(stream)"""


@pytest.mark.slow
@pytest.mark.parametrize("call", [CALL, READ, READ_IN_WITH], ids=["invoke", "stream", "with"])
def test_a_second_interrupt_does_not_wait_for_a_sync_node(call: str) -> None:
    program = textwrap.dedent(IMPATIENT.replace(CALL, call))
    child = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    told: list[str] = []
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "working\n"
        while not told:  # the first may still be on its way
            child.send_signal(signal.SIGINT)
            if select.select([child.stdout], [], [], 0.1)[0]:
                told.append(child.stdout.readline())
    finally:
        child.kill()
        child.communicate()
    assert told == ["interrupted\n"]


EXIT = """
    import sys, time
    import anyio
    from persistence.sqlite import SqliteSaver
    from tests.stories.graphs import CONFIG, chain

    def node(state):
        print("working", flush=True)
        time.sleep(0.5)

    async def after(state):
        await anyio.sleep(0)
        return {"log": ["too far"]}

    with SqliteSaver(sys.argv[1]) as saver:
        graph = chain("first", ("node", node), ("after", after)).compile(saver)
        try:
            graph.invoke({}, CONFIG, durability=sys.argv[2])
        except KeyboardInterrupt:
            found = graph.get_state(CONFIG)
            print(found.values, found.next)
"""


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["exit", "async", "sync"])
def test_an_interrupted_run_is_saved_as_far_as_it_came(tmp_path: Path, durability: str) -> None:
    """The node in its thread ends first, and has finished."""
    words = [sys.executable, "-c", textwrap.dedent(EXIT), str(tmp_path / "threads.db"), durability]
    child = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "working\n"
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=15)
    finally:
        child.kill()
    assert (out, child.returncode) == ("{'log': ['first']} ('after',)\n", 0)
