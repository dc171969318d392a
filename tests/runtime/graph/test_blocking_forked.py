"""A stream that is open where a process forks: it stays its parent's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

FORK = """
import os, signal, sys
from persistence.memory import InMemorySaver
from persistence.sqlite import SqliteSaver
from runtime.errors import BlockingCallError
from tests.stories.graphs import CONFIG, chain


def refused(call):
    try:
        call()
    except BlockingCallError as error:
        return "forked" in str(error)


def leave_to_the_parent(stream):
    with stream:
        sys.exit(3)


def in_the_child(stream):
    assert refused(lambda: next(stream))
    assert refused(stream.close)
    assert refused(stream.durable)
    assert refused(stream.statistics)
    assert refused(lambda: stream.durable_upto)
    assert list(chain("own").compile().stream({})) == [{"own": {"log": ["own"]}}]
    assert refused(lambda: next(stream))  # there is a portal here too, by now
    if sys.argv[1] == "dropped":
        del stream
        sys.exit(3)
    leave_to_the_parent(stream)


with SqliteSaver("threads.db") as opened:
    for saver in (InMemorySaver(), opened):
        streams = [chain("one", "two").compile(saver).stream({}, CONFIG)]
        assert next(streams[0]) == {"one": {"log": ["one"]}}
        child = os.fork()
        if child == 0:
            signal.alarm(10)
            in_the_child(streams.pop())
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        assert list(streams[0]) == [{"two": {"log": ["two"]}}]
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("how", ["dropped", "left"])
def test_a_forked_child_leaves_its_parents_stream_alone(tmp_path: Path, how: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-c", FORK, how]
    done = subprocess.run(words, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True, timeout=18)
    assert (done.stderr, done.returncode) == ("", 0)
