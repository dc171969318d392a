"""The same kills, placed by the kernel: at every write to the database's files that a run makes.

The sweep over failpoints needs nothing but Python and is what the promises rest on. This one goes below the statements:
between the pages of one commit, and into the folding of the log when the database closes.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.crash.examining import Reference
from tests.crash.killing import Killing
from tests.crash.launching import Launcher
from tests.crash.programs import JOKES
from tests.crash.tracing import why_not

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture(scope="module", autouse=True)
def strace() -> None:
    """Skip, saying why, where a process may not be traced."""
    if reason := why_not():
        pytest.skip(f"{reason}; test_killed_runs kills at every statement without it")


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_a_run_killed_at_any_write_loses_nothing_that_was_promised(
    launcher: Launcher, folder: Path, durability: Any, anyio_backend_name: Any
) -> None:
    killing, reference = Killing(launcher, folder, JOKES, durability, anyio_backend_name), await Reference.of(JOKES)
    for number in count(1 + (anyio_backend_name == "trio"), 2):
        killed = await killing.at_write(number, reference)
        if not killed:
            break
    assert number > 20
