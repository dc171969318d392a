"""A process that has imported everything and forks a child for each call: a killed run then costs milliseconds.

``python -m tests.crash.zygote MODULE...`` imports the modules, reads orders from its standard input, one JSON object a
line, and answers each. It starts no thread and no event loop of its own, so that forking it is safe.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

ROOT = Path(__file__).parents[2]

PATIENCE = 20
"""Seconds after which a child is taken to hang; SIGALRM ends it."""

STOPPED = "stopped"
"""How a child is that was stopped by a signal, and may go on."""


class Forked:
    """A child of the zygote."""

    def __init__(self, zygote: Zygote, pid: int, what: str) -> None:
        self.pid = pid
        self._zygote = zygote
        self._what = what

    def wait(self) -> int | str:
        """Wait for its end, or for it to be stopped; return its code, negative for a signal, or ``STOPPED``."""
        return self._zygote.wait(self.pid)

    def was_killed(self) -> bool:
        """Wait for its end; return whether it was killed. Any other end than that or success is an error."""
        code = self.wait()
        assert code in (0, -signal.SIGKILL), f"{self._what} ended with {code}:\n{self._zygote.errors()}"
        return code != 0

    def succeed(self) -> None:
        """Wait for its end, which must be a good one."""
        assert not self.was_killed(), f"{self._what} was killed"


class Zygote:
    """The parent's side."""

    def __init__(self, errors: Path, modules: Sequence[str]) -> None:
        """``errors`` is a file for what children say on their standard error."""
        self._errors = errors
        self._modules = modules
        self._log: IO[bytes] | None = None
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self._log = self._errors.open("wb")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.zygote", *self._modules],
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

    def start(self, function: Callable[..., None], **arguments: Any) -> Forked:
        """Have a child call a function, with arguments that JSON can tell."""
        name = f"{function.__module__}:{function.__qualname__}"
        return Forked(self, int(self._ask({"function": name, "arguments": arguments})), f"{name} {arguments}")

    def wait(self, pid: int) -> int | str:
        answer: int | str = self._ask({"wait": pid})
        return answer

    def errors(self) -> str:
        """Return what children have said on their standard error."""
        return self._errors.read_text()

    def _ask(self, order: dict[str, Any]) -> Any:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"The zygote has ended:\n{self.errors()}"
        return json.loads(line)


def main(modules: Sequence[str]) -> None:
    """Serve orders until the input ends."""
    for module in modules:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # children share these pages instead of copying them at their first collection
    for line in sys.stdin:
        order = json.loads(line)
        answer = _waited(order["wait"]) if "wait" in order else _forked(**order)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _waited(pid: int) -> int | str:
    _, status = os.waitpid(pid, os.WUNTRACED)
    return STOPPED if os.WIFSTOPPED(status) else os.waitstatus_to_exitcode(status)


def _forked(function: str, arguments: dict[str, Any]) -> int:
    child = os.fork()
    if child == 0:
        _call(function, arguments)
    return child


def _call(function: str, arguments: dict[str, Any]) -> None:
    code = 1
    try:
        signal.alarm(PATIENCE)
        module, _, name = function.partition(":")
        getattr(sys.modules[module], name)(**arguments)
        code = 0
    except BaseException:  # noqa: BLE001 - a forked child must not return into the server's loop
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
