"""Answers to questions of a point that the thread has left: each makes a branch, on which the rest stays as it was.

The branch gives tasks and calls new ids, so what was stored of them is handed on: results of those that the answer does
not reach, answers to other questions. Calls and subgraphs are known only when their caller makes them again; then each
is given what the same one had, unless something had changed for its caller before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from typing_extensions import override

from runtime.engine.questions import numbered, own_ids
from runtime.engine.resuming import by_id, carry_over, is_id_map, put, reopen, reopened, waiting
from runtime.engine.tasks import handler_of
from runtime.engine.vetting import IN_ORDER, vet
from runtime.errors import UnknownInterruptError
from runtime.interrupts import interrupt_id
from runtime.run.calls import CallTask
from runtime.run.metadata import CALLER, callers_in
from runtime.run.retaining import retain_tasks
from runtime.run.travelling import Travel, id_in, names_of
from runtime.types.command import Send
from runtime.types.constants import CALLED_BY, INTERRUPT, NS_END, NS_SEP, RESUME, TASKS

if TYPE_CHECKING:
    from persistence.contracts.checkpoint import CheckpointTuple
    from runtime.context.scope import Scope
    from runtime.engine.tasks import Task
    from runtime.run.conductor import Conductor
    from runtime.run.journal import Journal
    from runtime.run.nesting import Nested


async def answer_anew(run: Conductor, saved: CheckpointTuple, tasks: list[Task], resume: Any) -> list[Task]:
    """Answer questions that were put at a point of the run's own graph; they may have an answer, on another branch."""
    others = await _others(run, saved, tasks, resume)
    given = reopened(tasks, resume, others)
    run.carried = Carried(run, tasks, given)
    answered = reopen(tasks, given, others)
    run.answering = bool(answered)
    own = {key for task in answered for key in own_ids(task)}
    if run.journal is not None and (below := given.keys() - own):
        targets = await _targets(run, below)
        known = {*_put_by_calls(saved, tasks)}.union(*(asked.ids for asked in targets.values()))
        _check_reach(below - known)
        places: dict[str, str] = {}
        for ns, asked in targets.items():
            places |= {place: at for place, at in asked.parents.items() if place not in (run.ns, *run.parents)}
            places[ns] = asked.checkpoint_id
        callers = {ns: asked.callers[-1] for ns, asked in targets.items() if asked.callers}
        run.call.travel = Travel(run.checkpoint_id, places, callers, answering=True, given=frozenset(given))
    if not answered and not is_id_map(resume):
        run.loose_answers.append(resume)
    return answered


async def answer_on_journey(
    run: Conductor, saved: CheckpointTuple, travel: Travel, tasks: list[Task], on_the_way: list[Task], resume: Any
) -> list[Task]:
    """Answer questions that were put at, or above, the point that a journey leads to."""
    if run.nested is None:
        resume = await _checked(run, travel, resume)
        travel.given = frozenset(resume)
    calls = _put_by_calls(saved, tasks)
    anew = travel.given & (put(tasks).keys() | calls.keys())
    left = {question.id for task in tasks for question in waiting(task)}  # what had not got here may have by now
    ours = {key: value for key, value in resume.items() if key in anew or key in left}
    run.carried = Carried(run, tasks, resume, known=ours)
    answered = reopen(tasks, ours, calls)
    for task in on_the_way:
        task.below = {**task.below, **resume}
        if task not in answered:
            answered.append(task)
    run.answering = True
    return answered


class Carried:
    """What a branch's first superstep hands on to the calls and subgraphs of its tasks, of what the same ones had.

    One that is made after something has changed for its caller, the answer itself or what followed from it, is new.
    """

    def __init__(
        self, run: Conductor, tasks: list[Task], given: Mapping[str, Any], *, known: Collection[str] | None = None
    ) -> None:
        """``given``: answers, by the ids of the questions; ``known``: those of questions from here or below."""
        self._run = run
        self._start = run.checkpoint_id
        """Where the branch begins."""
        self._given = given
        self._vague = _is_vague(tasks, given if known is None else known)
        """Whether not every caller can tell whether it put an answered question."""
        self._asked = {task.path: numbered(task, given) for task in tasks}
        """By task, which of its own questions are answered."""
        self._redone: set[Task] = set()
        """Calls whose result may be another than before."""
        self._changed: set[Task] = set()
        """Tasks and calls that have had such a result."""
        self._retained: dict[CallTask, PastCall] = {}
        """Calls that have their result of the past."""

    def hand_on(self, call: CallTask, past_ns: str, *, again: bool) -> None:
        """Give a call what the same one had; ``again``: what it runs has to be run again."""
        if self._stale(call.around):
            self._changed.add(call)
            return
        old = PastCall(call, past_ns)
        stored = self._run.kept.get(old.id)
        if stored is None:
            return
        old.recall(stored)
        own = own_ids(old)
        given = {key: value for key, value in call.below.items() if key in own and key in self._given}
        if given:
            self._asked[call.path] = numbered(old, given)
            reopen([old], given)
            self._redone.add(call)
        elif again or not old.through.isdisjoint(self._given) or (self._vague and old.through - own - {*old.below}):
            old.writes = None
        rest = {key: value for key, value in call.below.items() if key not in given}
        carry_over(old, call)
        if call.finished:
            self._retained[call] = old
        call.through = old.through | call.below.keys()
        anew = {key: value for key, value in rest.items() if key in self._given}
        call.below = {**rest, **call.below, **anew}

    async def past_of(self, nested: Nested, journal: Journal, past_ns: str, caller: str) -> CheckpointTuple | None:
        """Return where a subgraph starts from that no answer leads into; ``caller``: the past id of its task."""
        stale = self._stale(nested.scope)
        if nested.per_thread:
            first, last = await _ends(journal, past_ns, caller)
            if last is not None and not stale:
                return last
            return await journal.load_before(past_ns, first or self._start)
        return None if stale else await journal.load_at(past_ns, None)

    async def retain(self, call: CallTask) -> None:
        """Let the branch see what was kept by a call that has its result of the past."""
        if (old := self._retained.pop(call, None)) is not None:
            await retain_tasks(self._run, [(old, call)])

    def ended(self, call: CallTask) -> None:
        """Note that a call has its result."""
        if call in self._redone:
            self.changes(call.around)

    def changes(self, scope: Scope) -> None:
        """Note that a task or call has got a result that may be another than before."""
        task = scope.task
        self._changed.add(task)
        if isinstance(task, CallTask):
            self._redone.add(task)
        del task.answers[scope.questions.in_turn :]

    def _stale(self, scope: Scope) -> bool:
        task = scope.task
        asked = self._asked.get(task.path, ())
        return task in self._changed or any(scope.questions.came_up(number, aside=aside) for number, aside in asked)


class PastCall(CallTask):
    """The same call in the past."""

    __slots__ = ("_past_ns",)

    def __init__(self, call: CallTask, ns: str) -> None:
        super().__init__(call.node, call.around, call.index, None)
        self.below = {}
        self._past_ns = ns
        self._id = id_in(ns)

    @property
    @override
    def ns(self) -> str:
        """The namespace that it had."""
        return self._past_ns


def _put_by_calls(saved: CheckpointTuple, tasks: list[Task]) -> dict[str, Task]:
    """Return the ids of questions that calls of @task functions have put, also those answered since, with the tasks."""
    own = {task.id: task for task in tasks}
    own |= {handler_of(task).id: task for task in tasks if task.node.handler is not None}
    callers = {task_id: value for task_id, channel, value in saved.pending_writes or () if channel == CALLED_BY}
    by_call: dict[str, Task] = {}
    for call_id, channel, value in saved.pending_writes or ():
        if channel == INTERRUPT and call_id not in own:
            caller = call_id
            for _ in callers:
                caller = callers.get(caller, caller)
            if (task := own.get(caller, tasks[0] if len(tasks) == 1 else None)) is not None:
                by_call |= dict.fromkeys((question.id for question in value), task)
    return by_call


def _is_vague(tasks: list[Task], reopened: Collection[str]) -> bool:
    """Tell whether a call may have put an answered question, or made a call that did, and not know of it any more.

    A task keeps the questions of its last pause; those before have made room for them.
    """
    known = {question.id for task in tasks for question in task.interrupts}
    known |= {interrupt_id(task.ns, index) for task in tasks for index in range(len(task.answers))}
    return not known.issuperset(reopened)


async def _others(run: Conductor, saved: CheckpointTuple, tasks: list[Task], resume: Any) -> Mapping[str, Task]:
    """Return the ids of questions that what the tasks run has put before their last pause, each with its task."""
    others = _put_by_calls(saved, tasks)
    if is_id_map(resume) and run.journal is not None:
        unknown = resume.keys() - others.keys() - put(tasks).keys()
        for ns, asked in (await _targets(run, unknown) if unknown else {}).items():
            if asked.parents.get(run.ns) == run.checkpoint_id and (task := _runner(tasks, ns, asked)) is not None:
                others |= dict.fromkeys(asked.ids, task)
    return others


def _runner(tasks: list[Task], ns: str, asked: _Asked) -> Task | None:
    """Return the task that ran a subgraph, itself or by what it ran."""
    for task in tasks:
        handler = () if task.node.handler is None else (handler_of(task),)
        for each in (task, *handler):
            if each.id in asked.callers or f"{ns}{NS_SEP}".startswith(f"{each.ns}{NS_SEP}"):
                return task
    # A state that is kept has a namespace of names.
    named = [task for task in tasks if f"{ns}{NS_SEP}".startswith(f"{names_of(task.ns)}{NS_SEP}")]
    return named[0] if len(named) == 1 or len(tasks) == 1 else None


class _Asked(NamedTuple):
    """Where a subgraph put questions."""

    checkpoint_id: str
    ids: frozenset[str]
    parents: Mapping[str, str]
    """Checkpoints of the graphs around it."""
    callers: Sequence[str]
    """The tasks and calls that it ran in, outermost first, if it keeps its state."""


async def _targets(run: Conductor, question_ids: Collection[str]) -> dict[str, _Asked]:
    """Return where subgraphs put these questions, by namespace."""
    assert run.journal is not None  # noqa: S101 - see the caller
    targets: dict[str, _Asked] = {}
    for saver in (run.journal.saver, *_savers_below(run)):
        targets.update(await _asking(saver, run.journal.thread_id, question_ids))
    targets.pop(run.ns, None)
    return targets


async def _asking(saver: Any, thread_id: str, question_ids: Collection[str]) -> dict[str, _Asked]:
    """Return, by namespace, the first checkpoint of a saver at which some of these questions were put."""
    found: dict[str, _Asked] = {}
    async for each in saver.alist({"configurable": {"thread_id": thread_id}}):
        if ids := _asked_at(vet(each)).intersection(question_ids):
            where = each.config["configurable"]
            ns = where.get("checkpoint_ns", "")
            known = found[ns].ids if ns in found else frozenset()
            parents = each.metadata.get("parents") or {}
            found[ns] = _Asked(where["checkpoint_id"], known | ids, parents, callers_in(each.metadata))
    return found


def _asked_at(saved: CheckpointTuple) -> set[str]:
    """Return the ids of the questions that were put at a checkpoint, also those whose place later ones have taken."""
    ids: set[str] = set()
    ns = saved.config["configurable"].get("checkpoint_ns", "")
    for task_id, channel, value in saved.pending_writes or ():
        if channel == INTERRUPT:
            ids.update(question.id for question in (value if isinstance(value, (list, tuple)) else (value,)))
        elif channel == RESUME:
            answers = value[IN_ORDER] if isinstance(value, dict) and IN_ORDER in value else value
            for name in _due_at(saved) if isinstance(answers, list) else ():
                task_ns = f"{ns}{NS_SEP if ns else ''}{name}{NS_END}{task_id}"
                ids.update(interrupt_id(task_ns, number) for number in range(len(answers)))
    return ids


def _due_at(saved: CheckpointTuple) -> set[str]:
    """Return the names of the nodes that were due at a checkpoint."""
    triggered = {name.rpartition(":")[2] for name in saved.checkpoint["channel_versions"] if ":" in name}
    sent = saved.checkpoint["channel_values"].get(TASKS) or ()
    return triggered | {one.node for one in sent if isinstance(one, Send)}


async def _ends(journal: Journal, ns: str, caller: str) -> tuple[str | None, CheckpointTuple | None]:
    """Return the id of the first checkpoint that a caller made of a state that is kept, and its last one."""
    place = {"configurable": {"thread_id": journal.thread_id, "checkpoint_ns": ns}}
    made = [vet(found) async for found in journal.saver.alist(place, filter={CALLER: caller})]
    return (made[-1].checkpoint["id"], made[0]) if made else (None, None)


def _savers_below(run: Conductor) -> list[Any]:
    """Return the savers that subgraphs, as far as nodes show them, have of their own."""
    savers: dict[int, Any] = {}
    waiting_programs, seen = [run.program], set[int]()
    while waiting_programs:
        program = waiting_programs.pop()
        for node in program.plan.nodes.values():
            for below in (*node.subgraphs, *(() if node.handler is None else node.handler.subgraphs)):
                if id(below) not in seen:
                    seen.add(id(below))
                    waiting_programs.append(below)
                    if below.saver is not None and not isinstance(below.saver, bool):
                        savers[id(below.saver)] = below.saver
    savers.pop(id(run.program.saver), None)
    return list(savers.values())


def _check_reach(nowhere: Collection[str]) -> None:
    """Refuse to answer at an old point what a branch of it would put under another id, and so ask again."""
    if unreachable := sorted(nowhere):
        msg = (
            f"Question {unreachable[0]!r} was put in a subgraph with a saver of its own, and none of the savers that "
            "the graph's nodes show has it. At a checkpoint that the thread has left, it cannot be answered again: go "
            "on from there with None as input, and answer the question that is put then."
        )
        raise UnknownInterruptError(msg, reason="not_pending", interrupt_ids=unreachable, pending_ids=())


async def _checked(run: Conductor, travel: Travel, resume: Any) -> Mapping[str, Any]:
    """Return answers by id, checked against the questions that were put at the addressed point."""
    journal, place = run.journal, max(travel.targets, key=len)
    assert journal is not None  # noqa: S101 - a place in a thread was addressed
    found = await journal.load_at(place, travel.targets[place])
    put = [
        question.id
        for _, channel, value in (found.pending_writes if found is not None else None) or ()
        if channel == INTERRUPT
        for question in value
    ]
    return by_id(put, list(dict.fromkeys(put)), resume)
