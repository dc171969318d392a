"""The parent's side of the zygote."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from tests.crash.zygote import Case, as_line

ROOT = Path(__file__).parents[2]
STRACE = shutil.which("strace")
"""Where strace is; None if it is not installed."""


class Launcher:
    """Runs cases in children of a zygote process, one after the other."""

    def __init__(self, errors: Path) -> None:
        self._errors = errors
        self._log: IO[bytes] | None = None
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self._log = self._errors.open("wb")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.zygote"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        assert self._log is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()
        self._log.close()

    def run(self, case: Case) -> bool:
        """Run a case; return whether it was killed. Any other end than that or success is an error."""
        self._send(case)
        return self._was_killed(case)

    def run_traced(self, case: Case, options: list[str]) -> bool:
        """Run a case under strace with these options; return whether it was killed."""
        assert STRACE is not None
        os.mkfifo(case.gate)
        self._send(case)
        child = self._answer()
        with subprocess.Popen([STRACE, "-f", "-p", str(child), *options], stderr=subprocess.PIPE, text=True) as tracer:
            assert tracer.stderr is not None
            attached = tracer.stderr.readline()
            Path(case.gate).write_bytes(b"")
            assert "attached" in attached, attached
            tracer.communicate()
        return self._was_killed(case)

    def _send(self, case: Case) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(as_line(case))
        self._process.stdin.flush()

    def _answer(self) -> int:
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"The zygote has ended:\n{self._errors.read_text()}"
        return int(line)

    def _was_killed(self, case: Case) -> bool:
        code = self._answer()
        assert code in (0, -signal.SIGKILL), f"{case} ended with {code}:\n{self._errors.read_text()}"
        return code != 0
