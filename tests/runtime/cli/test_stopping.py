"""Stopped from outside: SIGTERM drains a run, Ctrl-C cancels it, and both say how to go on."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import pytest

from runtime.cli import main
from tests.runtime.cli.commands import environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.runtime.cli.commands import Command

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals cannot be sent to one process there")

APP = """
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict
import anyio
import time
from runtime.graph import START, StateGraph


class State(TypedDict, total=False):
    log: str


def quick(state):
    return {"log": "quick"}


async def working(state):
    print("inside", flush=True)
    while not Path("go").exists():
        await anyio.sleep(0.01)
    return {"log": "worked"}


def busy(state):
    print("inside", flush=True)
    while not Path("go").exists():
        time.sleep(0.01)
    return {"log": "worked"}


def last(state):
    return {"log": "last"}


def chained(*nodes):
    return StateGraph(State).add_sequence(list(nodes)).add_edge(START, nodes[0].__name__)


graph = chained(quick, working, last)
in_thread = chained(quick, busy, last)
ends = chained(quick, working)
first = chained(working, last)


@dataclass
class Told:
    name: str = ""

    def __post_init__(self):
        print("inside", flush=True)


class Telling(State):
    by: Told


told = StateGraph(Telling).add_node(last).add_edge(START, "last")
"""


class Ended(NamedTuple):
    """What a command left behind that was stopped."""

    code: int
    out: str
    err: str

    def go_on(self) -> list[str]:
        """Return the words of the command that it says goes on."""
        (line,) = [line for line in self.err.splitlines() if "actorgraph run" in line]
        return shlex.split(line[line.index("actorgraph run") :])[1:]


class Running:
    """A command at work in its node."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._folder = folder
        self._process = subprocess.Popen(
            [sys.executable, "-m", "runtime.cli", *words],
            cwd=folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._shown = self._process.stderr if "--json" in words else self._process.stdout
        """Where its nodes' lines go."""

    def begun(self) -> None:
        """Wait until it is in its node."""
        assert self._shown is not None
        assert "inside\n" in iter(self._shown.readline, "")

    def told(self) -> str:
        """Return the next line that it writes to standard error."""
        assert self._process.stderr is not None
        return self._process.stderr.readline()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def go(self) -> None:
        """Let its node end."""
        (self._folder / "go").touch()

    def ended(self) -> Ended:
        """Wait for its end."""
        out, err = self._process.communicate(timeout=15)
        assert "Traceback" not in err
        return Ended(self._process.returncode, out, err)

    def kill(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.communicate()


@contextmanager
def running(folder: Path, target: str, *words: str) -> Iterator[Running]:
    """Run a graph, on thread t in x.db unless told otherwise, until it is in its node."""
    (folder / "stopped_app.py").write_text(APP)
    kept = words if "--db" in words or "--unkept" in words else ("--thread", "t", "--db", "x.db", *words)
    given = [word for word in kept if word != "--unkept"]
    started = Running(folder, "run", f"stopped_app:{target}", "--input", "{}", *given)
    try:
        started.begun()
        yield started
    finally:
        started.kill()


@pytest.mark.slow
@pytest.mark.parametrize(("target", "more"), [("graph", ["--stream", "updates"]), ("in_thread", [])])
def test_sigterm_lets_the_superstep_end_saves_it_and_says_how_to_go_on(
    tmp_path: Path, process: Command, target: str, more: list[str]
) -> None:
    with running(tmp_path, target, "--durability", "exit", "--name", "own", *more) as run:
        run.send(signal.SIGTERM)
        assert run.told().startswith("SIGTERM: the superstep at work is finished and saved first.")
        run.go()
        ended = run.ended()
    assert ended.code == 143
    assert "error: SIGTERM stopped the run; what had finished is saved." in ended.err
    assert "Thread 't' is saved up to step 2; left to run: last." in ended.err
    done = process(*ended.go_on(), "--json")
    assert done.document["output"] == {"log": "last"}
    assert "inside" not in done.err, "the node that had finished must not run again"


@pytest.mark.slow
def test_a_second_sigterm_ends_it_at_once(tmp_path: Path, process: Command) -> None:
    with running(tmp_path, "in_thread", "--durability", "sync") as run:
        run.send(signal.SIGTERM)
        run.told()
        run.send(signal.SIGTERM)
        assert run.ended() == (143, "", "")
    shown = process("show", "t", "--db", "x.db", "--json").document
    assert (shown["values"], shown["next"]) == ({"log": "quick"}, ["busy"])


@pytest.mark.slow
def test_a_run_that_ends_by_then_has_not_failed(tmp_path: Path) -> None:
    with running(tmp_path, "ends") as run:
        run.send(signal.SIGTERM)
        run.told()
        run.go()
        ended = run.ended()
    assert ended.code == 0
    assert "Done: thread t" in ended.out


@pytest.mark.slow
def test_sigterm_for_programs(tmp_path: Path) -> None:
    with running(tmp_path, "graph", "--json") as run:
        run.send(signal.SIGTERM)
        run.go()
        ended = run.ended()
    assert (ended.code, ended.out) == (143, "")
    error = json.loads(ended.err)["error"]
    assert (error["type"], error["thread"], error["step"], error["next"]) == ("Terminated", "t", 2, ["last"])
    assert error["resume"] == "actorgraph run stopped_app:graph --resume --thread t --db x.db"


@pytest.mark.slow
def test_what_nothing_keeps_begins_anew(tmp_path: Path) -> None:
    with running(tmp_path, "graph", "--unkept") as run:
        run.send(signal.SIGTERM)
        run.told()
        run.go()
        ended = run.ended()
    assert ended.code == 143
    assert "stopped the run. Nothing keeps it, so it begins anew" in ended.err


@pytest.mark.slow
@pytest.mark.parametrize("more", [["--stream", "updates"], []], ids=["streamed", "plain"])
def test_who_waits_for_another_process_ends_at_once_and_says_that_nothing_was_begun(
    tmp_path: Path, process: Command, more: list[str]
) -> None:
    words = ["--input", '{"by": {}}', *more]  # what makes the input tells that it is about to run
    with running(tmp_path, "graph", "--durability", "sync"), running(tmp_path, "told", *words) as run:
        run.send(signal.SIGTERM)
        ended = run.ended()  # while the other is at work
        found = process("history", "t", "--db", "x.db", "--json").document
    assert (ended.code, ended.out) == (143, "")
    assert "error: SIGTERM stopped the run before it had begun: it waited for thread 't', held by a run of" in ended.err
    assert "Nothing of it is saved: run it again." in ended.err
    assert "superstep" not in ended.err
    assert "--resume" not in ended.err
    assert [each["step"] for each in found["checkpoints"]] == [1, 0, -1], "the other's alone"


@pytest.mark.slow
def test_ctrl_c_names_the_thread_and_the_command_that_goes_on(tmp_path: Path, process: Command) -> None:
    with running(tmp_path, "graph", "--thread", "two words", "--db", "x.db", "--stream", "updates") as run:
        run.send(signal.SIGINT)
        ended = run.ended()
    assert ended.code == 130
    assert "error: Ctrl-C stopped the run; what had finished is saved." in ended.err
    assert "Thread 'two words' is saved up to step 1; left to run: working." in ended.err
    assert "Go on with thread 'two words': actorgraph run stopped_app:graph --resume" in ended.err
    (tmp_path / "go").touch()
    assert process(*ended.go_on(), "--json").document["output"] == {"log": "last"}


@pytest.mark.slow
def test_ctrl_c_in_a_thread_that_was_not_named_tells_its_name(tmp_path: Path, process: Command) -> None:
    with running(tmp_path, "first", "--db", "x.db") as run:
        run.send(signal.SIGINT)
        ended = run.ended()
    (tmp_path / "go").touch()
    assert process(*ended.go_on(), "--json").document["output"] == {"log": "last"}


def test_a_command_in_another_thread_than_the_main_one_leaves_signals_alone(app: str, tmp_path: Path) -> None:
    codes: list[int] = []
    words = ["run", f"{app}:graph", "--input", '{"count": 1}', "--db", str(tmp_path / "x.db")]
    worker = threading.Thread(target=lambda: codes.append(main(words)))
    before = signal.getsignal(signal.SIGTERM)
    worker.start()
    worker.join(15)
    assert codes == [0]
    assert main(words) == 0
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.slow
def test_ctrl_c_in_a_recovery_says_how_to_go_on_with_what_it_had_begun(tmp_path: Path, process: Command) -> None:
    with running(tmp_path, "graph", "--durability", "sync") as run:
        run.send(signal.SIGKILL)
        run.ended()
    recovery = Running(tmp_path, "recover", "stopped_app:graph", "--db", "x.db", "--json")
    try:
        recovery.begun()
        recovery.send(signal.SIGINT)
        ended = recovery.ended()
    finally:
        recovery.kill()
    assert ended.code == 130
    error = json.loads(ended.err)["error"]
    assert error["type"] == "KeyboardInterrupt"
    again = process("recover", "stopped_app:graph", "--db", "x.db", "--json").document
    assert again["recovered"] == [], "its run did not die, it was told to end"
    words = shlex.split(error["hint"].rpartition(": ")[2])
    assert words[-1] == "ID"
    (tmp_path / "go").touch()
    assert process(*words[1:-1], "t", "--json").document["output"] == {"log": "last"}
