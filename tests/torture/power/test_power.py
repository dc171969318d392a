"""The simulated disk loses what it may, and nothing else; and the trial can fail."""

from __future__ import annotations

import random
from pathlib import Path

import anyio
import pytest

from tests.crash.cases import Case
from tests.crash.launching import Launcher
from tests.crash.tracing import why_not
from tests.torture.part_power import lost, short_logs
from tests.torture.power.calls import Call, read
from tests.torture.power.disk import Disk
from tests.torture.power.recording import record


def _hex(text: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in text.encode())


def _states(folder: Path, calls: list[Call], moment: int, target: Path) -> set[bytes | None]:
    """Return everything that the file ``a`` may be after a loss."""
    disk = Disk(folder, calls)
    found: set[bytes | None] = set()
    for seed in range(200):
        disk.lose(moment, random.Random(seed), target)
        found.add(Path(target, "a").read_bytes() if Path(target, "a").exists() else None)
        Path(target, "a").unlink(missing_ok=True)
    return found


def test_calls_that_overlap_are_put_together() -> None:
    lines = [
        f'7 openat(AT_FDCWD, "{_hex("/f/a")}", O_RDWR|O_CREAT, 0644) = 5',
        f'8 pwrite64(5, "{_hex("xy")}", 2, 4096 <unfinished ...>',
        "7 fsync(5) = 0",
        "8 <... pwrite64 resumed>) = 2",
        "9 fsync(6) = -1 EIO (Input/output error)",
        "9 +++ exited with 0 +++",
    ]
    opened, written, synced = read(lines)
    assert (opened.text, opened.result) == (b"/f/a", 5)
    assert (written.text, written.numbers, written.begun, written.ended) == (b"xy", [5, 2, 4096], 1, 3)
    assert (synced.begun, synced.ended) == (2, 2)


def test_what_was_synced_stays_and_what_was_not_may_be_torn(tmp_path: Path) -> None:
    folder, target = tmp_path / "f", tmp_path / "t"
    folder.mkdir()
    target.mkdir()
    Path(folder, "a").write_bytes(b"." * 1024)
    opened = Call("openat", f'AT_FDCWD, "{_hex(str(folder / "a"))}", O_RDWR', 5, 0, 0)
    first = Call("pwrite64", f'5, "{_hex("A" * 1024)}", 1024, 0', 1024, 1, 1)
    synced = Call("fsync", "5", 0, 2, 3)
    second = Call("pwrite64", f'5, "{_hex("B" * 1024)}", 1024, 0', 1024, 4, 4)
    calls = [opened, first, synced, second]
    half = 512
    torn = {b"A" * 1024, b"B" * half + b"A" * half, b"A" * half + b"B" * half, b"B" * 1024}
    assert _states(folder, calls, 3, target) == {b"A" * 1024}
    assert _states(folder, calls, 4, target) == torn
    assert b"." * 1024 in _states(folder, calls, 2, target)


def test_a_name_is_there_for_sure_once_its_folder_was_synced(tmp_path: Path) -> None:
    folder, target = tmp_path / "f", tmp_path / "t"
    folder.mkdir()
    target.mkdir()
    made = Call("openat", f'AT_FDCWD, "{_hex(str(folder / "a"))}", O_RDWR|O_CREAT, 0644', 5, 0, 0)
    opened = Call("openat", f'AT_FDCWD, "{_hex(str(folder))}", O_RDONLY', 6, 1, 1)
    synced = Call("fdatasync", "6", 0, 2, 2)
    removed = Call("unlink", f'"{_hex(str(folder / "a"))}"', 0, 3, 3)
    calls = [made, opened, synced, removed]
    assert _states(folder, calls, 1, target) == {None, b""}
    assert _states(folder, calls, 2, target) == {b""}
    assert _states(folder, calls, 3, target) == {None, b""}


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_a_run_that_does_not_sync_its_log_is_caught(tmp_path: Path) -> None:
    """With ``synchronous="NORMAL"`` a commit is not on disk when it returns, as its documentation says."""
    if reason := why_not():
        pytest.skip(reason)

    async def faults() -> list[str]:
        with Launcher(tmp_path / "errors") as launcher:
            case = Case("", "", "chain", "sync", "asyncio", synchronous="NORMAL")
            recording = await record(launcher, tmp_path / "run", case, from_nothing=False)
        return [fault for seed in range(60) if (fault := await lost(recording, seed))]

    with short_logs():
        found = anyio.run(faults)
    assert found
    assert all("acknowledged" in fault or "was durable" in fault for fault in found)
