"""A node actor's rule: attempts, pauses, timeouts and routers, until there is one outcome."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import anyio
import pytest

from runtime.actors import node as node_module
from runtime.actors.node import NodeActor, matching
from runtime.actors.outcomes import COMPLETED, Escalated, Failed, Paused
from runtime.context.runtime import Runtime
from runtime.errors import (
    GraphInterrupt,
    InvalidUpdateError,
    NodeInterrupt,
    ParentCommand,
    UnknownNodeError,
)
from runtime.graph import END, START, StateGraph
from runtime.interrupts import interrupt_id
from runtime.types import Command, RetryPolicy, Send, interrupt
from runtime.types.constants import TASKS, branch_to
from tests.runtime.actors.staging import VIRTUAL, graph, handled, of, stage, task_of
from tests.runtime.engine.sketching import Everything


class Failing:
    """A node that fails some times, and notes when it was tried."""

    def __init__(self, times: int, error: Exception | None = None) -> None:
        self.times = times
        self.error = error or ConnectionError("boom")
        self.tried: list[float] = []
        self.infos: list[Any] = []

    async def __call__(self, _given: Any, runtime: Runtime[Any]) -> Any:
        self.tried.append(anyio.current_time())
        self.infos.append(runtime.execution_info)
        await anyio.sleep(0)
        if len(self.tried) <= self.times:
            raise self.error
        return {"last": len(self.tried)}

    @property
    def pauses(self) -> list[float]:
        return [round(later - earlier, 3) for earlier, later in pairwise(self.tried)]


# ---- attempts --------------------------------------------------------------------------------------------------------


@VIRTUAL
async def test_pauses_between_attempts_grow_to_their_limit() -> None:
    failing = Failing(5)
    policy = RetryPolicy(initial_interval=60, backoff_factor=10, max_interval=3600, max_attempts=6, jitter=False)
    outcome, task = await handled(of(graph(failing, retry_policy=policy)))
    assert (outcome, task.writes) == (COMPLETED, [("last", 6)])
    assert failing.pauses == [60, 600, 3600, 3600, 3600]


@VIRTUAL
async def test_jitter_adds_what_chance_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_module, "random", lambda: 0.25)
    failing = Failing(2)
    await handled(of(graph(failing, retry_policy=RetryPolicy(max_attempts=3))))
    assert failing.pauses == [0.75, 1.25]


@VIRTUAL
async def test_attempts_come_to_an_end_and_the_last_error_counts() -> None:
    failing = Failing(9)
    outcome, task = await handled(of(graph(failing, retry_policy=RetryPolicy(max_attempts=4))))
    assert isinstance(outcome, Failed)
    assert (outcome.error, outcome.attempts, task.writes) == (failing.error, 4, None)


async def test_one_attempt_is_none_more() -> None:
    failing = Failing(9)
    outcome, _ = await handled(of(graph(failing, retry_policy=RetryPolicy(max_attempts=1))))
    assert isinstance(outcome, Failed)
    assert len(failing.tried) == 1


async def test_what_no_policy_names_is_not_tried_again() -> None:
    failing = Failing(9, ValueError("boom"))
    outcome, _ = await handled(of(graph(failing, retry_policy=RetryPolicy())))
    assert isinstance(outcome, Failed)
    assert len(failing.tried) == 1


def test_of_several_policies_the_first_that_matches_decides() -> None:
    several = tuple(RetryPolicy(retry_on=kind) for kind in (KeyError, LookupError, Exception))
    assert matching(several, KeyError()) is several[0]
    assert matching(several, IndexError()) is several[1]
    assert matching(several[:2], ValueError()) is None
    assert matching((), ValueError()) is None


async def test_a_predicate_that_fails_is_the_failure() -> None:
    def predicate(error: Exception) -> bool:
        raise ZeroDivisionError

    run = of(graph(Failing(9), retry_policy=RetryPolicy(retry_on=predicate)))
    with pytest.raises(ZeroDivisionError):
        await handled(run)


@VIRTUAL
async def test_a_node_knows_which_attempt_it_is_and_when_the_first_began() -> None:
    failing = Failing(2)
    await handled(of(graph(failing, retry_policy=RetryPolicy())))
    assert [info.node_attempt for info in failing.infos] == [1, 2, 3]
    assert len({info.node_first_attempt_time for info in failing.infos}) == 1
    assert len({info.idempotency_key for info in failing.infos}) == 1
    once = Failing(0)
    await handled(of(graph(once)))
    assert once.infos[0].node_first_attempt_time >= failing.infos[0].node_first_attempt_time > 0


async def test_a_retry_uses_the_answers_again() -> None:
    asked: list[Any] = []

    async def node(_given: Any) -> None:
        asked.append(interrupt("q"))
        if len(asked) < 3:
            raise ConnectionError

    run = of(graph(node, retry_policy=RetryPolicy(initial_interval=0, jitter=False)))
    task = task_of(run, "node")
    task.answers = ["A"]
    assert await NodeActor(task.node, run).handle(task) is COMPLETED
    assert asked == ["A", "A", "A"]


@VIRTUAL
async def test_a_cancel_between_two_attempts_ends_them() -> None:
    failing = Failing(9)
    run = of(graph(failing, retry_policy=RetryPolicy(initial_interval=60, jitter=False)))
    with anyio.move_on_after(30) as scope:
        await handled(run)
    assert scope.cancelled_caught
    assert len(failing.tried) == 1


# ---- pauses ----------------------------------------------------------------------------------------------------------


async def ask(_given: Any) -> None:
    interrupt("q")


async def ask_by_hand(_given: Any) -> None:
    raise NodeInterrupt("q", "mine")


async def ask_in_a_group(_given: Any) -> None:
    async with anyio.create_task_group() as group:
        for question in ("q1", "q2"):
            group.start_soon(put, question)


async def put(question: str) -> None:
    interrupt(question)


async def test_a_question_pauses_its_node() -> None:
    outcome, task = await handled(stage(node=ask))
    assert isinstance(outcome, Paused)
    assert [question.id for question in outcome.interrupts] == [interrupt_id(task.ns, 0)]
    assert task.writes is None


async def test_a_question_raised_by_hand_is_one_too() -> None:
    outcome, _ = await handled(stage(node=ask_by_hand))
    assert isinstance(outcome, Paused)
    assert [(question.value, question.id) for question in outcome.interrupts] == [("q", "mine")]


async def test_questions_that_left_a_task_group_are_all_put() -> None:
    outcome, _ = await handled(stage(node=ask_in_a_group))
    assert isinstance(outcome, Paused)
    assert sorted(question.value for question in outcome.interrupts) == ["q1", "q2"]


async def test_pauses_raised_by_hand_in_nested_groups_are_found() -> None:
    async def node(_given: Any) -> None:
        inner = BaseExceptionGroup("", [NodeInterrupt("q1", "1"), GraphInterrupt()])
        raise BaseExceptionGroup("", [inner, NodeInterrupt("q2", "2")])

    outcome, _ = await handled(stage(node=node))
    assert isinstance(outcome, Paused)
    assert [question.value for question in outcome.interrupts] == ["q1", "q2"]


async def test_beside_a_failure_a_pause_is_no_error() -> None:
    async def node(_given: Any) -> None:
        raise BaseExceptionGroup("both", [GraphInterrupt(), ValueError("boom")])

    outcome, _ = await handled(stage(node=node))
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, ExceptionGroup)
    assert [str(error) for error in outcome.error.exceptions] == ["boom"]


async def test_beside_a_failure_a_cancel_is_no_error_either() -> None:
    """On trio both leave a nursery in one group; on asyncio the nursery keeps the cancel back."""
    failed = anyio.Event()

    async def fail() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            failed.set()
            raise ValueError("boom")

    async def node(_given: Any) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(fail)
            group.start_soon(anyio.sleep_forever)

    outcomes: list[Any] = []

    async def run() -> None:
        outcomes.append(await handled(stage(node=node)))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert failed.is_set()
    for outcome, _ in outcomes:
        assert isinstance(outcome, Failed)
        assert isinstance(outcome.error, ExceptionGroup)


async def test_except_exception_does_not_swallow_a_pause() -> None:
    async def node(_given: Any) -> None:
        try:
            interrupt("q")
        except Exception:  # noqa: BLE001 - as programs do
            pytest.fail("swallowed")

    outcome, _ = await handled(stage(node=node))
    assert isinstance(outcome, Paused)


async def test_a_command_to_the_parent_leaves_the_graph() -> None:
    command: Command[Any] = Command(graph=Command.PARENT, update={"last": 1})

    async def returns(_given: Any) -> Any:
        return command

    async def raises(_given: Any) -> Any:
        raise ParentCommand(command)

    for node in (returns, raises):
        assert (await handled(stage(node=node)))[0] == Escalated(command)


# ---- routers ---------------------------------------------------------------------------------------------------------


def routed(*routers: Any, schema: Any = Everything) -> Any:
    async def node(_given: Any) -> Any:
        return {"items": [2], "extra": "shown"}

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(schema)
    builder.add_node("node", node).add_node("other", lambda _state: None).add_edge(START, "node")
    for number, router in enumerate(routers):
        router.__name__ = f"router{number}"
        builder.add_conditional_edges("node", router)
    return of(builder)


async def test_routers_answer_one_after_the_other() -> None:
    async def first(_state: Any) -> Any:
        return ["other", END]

    def second(_state: Any) -> Any:
        return Send("other", 1)

    outcome, task = await handled(routed(first, second))
    assert outcome is COMPLETED
    assert task.writes == [("items", [2]), (branch_to("other"), None), (TASKS, Send("other", 1))]


async def test_a_router_sees_its_own_nodes_writes_and_what_else_it_returned() -> None:
    seen: list[Any] = []

    def router(state: Any) -> Any:
        seen.append(state)
        return []

    await handled(routed(router))
    assert seen == [{"items": [2], "refusing": [], "extra": "shown"}]


@pytest.mark.parametrize("answer", ["nobody", None, START])
async def test_a_router_that_leads_nowhere_makes_its_node_fail(answer: Any) -> None:
    outcome, task = await handled(routed(lambda _state: answer))
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, UnknownNodeError)
    assert task.writes is None


async def test_a_router_that_fails_is_tried_again_with_its_node() -> None:
    tried: list[int] = []

    async def node(_given: Any) -> Any:
        tried.append(1)

    def router(_state: Any) -> Any:
        if len(tried) < 3:
            raise ConnectionError
        return END

    builder = graph(node, retry_policy=RetryPolicy(initial_interval=0, jitter=False))
    builder.add_conditional_edges("node", router)
    assert (await handled(of(builder)))[0] is COMPLETED
    assert len(tried) == 3


# ---- what else a node can do wrong -----------------------------------------------------------------------------------


async def test_an_input_that_cannot_be_built_names_the_node() -> None:
    class Strict:
        last: int

        def __init__(self, **values: Any) -> None:
            raise ValueError("no")

    run = stage(node=ask)
    task = task_of(run, "node")
    task.send = None
    task.node.schema = type("Schema", (), {"kind": "dict", "channels": {}, "managed": {}, "build": Strict})()
    outcome = await NodeActor(task.node, run).handle(task)
    assert isinstance(outcome, Failed)
    assert "While building the input of node 'node'" in outcome.error.__notes__


@pytest.mark.parametrize("deep", [True, False])
async def test_debug_finds_an_input_that_was_changed_in_place(deep: bool) -> None:
    async def node(given: Any) -> Any:
        (given["inner"] if deep else given).append(1)

    given: Any = {"inner": []} if deep else []
    outcome, _ = await handled(of(graph(node), debug=True), given=given)
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, InvalidUpdateError)
    assert "changed its input in place" in str(outcome.error)
    assert (await handled(of(graph(node)), given=given))[0] is COMPLETED


async def test_debug_lets_a_node_return_its_input_changed() -> None:
    async def node(given: Any) -> Any:
        given["last"] = 2
        return given

    assert (await handled(of(graph(node), debug=True), given={"last": 1}))[0] is COMPLETED


async def test_an_actor_keeps_nothing_between_messages() -> None:
    run = stage(node=ask)
    actor = NodeActor(run.plan.nodes["node"], run)
    for _ in range(2):
        outcome = await actor.handle(task_of(run, "node"))
        assert isinstance(outcome, Paused)
        assert len(outcome.interrupts) == 1
    assert actor.close() == []
    actor.mailbox.put_nowait(task := task_of(run, "node"))
    assert actor.close() == [task]
