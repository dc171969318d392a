"""What only a second process can show: shared files, forgotten closes, kills, a disk that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import anyio
import pytest

from persistence.sqlite import SqliteSaver

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
BACKENDS = ("asyncio", "trio")


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a Python process that runs a script from the project's root."""
    return subprocess.Popen(
        [sys.executable, "-W", "always", "-c", textwrap.dedent(script), *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def stored(path: Path) -> list[tuple[str, str]]:
    """Return (thread, checkpoint) of everything in a file, each one read whole."""

    async def read() -> list[tuple[str, str]]:
        async with SqliteSaver(path) as saver:
            return [(one.config["configurable"]["thread_id"], one.checkpoint["id"]) async for one in saver.alist(None)]

    return anyio.run(read)


SHARE = """
    import sys, anyio
    from persistence.sqlite import SqliteSaver
    from tests.persistence.writer.samples import put

    async def run(saver, name):
        for number in range(10):
            await put(saver, f"{number}", {"a": [name, number]}, thread_id=name)

    async def main(path, process):
        print("ready", flush=True)
        sys.stdin.readline()
        async with SqliteSaver(path, busy_timeout=10) as saver:
            async with anyio.create_task_group() as nursery:
                for number in range(20):
                    nursery.start_soon(run, saver, f"{process}-{number}")
            assert saver.statistics().failures == 0

    anyio.run(main, sys.argv[1], sys.argv[2], backend=sys.argv[3])
"""


def test_processes_set_up_and_share_one_file_from_the_first_moment(tmp_path: Path) -> None:
    path = tmp_path / "threads.sqlite"
    processes = [start(SHARE, path, number, BACKENDS[number % 2]) for number in range(3)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        _, errors = process.communicate(timeout=18)
        assert process.returncode == 0, errors
    assert len(stored(path)) == 3 * 20 * 10


FORGET = """
    import sys, anyio
    from persistence.sqlite import SqliteSaver
    from tests.persistence.writer.samples import put

    async def main(path, ending):
        global saver
        saver = SqliteSaver(path)
        await saver.__aenter__()
        await put(saver, "1", {"a": [1]})
        if ending == "raise":
            raise LookupError("the program's own error")
        if ending == "interrupt":
            import os, signal
            os.kill(os.getpid(), signal.SIGINT)
            await anyio.sleep_forever()

    anyio.run(main, sys.argv[1], sys.argv[2], backend=sys.argv[3])
"""


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("ending", ["return", "raise", "interrupt"])
def test_a_program_that_forgets_to_close_exits_with_its_data_safe(tmp_path: Path, ending: str, backend: str) -> None:
    path = tmp_path / "threads.sqlite"
    process = start(FORGET, path, ending, backend)
    _, errors = process.communicate(timeout=15)
    assert "was not closed" in errors
    assert "ResourceWarning" in errors
    if ending == "raise" and backend == "asyncio":  # trio speaks of the nursery that was left open
        assert "the program's own error" in errors
    assert stored(path) == [("t", "1")]


INTERRUPTED = """
    import os, signal, sys, anyio
    from persistence.sqlite import SqliteSaver
    from tests.persistence.writer.samples import unit

    async def main(path):
        async with SqliteSaver(path) as saver:
            for number in range(200):
                await saver.send(saver.encode(unit("t", f"{number:03}", value=[number])))
            os.kill(os.getpid(), signal.SIGINT)
            await anyio.sleep_forever()

    anyio.run(main, sys.argv[1], backend=sys.argv[2])
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_interrupted_program_saves_what_was_accepted(tmp_path: Path, backend: str) -> None:
    path = tmp_path / "threads.sqlite"
    process = start(INTERRUPTED, path, backend)
    _, errors = process.communicate(timeout=15)
    assert "KeyboardInterrupt" in errors
    assert "was not closed" not in errors
    assert len(stored(path)) == 200


STREAM = """
    import sys, anyio
    from persistence.sqlite import SqliteSaver
    from tests.persistence.writer.samples import put

    async def run(saver, name):
        number = 0
        while True:
            await put(saver, f"{number:06}", {"a": [name, number]}, thread_id=name)
            sys.stdout.write(f"{name} {number:06}\\n")
            sys.stdout.flush()
            number += 1

    async def main(path):
        async with SqliteSaver(path) as saver, anyio.create_task_group() as nursery:
            for number in range(8):
                nursery.start_soon(run, saver, f"t{number}")

    anyio.run(main, sys.argv[1], backend=sys.argv[2])
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_acknowledged_checkpoint_survives_a_kill(tmp_path: Path, backend: str) -> None:
    path = tmp_path / "threads.sqlite"
    process = start(STREAM, path, backend)
    assert process.stdout is not None
    printed = [process.stdout.readline() for _ in range(300)]
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate(timeout=15)
    acknowledged = {tuple(line.split()) for line in (*printed, *rest.splitlines(keepends=True)) if line.endswith("\n")}
    assert len(acknowledged) >= 300
    found = stored(path)
    assert acknowledged <= set(found)
    # No holes either: each thread's steps are there from the first to the last.
    for name in {thread_id for thread_id, _ in found}:
        steps = sorted(checkpoint_id for thread_id, checkpoint_id in found if thread_id == name)
        assert steps == [f"{number:06}" for number in range(len(steps))]


DISK = """
    import resource, signal, sys, anyio
    from persistence.errors import BackendError
    from persistence.sqlite import SqliteSaver
    from tests.persistence.writer.samples import put

    async def main(path):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        async with SqliteSaver(path) as saver:
            await put(saver, "0", {"a": ["x"]})
            resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
            acknowledged = refused = 0
            for number in range(1, 30):
                try:
                    await put(saver, f"{number:02}", {"a": ["x" * 20_000]}, thread_id=f"t{number}")
                except BackendError as error:
                    refused += 1
                    assert "nothing was saved" in str(error), error
                else:
                    acknowledged += 1
            assert refused, "the disk never ended"
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            await put(saver, "1", {"a": ["y"]})
            print(acknowledged)

    anyio.run(main, sys.argv[1])
"""


def test_a_disk_that_fails_in_the_middle_is_never_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "threads.sqlite"
    process = start(DISK, path)
    output, errors = process.communicate(timeout=15)
    assert process.returncode == 0, errors
    assert len(stored(path)) == 2 + int(output)


def test_a_saver_left_by_its_loop_can_be_garbage(tmp_path: Path) -> None:
    """A second saver opens the file that a forgotten one still holds."""
    path = tmp_path / "threads.sqlite"
    process = start(
        """
        import gc, sys, anyio
        from persistence.sqlite import SqliteSaver
        from tests.persistence.writer.samples import put

        async def main(path):
            saver = SqliteSaver(path)
            await saver.__aenter__()
            await put(saver, "1", {"a": [1]})

        async def again(path):
            async with SqliteSaver(path) as saver:
                await put(saver, "2", {"a": [1]})

        anyio.run(main, sys.argv[1])
        gc.collect()
        anyio.run(again, sys.argv[1], backend="trio")
        """,
        path,
    )
    _, errors = process.communicate(timeout=15)
    assert process.returncode == 0, errors
    assert "was not closed" in errors
    assert stored(path) == [("t", "2"), ("t", "1")]
