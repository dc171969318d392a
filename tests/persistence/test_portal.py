"""The blocking door, from a program's first call to its end."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Final

import anyio
import pytest
from anyio import to_thread
from anyio.lowlevel import EventLoopToken

from persistence import portal
from persistence.errors import SaverLoopError
from persistence.sqlite import SqliteSaver

ROOT: Final = Path(__file__).parents[2]

PUT: Final = """
from persistence.sqlite import SqliteSaver

saver = SqliteSaver("threads.db")
saver.__enter__()
checkpoint = {"v": 4, "id": "1ef00000-0000-6000-8000-000000000000", "ts": "2024-01-01T00:00:00+00:00",
              "channel_values": {}, "channel_versions": {}, "versions_seen": {}, "updated_channels": None}
saver.put({"configurable": {"thread_id": "1"}}, checkpoint, {}, {})
"""


def program(code: str, directory: Path) -> int:
    """Run a program to its end."""
    ours = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run([sys.executable, "-c", code], cwd=directory, env=ours, check=False, timeout=15)
    return ended.returncode


@pytest.mark.slow
def test_a_program_that_used_the_blocking_door_ends(tmp_path: Path) -> None:
    """The portal's thread must not outlive it, nor be waited for in vain."""
    code = "from persistence.memory import InMemorySaver; InMemorySaver().get({'configurable': {'thread_id': '1'}})"
    assert program(code, tmp_path) == 0


@pytest.mark.slow
async def test_a_program_that_forgets_to_close_its_saver_ends_and_keeps_what_it_saved(tmp_path: Path) -> None:
    """Leaving the interpreter closes what is open on the portal."""
    assert await anyio.to_thread.run_sync(program, PUT, tmp_path) == 0
    async with SqliteSaver(tmp_path / "threads.db") as saver:
        assert await saver.aget_tuple({"configurable": {"thread_id": "1"}}) is not None


FORK: Final = """
import os
import signal

import anyio

from persistence.errors import SaverLoopError
from persistence import portal
from persistence.errors import SaverLoopError
from persistence.sqlite import SqliteSaver

CONFIG = {"configurable": {"thread_id": "1"}}


async def look():
    async with SqliteSaver("threads.db") as own:
        return await own.aget_tuple(CONFIG)


def refused(saver):
    try:
        saver.get(CONFIG)
    except SaverLoopError as error:
        return "forked" in str(error)


with SqliteSaver("threads.db") as parents:
    assert parents.get(CONFIG) is None
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        assert refused(parents)
        with SqliteSaver("threads.db") as own:
            assert own.get(CONFIG) is None
        assert anyio.run(look, backend="trio") is None
    else:
        assert os.waitpid(child, 0)[1] == 0
        assert parents.get(CONFIG) is None
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_opens_its_own_and_is_refused_its_parents(tmp_path: Path) -> None:
    assert program(FORK, tmp_path) == 0


async def test_what_cancels_a_worker_threads_task_cancels_what_the_thread_waits_for() -> None:
    at, thread = portal.here()
    begun = anyio.Event()

    async def wait() -> None:
        begun.set()
        await anyio.sleep_forever()

    def work() -> None:
        portal.call(wait, at=at, thread=thread, instead="await it")

    async with anyio.create_task_group() as nursery:
        nursery.start_soon(to_thread.run_sync, work)
        await begun.wait()
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_what_would_end_an_event_loop_reaches_the_caller_and_not_the_loop(kind: type[BaseException]) -> None:
    async def fail() -> None:
        raise kind(3)

    async def answer() -> int:
        return 42

    with pytest.raises(kind) as caught:
        portal.call(fail, at=None, thread=None, instead="await it")
    assert caught.value.args == (3,)
    assert portal.call(answer, at=None, thread=None, instead="await it") == 42


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
async def test_the_same_from_a_worker_thread_of_the_loop(kind: type[BaseException]) -> None:
    at, thread = portal.here()

    async def fail() -> None:
        raise kind(3)

    def work() -> None:
        with pytest.raises(kind):
            portal.call(fail, at=at, thread=thread, instead="await it")

    await to_thread.run_sync(work)


async def test_a_thread_of_the_users_own_is_let_in_as_well() -> None:
    at, home = portal.here()
    found: list[int] = []

    async def answer() -> int:
        return 42

    thread = threading.Thread(target=lambda: found.append(portal.call(answer, at=at, thread=home, instead="await it")))
    thread.start()
    await to_thread.run_sync(thread.join)
    assert found == [42]


def test_a_call_to_a_loop_that_has_ended_says_so() -> None:
    async def where() -> tuple[EventLoopToken, int]:
        return portal.here()

    token, thread = anyio.run(where)
    with pytest.raises(SaverLoopError, match="event loop on which it was opened has ended"):
        portal.call(where, at=token, thread=thread, instead="aget")
