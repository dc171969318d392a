"""Supersteps in plain Python: dicts, sets and lists, and nothing of the runtime. What a graph should do is read here.

A ``Sketch`` describes a graph whose nodes are pure functions of what they are given. ``Reference`` runs it superstep by
superstep and keeps every checkpoint that a thread should have.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from hypothesis import reject

LIMIT = 5
"""Supersteps of nodes that one run may take."""

CROWD = 60
"""Tasks of one superstep that are worth comparing: Sends that lead to Sends may be thrice as many each time."""

Values = dict[str, Any]


class Conflict(Exception):  # noqa: N818 - what happens, not what is raised by the runtime
    """Two writes in one superstep to a key that takes one."""


class LimitReached(Exception):  # noqa: N818 - likewise
    """The run took all supersteps it may, and more is due."""


@dataclass(frozen=True)
class Node:
    """A node: what it writes, and who follows it."""

    name: str
    writes: frozenset[str] = frozenset()
    """Of log, total, last, flash and topic."""
    overwrites: bool = False
    """Whether it starts the log anew when that is long."""
    edges: tuple[str, ...] = ()
    routes: tuple[str | tuple[str, int], ...] = ()
    """Where its conditional edge goes while the log is short: names, and Sends with their input."""
    defer: bool = False


@dataclass(frozen=True)
class Sketch:
    """A graph."""

    nodes: tuple[Node, ...]
    """In the order in which they are added."""
    start: Node
    """START, which has edges and routes only."""
    joins: tuple[tuple[tuple[str, ...], str], ...] = ()

    def __getitem__(self, name: str) -> Node:
        return next(node for node in (*self.nodes, self.start) if node.name == name)


@dataclass(frozen=True)
class Fresh:
    """A log that replaces the one there was."""

    items: list[str]


def behave(node: Node, given: Values | int) -> Values:
    """Return what a node writes; ``given`` is the state, or the input of a Send."""
    seen = given if isinstance(given, int) else len(given["log"]) + 10 * len(given.get("topic", ()))
    mark = f"{node.name}{seen}"
    long = isinstance(given, dict) and len(given["log"]) > 3
    everything = {
        "log": Fresh([mark]) if node.overwrites and long else [mark],
        "total": seen + 1,
        "last": mark,
        "flash": mark,
        "topic": [mark],
    }
    return {key: everything[key] for key in sorted(node.writes)}


def route(node: Node, log_length: int) -> list[str | tuple[str, int]]:
    """Return where a node's conditional edge goes."""
    return list(node.routes) if log_length < 6 else []


def fold_total(total: int, write: int) -> int:
    """Fold in an order that shows: neither commutative nor associative."""
    return (total * 3 + write) % 1009


@dataclass
class Machine:
    """Everything that decides what runs next."""

    values: Values = field(default_factory=lambda: {"log": [], "total": 0})
    given: Values | None = None
    """Input that START has not taken yet."""
    fired: set[str] = field(default_factory=set)
    """Nodes that an edge, a route or a Command triggered."""
    joined: dict[int, set[str]] = field(default_factory=dict)
    """By number of the join, which of its sources have run."""
    patient: set[str] = field(default_factory=set)
    """Deferred nodes that wait for the end of the run."""
    released: set[str] = field(default_factory=set)
    """Deferred nodes whose own trigger was opened."""
    opened: set[int] = field(default_factory=set)
    """Joins of deferred nodes that were opened."""
    sends: list[tuple[str, int]] = field(default_factory=list)


@dataclass
class Point:
    """A checkpoint."""

    source: str
    step: int
    parent: int | None
    machine: Machine
    next: tuple[str, ...]
    conflict: bool = False
    """Whether its tasks did not go together; then the results of those that came first are stored against it."""

    @property
    def values(self) -> Values:
        """The state at the start of the superstep."""
        return self.machine.values


class Reference:
    """One thread of a sketched graph."""

    def __init__(self, sketch: Sketch) -> None:
        self.sketch = sketch
        self.points: list[Point] = []
        """Every checkpoint, oldest first."""

    # ---- what a caller can do ----------------------------------------------------------------------------------

    def input(self, given: Values, at: int | None = None) -> Values:
        """Run with new input, from the head or an older point; what was due there is dropped."""
        base = self._base(at)
        machine = Machine() if base is None else copy.deepcopy(self.points[base].machine)
        dropped = self._due(machine)
        if dropped:
            self._pass(machine, self._consume(machine, dropped), [], starting=True)
        machine.given = given
        step = -1 if base is None else self.points[base].step + 1
        here = self._record("input", step, base, machine)
        return self._run(here, LIMIT + 1)

    def resume(self) -> Values:
        """Go on from the head with what is due."""
        head = len(self.points) - 1
        return self._run(head, self._allowed(head))

    def replay(self, at: int) -> Values:
        """Go on from a point, on a branch of its own."""
        point = self.points[at]
        head = at == len(self.points) - 1
        if not head or point.source not in ("update", "fork") or point.conflict:
            at = self._record("fork", point.step + 1, at, copy.deepcopy(point.machine))
        return self._run(at, self._allowed(at))

    def update(self, at: int | None, name: str, update: Values) -> None:
        """Write as if a node had returned something; what else was due is dropped."""
        base = self._base(at)
        machine = Machine() if base is None else copy.deepcopy(self.points[base].machine)
        writes = self._writes(machine, self.sketch[name], update)
        dropped = {task for task in self._due(machine) if isinstance(task, str)} | {name}
        self._pass(machine, self._consume(machine, sorted(dropped)), [writes])
        step = -1 if base is None else self.points[base].step + 1
        self._record("update", step, base, machine)

    def _base(self, at: int | None) -> int | None:
        if at is not None:
            return at
        return len(self.points) - 1 if self.points else None

    def _allowed(self, at: int) -> int:
        """START's superstep is not counted."""
        return LIMIT + (1 if "__start__" in self.points[at].next else 0)

    # ---- supersteps --------------------------------------------------------------------------------------------

    def _run(self, at: int, allowed: int) -> Values:
        while self.points[at].next:
            if not allowed:
                raise LimitReached
            allowed -= 1
            at = self._superstep(at)
        return self.points[at].values

    def _superstep(self, at: int) -> int:
        point = self.points[at]
        machine = copy.deepcopy(point.machine)
        tasks = self._due(machine)
        if len(tasks) > CROWD:
            reject()
        writes = [self._task(machine, task) for task in tasks]
        try:
            self._pass(machine, self._consume(machine, [task for task in tasks if isinstance(task, str)]), writes)
        except Conflict:
            point.conflict = True
            raise
        return self._record("loop", point.step + 1, at, machine)

    def _due(self, machine: Machine) -> list[str | tuple[str, int]]:
        """Return the tasks in the order in which they are folded: nodes by name, then Sends by number."""
        names = {"__start__"} if machine.given is not None else set()
        for node in self.sketch.nodes:
            own = node.name in (machine.released if node.defer else machine.fired)
            if own or any(number in machine.opened or not node.defer for number in self._complete(machine, node.name)):
                names.add(node.name)
        return [*sorted(names), *machine.sends]

    def _complete(self, machine: Machine, name: str) -> list[int]:
        return [
            number
            for number, (sources, target) in enumerate(self.sketch.joins)
            if target == name and machine.joined.get(number) == set(sources)
        ]

    def _task(self, machine: Machine, task: str | tuple[str, int]) -> list[tuple[str, Any]]:
        if task == "__start__":
            assert machine.given is not None
            return self._writes(machine, self.sketch.start, machine.given)
        if isinstance(task, str):
            return self._writes(machine, self.sketch[task], behave(self.sketch[task], machine.values))
        node = self.sketch[task[0]]
        return self._writes(machine, node, behave(node, task[1]))

    def _writes(self, machine: Machine, node: Node, update: Values) -> list[tuple[str, Any]]:
        """Return a task's writes: state, edges, joins, and what its router answers, who sees them and no sibling's."""
        seen = copy.deepcopy(machine.values)
        self._fold(seen, [list(update.items())])
        return [
            *update.items(),
            *(("to", name) for name in node.edges),
            *(
                ("join", (number, node.name))
                for number, (names, _) in enumerate(self.sketch.joins)
                if node.name in names
            ),
            *(("to" if isinstance(target, str) else "send", target) for target in route(node, len(seen["log"]))),
        ]

    @staticmethod
    def _fold(values: Values, writes: list[list[tuple[str, Any]]]) -> None:
        by_key: dict[str, list[Any]] = {}
        for group in writes:
            for key, value in group:
                by_key.setdefault(key, []).append(value)
        anew = [write for write in by_key.get("log", ()) if isinstance(write, Fresh)]
        if len(by_key.get("last", ())) > 1 or len(anew) > 1:
            raise Conflict
        if anew:
            values["log"] = anew[0].items
        else:
            values["log"] = [*values["log"], *(item for write in by_key.get("log", ()) for item in write)]
        for write in by_key.get("total", ()):
            values["total"] = fold_total(values["total"], write)
        for key in ("last", "flash"):
            if key in by_key:
                values[key] = by_key[key][-1]
        if "topic" in by_key:
            values["topic"] = [item for write in by_key["topic"] for item in write]

    def _consume(self, machine: Machine, names: list[Any]) -> set[str]:
        """Take back what started these nodes; return which keys of the state are forgotten unless written again."""
        for name in names:
            for number in self._complete(machine, name):
                if not self.sketch[name].defer or number in machine.opened:
                    machine.joined[number] = set()
                    machine.opened.discard(number)
            if name in machine.released:
                machine.released.discard(name)
        machine.fired, machine.sends, machine.given = set(), [], None
        return {"flash", "topic"}

    def _pass(
        self,
        machine: Machine,
        forgotten: set[str],
        writes: list[list[tuple[str, Any]]],
        *,
        starting: bool = False,
    ) -> None:
        """Let a superstep pass: fold what was written, then see who is to run."""
        written = {key for group in writes for key, _ in group}
        self._fold(machine.values, writes)
        for key in forgotten - written:
            machine.values.pop(key, None)
        completed = False
        for group in writes:
            for kind, value in group:
                if kind == "to":
                    self._trigger(machine, value)
                elif kind == "send":
                    machine.sends.append(value)
                elif kind == "join":
                    completed |= self._join(machine, *value)
        if not (machine.fired or machine.sends or completed or starting):
            machine.released |= machine.patient
            machine.patient = set()
            machine.opened |= {
                number for node in self.sketch.nodes if node.defer for number in self._complete(machine, node.name)
            }

    def _trigger(self, machine: Machine, name: str) -> None:
        if self.sketch[name].defer:
            machine.patient.add(name)
            machine.released.discard(name)
        else:
            machine.fired.add(name)

    def _join(self, machine: Machine, number: int, name: str) -> bool:
        """Note that a source has run; return whether that opened the join."""
        sources, target = self.sketch.joins[number]
        seen = machine.joined.setdefault(number, set())
        if name in seen:
            return False
        seen.add(name)
        return seen == set(sources) and not self.sketch[target].defer

    def _record(self, source: str, step: int, parent: int | None, machine: Machine) -> int:
        due = self._due(machine)
        added = ["__start__", *(node.name for node in self.sketch.nodes)]
        names = sorted((task for task in due if isinstance(task, str)), key=added.index)
        sent = [task[0] for task in due if not isinstance(task, str)]
        self.points.append(Point(source, step, parent, machine, (*sent, *names)))
        return len(self.points) - 1
