"""What durable graphs mean, in as few lines as it takes: supersteps, checkpoints, questions, forks, edits.

Written from the description of the behaviour, not from the engine. Nothing runs at once here, and nothing is stored:
a thread is the list of its checkpoints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from tests.model.shapes import Join, Parts, Shape, merged

START = "__start__"
LIMIT = 6
"""Supersteps of nodes in one run."""

Values = dict[str, Any]


class Task(NamedTuple):
    """A node's turn. Tasks sort as their writes are folded: nodes by name, then parts in the order of the wishes."""

    part: int
    """Zero, or which part of those wished for it is."""
    name: str
    given: str = ""
    """What a part is given; empty for a node that gets the state."""


class Writes(NamedTuple):
    """What a finished task leaves."""

    values: Values
    targets: tuple[str, ...] = ()
    parts: tuple[tuple[str, str], ...] = ()


@dataclass
class Saved:
    """A checkpoint, and what was written against it since."""

    values: Values = field(default_factory=lambda: {"log": [], "n": 0, "last": {}})
    step: int = -2
    source: str = ""
    parent: int | None = None
    given: Values | None = None
    """Input that START has not taken yet."""
    triggered: frozenset[str] = frozenset()
    sent: frozenset[str] = frozenset()
    """Where a Command went, beside what was due."""
    later: frozenset[str] = frozenset()
    """Where a Command went that has to wait."""
    commanded: bool = False
    parts: tuple[Task, ...] = ()
    joins: dict[Join, frozenset[str]] = field(default_factory=dict)
    results: dict[Task, Writes] = field(default_factory=dict)
    answers: dict[Task, tuple[str, ...]] = field(default_factory=dict)
    asked: dict[Task, str] = field(default_factory=dict)


class Reference:
    """One thread of one graph."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.thread: list[Saved] = []
        self.failures = Counter({name: node.failures for name, node in shape.nodes.items()})

    # ---- what is seen ----

    def due(self, saved: Saved) -> list[Task]:
        """Return the tasks of a checkpoint's superstep; deferred nodes only where nothing else is to run."""
        if saved.given is not None:
            return [Task(0, START)]
        return sorted(Task(0, name) for name in self._names(saved)) + list(saved.parts)

    def _names(self, saved: Saved) -> set[str]:
        names = saved.triggered | {join.target for join in self._complete(saved)}
        others = {name for name in names if not self.shape.nodes[name].deferred}
        return (others if others or saved.parts else set(names)) | saved.sent

    def live(self) -> tuple[Values, list[str], list[str]]:
        """Return the newest values, with what has finished since; what is left to run; what is asked."""
        saved = self.thread[-1]
        left = sorted(task.name for task in self.due(saved) if task not in saved.results)
        return folded(saved.values, saved.results), left, sorted(saved.asked.values())

    def history(self) -> list[tuple[int, str, int | None, Values, list[str]]]:
        """Return step, source, parent, values and tasks of each checkpoint, oldest first."""
        return [
            (one.step, one.source, one.parent, one.values, sorted(task.name for task in self.due(one)))
            for one in self.thread
        ]

    # ---- what is done; each returns what comes of it ----

    def begin(self, values: Values, mode: str, at: int | None = None, **stops: Any) -> str:
        """Give new input: what was due is dropped."""
        saved = replace(self._cleared(self._at(at)), source="input", parent=self._index(at), given=values)
        saved.step += 1
        return self._run(saved, mode, at, **stops)

    def go_on(self, mode: str, answers: dict[str, str] | None = None, **stops: Any) -> str:
        """Resume the newest checkpoint, with answers by question."""
        if not self.thread:
            return "empty"
        saved = self.thread[-1]
        self._answer(saved, answers or {})
        return self._run(saved, mode, resumed=True, **stops)

    def replay(self, at: int, mode: str, **stops: Any) -> str:
        """Run what was due again, on a branch; the newest fork or edit is one already, if nothing rests on it."""
        saved = self.thread[at]
        newest = at == len(self.thread) - 1
        if saved.source not in ("update", "fork") or not newest or saved.results or saved.answers:
            saved = replace(
                saved, step=saved.step + 1, source="fork", parent=at, results={}, answers={}, asked={}, commanded=False
            )
        return self._run(saved, mode, at, resumed=True, **stops)

    def command(self, values: Values, goto: str, mode: str, answers: dict[str, str] | None = None, **stops: Any) -> str:
        """Add to the newest checkpoint's values, and to what is due there, then go on; a second time, on a branch."""
        saved, parent = self.thread[-1], len(self.thread) - 1
        before = saved.values, saved.sent, saved.later, saved.commanded
        if saved.commanded:
            saved = replace(saved, step=saved.step + 1, source="fork", parent=parent, commanded=False)
            saved.results, saved.answers, saved.asked = dict(saved.results), dict(saved.answers), dict(saved.asked)
        else:
            saved.commanded = True
        saved.values = folded(saved.values, {Task(0, ""): Writes(values)})
        names = self._names(saved)
        if goto and self.shape.nodes[goto].deferred and (names or saved.parts):
            saved.later |= {goto} - names
        elif goto:
            saved.sent |= {goto}
        self._answer(saved, answers or {})
        outcome = self._run(saved, mode, parent, resumed=True, **stops)
        if mode == "exit" and self.thread[-1] is not saved:  # only what came of it is kept
            saved.values, saved.sent, saved.later, saved.commanded = before
        return outcome

    def update(self, values: Values, as_node: str, at: int | None = None) -> None:
        """Write as if a node had returned this: its edges count, all else that was due is dropped."""
        base = self._at(at) if self.thread else Saved(step=-1)
        writes = Writes(values, self.shape.starts) if as_node == START else self._routed(base, as_node, values)
        self.thread.append(self._applied(self._cleared(base), {Task(0, as_node): writes}, "update", self._index(at)))

    # ---- how ----

    def _answer(self, saved: Saved, answers: dict[str, str]) -> None:
        for task, question in list(saved.asked.items()):
            if question in answers:
                saved.answers[task] = (*saved.answers.get(task, ()), answers[question])
                del saved.asked[task]

    def _run(
        self,
        saved: Saved,
        mode: str,
        at: int | None = None,
        *,
        resumed: bool = False,
        before: Iterable[str] = (),
        after: Iterable[str] = (),
    ) -> str:
        run = _Run(self.thread, mode, saved, self._index(at))
        supersteps = 0
        while True:
            tasks = self.due(run.saved)
            names = {task.name for task in tasks}
            if not tasks:
                return run.ends("ended")
            if supersteps == LIMIT and START not in names:
                return run.ends("limit")
            if names & set(before) and not resumed:
                return run.ends("ended")
            resumed = False
            if outcome := self._superstep(run.saved, tasks):
                return run.ends(outcome)
            supersteps += START not in names
            run.reaches(self._applied(self._cleared(run.saved), run.saved.results, "loop", run.index))
            if names & set(after):
                return run.ends("ended")

    def _superstep(self, saved: Saved, tasks: list[Task]) -> str:
        """Run what has no result yet; return what stops the run, if anything does."""
        fail: list[str] = []
        for task in tasks:
            if task in saved.results:
                continue
            if task.name == START:
                saved.results[task] = Writes(saved.given or {}, self.shape.starts)
                continue
            node, label, answers = self.shape.nodes[task.name], task.name + task.given, saved.answers.get(task, ())
            if len(answers) < node.questions:
                saved.asked[task] = f"{label}?{len(answers)}"
            elif not task.given and self.failures[node.name]:
                fail.append(node.name)
            else:
                values = {"log": [label, *answers], "n": 1, "last": {"label": label}}
                saved.results[task] = self._routed(saved, node.name, values)
        if fail:  # the first by name is the first in time; it cancels the others that would have failed
            self.failures[fail[0]] -= 1
            return f"{fail[0]} failed"
        return "asked" if saved.asked else ""

    def _routed(self, saved: Saved, name: str, values: Values) -> Writes:
        """Return writes with where the node's edges and router lead: the router sees the state with its own writes."""
        node = self.shape.nodes[name]
        route = node.route(saved.values["n"] + values.get("n", 0))
        parts = [(one.node, f"<{name}{part}>") for one in route if isinstance(one, Parts) for part in range(one.number)]
        return Writes(values, node.edges + tuple(one for one in route if isinstance(one, str)), tuple(parts))

    def _applied(self, saved: Saved, done: dict[Task, Writes], source: str, parent: int | None) -> Saved:
        """Return the checkpoint that a superstep leads to: all its writes at once, on what is left without it."""
        joins, ran = dict(saved.joins), {task.name for task in done}
        for join in self.shape.joins:
            if added := ran & set(join.sources):
                joins[join] = joins.get(join, frozenset()) | added
        in_order = sorted(done)
        wished = [wish for task in in_order for wish in done[task].parts]
        return Saved(
            folded(saved.values, done),
            saved.step + 1,
            source,
            parent,
            triggered=saved.triggered | {target for writes in done.values() for target in writes.targets},
            parts=tuple(Task(number, name, given) for number, (name, given) in enumerate(wished, 1)),
            joins=joins,
        )

    def _at(self, at: int | None) -> Saved:
        return self.thread[-1 if at is None else at] if self.thread else Saved()

    def _index(self, at: int | None) -> int | None:
        return at if at is not None or not self.thread else len(self.thread) - 1

    def _complete(self, saved: Saved) -> list[Join]:
        return [join for join, seen in saved.joins.items() if seen == set(join.sources)]

    def _cleared(self, saved: Saved) -> Saved:
        """Drop what was due; what still waits, for others to come or to go, goes on waiting."""
        due, complete = {task.name for task in self.due(saved) if not task.part}, self._complete(saved)
        joins = {join: seen for join, seen in saved.joins.items() if join not in complete or join.target not in due}
        return Saved(saved.values, saved.step, triggered=saved.triggered - due | saved.later, joins=joins)


class _Run:
    """Which checkpoints of a run are kept: each as it is made, or the last alone."""

    def __init__(self, thread: list[Saved], mode: str, saved: Saved, base: int | None) -> None:
        self.thread, self.mode, self.base = thread, mode, base
        self.saved = saved
        if not any(saved is one for one in thread):
            self.reaches(saved)

    @property
    def index(self) -> int | None:
        """What the next checkpoint has as its parent."""
        return self.base if self.mode == "exit" else len(self.thread) - 1

    def reaches(self, saved: Saved) -> None:
        self.saved = saved
        if self.mode != "exit":
            self.thread.append(saved)

    def ends(self, outcome: str) -> str:
        if not any(self.saved is one for one in self.thread):
            self.thread.append(self.saved)
        return outcome


def folded(values: Values, done: dict[Task, Writes]) -> Values:
    """Fold writes into values, in the order of the tasks."""
    log, n, last = list(values["log"]), values["n"], values["last"]
    for task in sorted(done):
        written = done[task].values
        log += written.get("log", [])
        n += written.get("n", 0)
        last = merged(last, written.get("last", {}))
    return {"log": log, "n": n, "last": last}
