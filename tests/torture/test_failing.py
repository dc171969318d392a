"""No error and no hang of a case or of a part ends the trial of the others, or is left out of the table."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.torture import __main__ as command
from tests.torture.catalog import Part, Report, UnavailableError
from tests.torture.failing import case

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("error", [AssertionError("wrong"), KeyError("wrong"), OSError("wrong")], ids=repr)
def test_whatever_a_case_raises_is_a_violation_that_names_it(error: Exception) -> None:
    violations: list[str] = []
    with case("the third case", violations):
        raise error
    assert len(violations) == 1
    assert violations[0].startswith(f"the third case: {type(error).__name__}: ")


HANGING = """
import anyio
from tests.torture import failing
failing.AGAIN = 0.05

async def hang():
    with anyio.CancelScope(shield=True):
        await anyio.sleep_forever()

violations = []
with failing.case("a case", violations, longest=0.05):
    anyio.run(hang, backend={loop!r})
print(violations)
"""


@pytest.mark.slow
@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_a_case_that_hangs_is_ended_and_a_violation(loop: str) -> None:
    """In a process of its own: a loop that was broken off leaves things that complain."""
    command = [sys.executable, "-W", "ignore", "-c", HANGING.format(loop=loop)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=True)
    assert ended.stdout.startswith("['a case: ")
    assert ended.stdout.count("a case: ") == 1


def test_a_case_that_blocks_is_ended_and_a_limit_around_it_counts_on() -> None:
    violations: list[str] = []
    before, left = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)[0]
    with case("a case", violations, longest=0.01):
        threading.Event().wait()
    assert violations[0].startswith("a case: TimeoutError: it hung")
    assert signal.getsignal(signal.SIGALRM) is before
    assert (signal.getitimer(signal.ITIMER_REAL)[0] > 0) == (left > 0)


def test_a_case_that_catches_its_own_end_is_a_violation() -> None:
    violations: list[str] = []
    with case("a case", violations, longest=0.01), suppress(TimeoutError):
        threading.Event().wait()
    assert "went on" in violations[0]


def _unavailable(_cases: int, _seed: int) -> Report:
    message = "there is no such program"
    raise UnavailableError(message)


def _raising(_cases: int, _seed: int) -> Report:
    message = "nobody expected it"
    raise LookupError(message)


def test_the_command_tells_of_parts_that_fail_or_cannot_be_tried(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tries: dict[str, Callable[[int, int], Report]] = {
        "away": _unavailable,
        "failing": _raising,
        "well": lambda cases, _seed: Report(cases, []),
    }
    known: list[Any] = [Part(name, f"Promise {name}.", 9, 3, try_out) for name, try_out in tries.items()]
    monkeypatch.setattr(command, "parts", lambda: known)
    monkeypatch.setattr(sys, "argv", ["torture", "--short", "--seed", "7"])
    monkeypatch.setattr(logging, "disable", lambda _level: None)
    assert command.main() == 1
    said = capsys.readouterr().out.splitlines()
    assert said[2].startswith("| away | Promise away. (Not tried: there is no such program.) | 0 | not tried |")
    assert said[3].startswith("| failing | Promise failing. | 0 | 1 |")
    assert "VIOLATION of failing: the part itself, of seed 7: LookupError: nobody expected it" in said[4]
    assert said[5].startswith("| well | Promise well. | 3 | 0 |")
    assert said[6:] == ["", said[-1]]
    assert said[-1].startswith("Of commit ")
