"""Facts about the machine, without which the numbers mean nothing."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
import time
from importlib import metadata
from pathlib import Path

PACKAGES = ("anyio", "trio", "aiosqlite", "msgspec")


def facts(directory: Path) -> dict[str, str]:
    """Return what is known about the machine, its load and the disk under ``directory``."""
    return {
        "date": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "cpu": f"{cpu()} x {os.cpu_count()}",
        "load": " ".join(f"{value:.2f}" for value in os.getloadavg()),
        "memory": memory(),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "disk": filesystem(directory),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "sqlite": sqlite3.sqlite_version,
        "packages": ", ".join(f"{name} {metadata.version(name)}" for name in PACKAGES),
        "commit": commit(),
    }


def yardsticks(directory: Path) -> dict[str, float]:
    """Return what the machine itself takes now, in microseconds: a loop in Python, and an fsync of a few bytes."""
    begun = time.perf_counter()
    total = 0
    for number in range(100_000):
        total += number
    loop = time.perf_counter() - begun
    path = directory / "yardstick"
    handle = os.open(path, os.O_CREAT | os.O_WRONLY)
    taken = []
    for _ in range(20):
        os.write(handle, b"x" * 500)
        begun = time.perf_counter()
        os.fsync(handle)
        taken.append(time.perf_counter() - begun)
    os.close(handle)
    path.unlink()
    return {"a loop in Python": loop * 1e6, "an fsync": sorted(taken)[len(taken) // 2] * 1e6}


def cpu() -> str:
    """Return the processor's name, or its architecture where that is all there is."""
    for line in read("/proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def memory() -> str:
    """Return the machine's memory."""
    for line in read("/proc/meminfo").splitlines():
        if line.startswith("MemTotal"):
            return f"{int(line.split()[1]) / 2**20:.0f} GiB"
    return "unknown"


def filesystem(directory: Path) -> str:
    """Return the filesystem that holds a directory: on a tmpfs, fsync costs nothing and the numbers flatter."""
    here = directory.resolve()
    mounts = [line.split()[:3] for line in read("/proc/mounts").splitlines()]
    holding = [(point, kind) for _, point, kind in mounts if here.is_relative_to(point)]
    return max(holding, key=lambda mount: len(mount[0]), default=("", "unknown"))[1]


def commit() -> str:
    """Return this tree's commit, marked if it was changed since."""
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty"],  # noqa: S607
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip()


def read(path: str) -> str:
    """Return a file's text, or nothing where it does not exist."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""
