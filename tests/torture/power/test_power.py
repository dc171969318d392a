"""The simulated disk loses what it may, and nothing else; and the trial can fail."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Literal

import anyio
import pytest

from tests.crash.cases import Case
from tests.crash.launching import Launcher
from tests.crash.tracing import why_not
from tests.crash.zygote import Zygote
from tests.torture.part_power import lost, short_logs
from tests.torture.power.calls import Call, read
from tests.torture.power.crowded import CHECKPOINTS, NOTHING, Last, Left, check, record_crowd
from tests.torture.power.crowds import Crowd, result, run_crowd
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


@pytest.mark.parametrize(
    "lines",
    [
        ['7 rename("{a}", "{b}") = 0'],
        ['7 openat(AT_FDCWD, "{a}", O_RDWR|O_TRUNC) = 5'],
        ["{opened}", '7 pwritev(5, [{{iov_base="\\x41", iov_len=1}}], 1, 0) = 1'],
        ["{opened}", "7 fallocate(5, 0, 0, 4096) = 0"],
        ["{opened}", "7 copy_file_range(9, NULL, 5, NULL, 4096, 0) = 4096"],
        ["{opened}", "7 fcntl(5, F_DUPFD_CLOEXEC, 3) = 6"],
        ["{opened}", "7 mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, 5, 0) = 0x7f0000000000"],
        ["{opened}", '7 write(5, "\\x41", 1) = 1'],
        ["7 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD) = 8"],
        ["7 this is no call"],
    ],
    ids=["rename", "empty", "vector", "reserve", "copy", "duplicate", "map", "no place", "fork", "rubbish"],
)
def test_what_the_disk_does_not_know_is_refused(lines: list[str], tmp_path: Path) -> None:
    a, b = _hex(str(tmp_path / "a")), _hex(str(tmp_path / "b"))
    opened = f'7 openat(AT_FDCWD, "{a}", O_RDWR|O_CREAT, 0644) = 5'
    with pytest.raises(AssertionError):
        Disk(tmp_path, read(line.format(a=a, b=b, opened=opened) for line in lines))


def test_what_is_of_other_files_or_of_the_index_of_a_log_is_not(tmp_path: Path) -> None:
    shm = _hex(str(tmp_path / "a-shm"))
    lines = [
        f'7 openat(AT_FDCWD, "{shm}", O_RDWR|O_CREAT, 0644) = 5',
        "7 mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, 5, 0) = 0x7f0000000000",
        "7 fcntl(5, F_SETLK, {l_type=F_RDLCK, l_whence=SEEK_SET, l_start=124, l_len=1}) = 0",
        f'7 rename("{_hex("/elsewhere/a")}", "{_hex("/elsewhere/b")}") = 0',
        "7 fcntl(6, F_DUPFD_CLOEXEC, 3) = 7",
        "7 clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD}, 88) = 8",
        "8 +++ exited with 0 +++",
    ]
    assert Disk(tmp_path, read(lines)).moments


def test_a_descriptor_that_is_given_out_again_meanwhile_stands_for_the_new_file(tmp_path: Path) -> None:
    old, new = _hex(str(tmp_path / "old")), _hex(str(tmp_path / "new"))
    lines = [
        f'7 openat(AT_FDCWD, "{old}", O_RDWR|O_CREAT, 0644) = 5',
        f'8 openat(AT_FDCWD, "{new}", O_RDWR|O_CREAT, 0644 <unfinished ...>',
        "7 close(5) = 0",
        "8 <... openat resumed>) = 5",
        f'8 pwrite64(5, "{_hex("xy")}", 2, 0) = 2',
    ]
    assert Disk(tmp_path, read(lines)).ledger(tmp_path / "new", 5) == b"xy"


def _said(word: str, life: int = 1, mode: str = "sync") -> Last:
    return Last(word, life, mode)


@pytest.mark.parametrize(
    ("said", "left"),
    [
        (_said("done"), NOTHING),
        (_said("done"), Left(CHECKPOINTS - 1, result("t", 1)[:-1])),
        (_said("done", 2), Left(CHECKPOINTS, result("t", 1))),
        (_said("deleting"), Left(1, result("t", 1))),
        (_said("deleted"), Left(CHECKPOINTS, result("t", 1))),
        (_said("pruning"), Left(2, result("t", 1))),
        (_said("pruned"), Left(CHECKPOINTS, result("t", 1))),
        (_said("begun", mode="exit"), Left(2, result("t", 1)[:1])),
        (_said("begun", 2), Left(CHECKPOINTS, result("t", 1))),
    ],
    ids=["lost", "short", "old life", "half gone", "back", "half pruned", "unpruned", "half of an exit", "old anew"],
)
def test_what_may_not_be_left_of_a_thread_is_told(said: Last, left: Left) -> None:
    with pytest.raises(AssertionError, match="thread t"):
        check("t", said, left)


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_a_crowd_that_does_not_sync_its_log_is_caught(loop: Literal["asyncio", "trio"], tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)

    async def faults() -> list[str]:
        with Zygote(tmp_path / "errors", [run_crowd.__module__]) as zygote:
            crowd = Crowd(loop, 1_000, 1, from_nothing=False, synchronous="NORMAL")
            recording = await record_crowd(zygote, tmp_path / "run", crowd)
        return [fault for seed in range(20) if (fault := await lost(recording, seed))]

    with short_logs():
        found = anyio.run(faults)
    assert found
    assert all("thread" in fault for fault in found)


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
