"""The questions of one attempt of a task, matched with what earlier attempts asked and were answered.

Questions that a node asks one after another are told apart by their number: the node starts from its first line each
time and asks them in the same order, though it may word them differently. Questions asked at once (``gather``, a task
group) come in any order, so they are told apart by their values, and no answer ever reaches another question.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime.engine.tasks import HandlerTask
from runtime.errors import GraphInterrupt
from runtime.interrupts import interrupt_id
from runtime.schema.answering import accepted, described
from runtime.schema.coerce import view
from runtime.types.ids import aside_id
from runtime.types.interrupts import Interrupt

if TYPE_CHECKING:
    from collections.abc import Collection

    from runtime.engine.tasks import Task


class Questions:
    """What one attempt asks."""

    __slots__ = ("_calls", "_claimed", "_from_below", "_task", "asked", "at_once", "settled", "stopped")

    def __init__(self, task: Task) -> None:
        self._task = task
        self._calls = 0
        """How many questions were asked in sequence."""
        self.at_once = False
        """Whether questions were asked beside the node's own line of work."""
        self._claimed: set[str] = set()
        """Ids of the questions asked at once that came up again."""
        self._from_below: list[tuple[tuple[object, ...], str | None]] = []
        """Who asked in subgraphs without state, level by level; and the id of what was asked at once."""
        self.asked: list[Interrupt] = []
        """Those without an answer, with those of subgraphs."""
        self.stopped = False
        """Whether a subgraph has paused without a question."""
        self.settled: list[Interrupt] = []
        """Those asked at once that have their answer: kept, because the answer is found by the question's value."""

    def ask(
        self, value: Any, response_schema: Any, loose: list[Any], *, aside: bool, askers: tuple[object, ...] = ()
    ) -> Any:
        """Return the recorded answer, or pause the node. The answer is a copy: what is recorded stays as it was given.

        ``loose``: an answer given while nothing waited; the next question takes it. ``aside``: asked beside the node's
        own line of work, so maybe at once with others. ``askers``: who asks, in subgraphs without state.
        """
        if aside:
            return _copied(self._beside(value, response_schema, loose, askers))
        if askers:
            self._from_below.append((askers, None))
        return _copied(self._in_turn(value, response_schema, loose))

    def withdraw(self, asker: object) -> None:
        """Forget what an asker in a subgraph without state has asked: it asks the same again, or has ended."""
        kept, gone = [], set()
        for askers, mine in self._from_below:
            if asker not in askers:
                kept.append((askers, mine))
            elif mine is None:
                self._calls -= 1
                gone.add(interrupt_id(self._task.ns, self._calls))
            else:
                self._claimed.discard(mine)
                gone.add(mine)
        self._from_below = kept
        self.asked = [question for question in self.asked if question.id not in gone]
        self.settled = [question for question in self.settled if question.id in self._claimed]

    def take_over(self, questions: tuple[Interrupt, ...], askers: tuple[object, ...] = ()) -> None:
        """Add the questions of a subgraph; there are none where it stops at a breakpoint or for a drain."""
        self.stopped = self.stopped or not questions
        known = {question.id for question in self.asked}
        new = [question for question in questions if question.id not in known]
        self.asked.extend(new)
        if askers:
            self._from_below.extend((askers, question.id) for question in new)

    @property
    def open(self) -> bool:
        """Whether something waits: an answer is due, or a subgraph has stopped."""
        return self.stopped or bool(self.asked)

    @property
    def in_turn(self) -> int:
        """How many questions were asked in sequence so far."""
        return self._calls

    def came_up(self, number: int, *, aside: bool) -> bool:
        """Tell whether a question was asked again by now: the ``number``th in sequence, or the one asked at once."""
        return aside_id(self._task.ns, number) in self._claimed if aside else number < self._calls

    def left(self, asked: tuple[Interrupt, ...]) -> tuple[list[Interrupt], list[Interrupt]]:
        """Return earlier questions that did not come up this time: those that wait, and those that have an answer.

        Of what a node does at once, something may be ended by the pause of something else before it asks again.
        """
        task = self._task
        up = {question.id for question in (*asked, *self.settled)}
        up |= {interrupt_id(task.ns, number) for number in range(self._calls + 1)}
        rest = [question for question in task.interrupts if question.id not in up]
        return (
            [question for question in rest if question.id not in task.below],
            [question for question in rest if question.id in task.below],
        )

    def _in_turn(self, value: Any, response_schema: Any, loose: list[Any]) -> Any:
        task, index = self._task, self._calls
        self._calls += 1
        if index == len(task.answers) and loose:
            task.answers.append(loose.pop())
        if index < len(task.answers):
            try:
                return accepted(response_schema, task.answers[index])
            except Exception:
                del task.answers[index:]
                raise
        return self._by_id(interrupt_id(task.ns, index), value, response_schema)

    def _beside(self, value: Any, response_schema: Any, loose: list[Any], askers: tuple[object, ...]) -> Any:
        self.at_once = True
        known = self._known(value)
        mine = self._new_id() if known is None else known
        self._claimed.add(mine)
        if askers:
            self._from_below.append((askers, mine))
        if loose and mine not in self._task.below:
            self._task.below[mine] = loose.pop()
        if mine in self._task.below:
            self.settled.append(Interrupt(value=value, id=mine))
        return self._by_id(mine, value, response_schema)

    def _by_id(self, mine: str, value: Any, response_schema: Any) -> Any:
        below = self._task.below
        if mine in below:
            try:
                return accepted(response_schema, below[mine])
            except Exception:
                del below[mine]
                raise
        question = Interrupt(value=value, id=mine, response_schema=described(response_schema))
        self.asked.append(question)
        raise GraphInterrupt((question,))

    def _known(self, value: Any) -> str | None:
        """Return the id under which a question asked at once is recorded."""
        ids = _aside_ids(self._task)
        for question in self._task.interrupts:
            if question.id in ids and question.id not in self._claimed and _same(question.value, value):
                return str(question.id)
        return None

    def _new_id(self) -> str:
        taken = {question.id for question in self._task.interrupts} | self._claimed
        return next(each for number in range(len(taken) + 1) if (each := aside_id(self._task.ns, number)) not in taken)


def own_ids(task: Task) -> set[str]:
    """Return the ids that questions of the task itself can have so far; other questions are those of its subgraphs."""
    reach = len(task.answers) + len(task.below) + len(task.interrupts)
    places = [task.ns]
    if task.node.handler is not None:
        places.append(HandlerTask(task, task.node.handler, Exception()).ns)
    return {made(ns, number) for ns in places for made in (interrupt_id, aside_id) for number in range(reach)}


def numbered(task: Task, ids: Collection[str]) -> list[tuple[int, bool]]:
    """Return which questions of a task have these ids: the number of each, and whether it was asked at once."""
    reach = range(len(task.answers) + len(task.below) + len(task.interrupts))
    in_turn = [(number, False) for number in reach if interrupt_id(task.ns, number) in ids]
    return in_turn + [(number, True) for number in reach if aside_id(task.ns, number) in ids]


def renamed(old: Task, new: Task) -> dict[str, str]:
    """Return, by its id in one execution of a task, the id of the same question in another execution."""
    reach = len(old.answers) + len(old.below) + len(old.interrupts)
    return {made(old.ns, number): made(new.ns, number) for made in (interrupt_id, aside_id) for number in range(reach)}


def _aside_ids(task: Task) -> set[str]:
    return {aside_id(task.ns, number) for number in range(len(task.below) + len(task.interrupts))}


def _same(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except Exception:  # noqa: BLE001 - arrays and the like have no plain equality
        return repr(one) == repr(other)


def _copied(answer: Any) -> Any:
    """Return an answer with all its lists and dicts copied: it is recorded only once its node has had it.

    Of subclasses, what they hold stays as it is: only they know how it may be set.
    """
    if type(answer) is dict:
        return {key: _copied(value) for key, value in answer.items()}
    if type(answer) is list:
        return [_copied(value) for value in answer]
    return view(answer)
