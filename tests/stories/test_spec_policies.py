"""Retries, timeouts and concurrency of nodes."""

import datetime as dt
from typing import Any

import anyio
import pytest

from runtime.errors import InvalidUpdateError, NodeCancelledError, NodeTimeoutError
from runtime.graph import START, StateGraph
from runtime.runtime import Runtime
from runtime.types import Command, RetryPolicy, Send, TimeoutPolicy
from tests.stories.graphs import CONFIG, Gate, Log, chain, collect, fan, note

pytestmark = pytest.mark.anyio

QUICK: dict[str, Any] = {"initial_interval": 0.001, "jitter": False}


def single(node: Any, *, schema: type = Log, **options: Any) -> StateGraph:
    """START -> n -> END with options of add_node."""
    builder = StateGraph(schema)
    builder.add_node("n", node, **options)
    builder.add_edge(START, "n")
    return builder


class Flaky:
    """Fails with each of these errors in turn, then succeeds."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.attempts: list[int] = []

    async def __call__(self, _state: Any, runtime: Runtime) -> dict[str, Any]:
        assert runtime.execution_info is not None
        self.attempts.append(runtime.execution_info.node_attempt)
        if self.errors:
            raise self.errors.pop(0)
        return {"log": ["once"]}


# Retries


async def test_a_retry_runs_the_node_again_until_it_succeeds(saver: Any) -> None:
    node = Flaky(ConnectionError(), ConnectionError())
    graph = single(node, retry_policy=RetryPolicy(**QUICK)).compile(checkpointer=saver)
    assert await graph.ainvoke({}, CONFIG) == {"log": ["once"]}
    assert node.attempts == [1, 2, 3]


async def test_attempts_are_limited_and_the_last_error_is_raised(saver: Any) -> None:
    errors = [ConnectionError(str(number)) for number in range(5)]
    node = Flaky(*errors)
    graph = single(node, retry_policy=RetryPolicy(max_attempts=2, **QUICK)).compile(checkpointer=saver)
    with pytest.raises(ConnectionError) as caught:
        await graph.ainvoke({}, CONFIG)
    assert caught.value is errors[1]
    assert node.attempts == [1, 2]


async def test_without_a_policy_there_is_no_retry() -> None:
    node = Flaky(ConnectionError())
    with pytest.raises(ConnectionError):
        await single(node).compile().ainvoke({})
    assert node.attempts == [1]


@pytest.mark.parametrize(
    "error",
    [
        ValueError(), TypeError(), ArithmeticError(), ImportError(), LookupError(), NameError(), SyntaxError(),
        RuntimeError(), ReferenceError(), OSError(), TimeoutError(),
    ],
)  # fmt: skip
async def test_errors_that_are_not_retried_by_default(error: Exception) -> None:
    node = Flaky(error)
    with pytest.raises(type(error)):
        await single(node, retry_policy=RetryPolicy(**QUICK)).compile().ainvoke({})
    assert node.attempts == [1]


@pytest.mark.parametrize(
    "error", [ConnectionError(), AssertionError(), MemoryError(), Exception(), InvalidUpdateError()]
)
async def test_errors_that_are_retried_by_default(error: Exception) -> None:
    node = Flaky(error)
    await single(node, retry_policy=RetryPolicy(**QUICK)).compile().ainvoke({})
    assert node.attempts == [1, 2]


@pytest.mark.parametrize(
    ("retry_on", "expected"),
    [(ValueError, [1, 2]), ((KeyError, ValueError), [1, 2]), (KeyError, [1]), (lambda e: "again" in str(e), [1, 2])],
)
async def test_retry_on_takes_a_class_classes_or_a_predicate(retry_on: Any, expected: list[int]) -> None:
    node = Flaky(ValueError("again"))
    graph = single(node, retry_policy=RetryPolicy(retry_on=retry_on, **QUICK)).compile()
    if expected == [1]:
        with pytest.raises(ValueError, match="again"):
            await graph.ainvoke({})
    else:
        await graph.ainvoke({})
    assert node.attempts == expected


async def test_the_first_matching_policy_decides() -> None:
    policies = [
        RetryPolicy(max_attempts=1, retry_on=KeyError, **QUICK),
        RetryPolicy(max_attempts=3, retry_on=LookupError, **QUICK),
    ]
    node = Flaky(KeyError(), KeyError())
    with pytest.raises(KeyError):
        await single(node, retry_policy=policies).compile().ainvoke({})
    assert node.attempts == [1]
    node = Flaky(IndexError(), IndexError())
    await single(node, retry_policy=policies).compile().ainvoke({})
    assert node.attempts == [1, 2, 3]


async def test_siblings_are_not_retried() -> None:
    runs: list[str] = []
    node = Flaky(ConnectionError())
    builder = StateGraph(Log)
    builder.add_node("n", node, retry_policy=RetryPolicy(**QUICK))
    builder.add_node("ok", lambda _state: runs.append("ok"))
    builder.add_edge(START, "n")
    builder.add_edge(START, "ok")
    await builder.compile().ainvoke({})
    assert runs == ["ok"]


async def test_a_bad_return_value_is_retried_like_a_failure() -> None:
    results: list[Any] = [3, {"log": ["ok"]}]
    graph = single(lambda _state: results.pop(0), retry_policy=RetryPolicy(**QUICK)).compile()
    assert (await graph.ainvoke({}))["log"] == ["ok"]


# Timeouts


async def never(_state: Any) -> None:
    await anyio.sleep_forever()


@pytest.mark.parametrize(
    "timeout", [0.01, dt.timedelta(milliseconds=10), TimeoutPolicy(run_timeout=0.01), TimeoutPolicy(idle_timeout=0.01)]
)
async def test_a_node_that_takes_too_long_is_cancelled(saver: Any, timeout: Any) -> None:
    graph = single(never, timeout=timeout).compile(checkpointer=saver)
    with anyio.fail_after(10), pytest.raises(NodeTimeoutError, match="n") as caught:
        await graph.ainvoke({}, CONFIG)
    assert caught.value.node == "n"
    assert caught.value.timeout == pytest.approx(0.01)
    assert caught.value.kind == ("idle" if getattr(timeout, "idle_timeout", None) else "run")
    snapshot = await graph.aget_state(CONFIG)
    assert snapshot.next == ("n",)
    assert "NodeTimeoutError" in snapshot.tasks[0].error


async def test_a_timeout_is_retryable() -> None:
    attempts: list[int] = []

    async def n(_state: Any) -> dict[str, Any]:
        attempts.append(1)
        if len(attempts) == 1:
            await anyio.sleep_forever()
        return {"log": ["second"]}

    graph = single(n, timeout=0.01, retry_policy=RetryPolicy(**QUICK)).compile()
    with anyio.fail_after(10):
        assert (await graph.ainvoke({}))["log"] == ["second"]


async def test_a_node_within_its_timeout_is_untouched() -> None:
    assert (await single(note("n"), timeout=60).compile().ainvoke({}))["log"] == ["n"]


@pytest.mark.parametrize("timeout", [0, -1, dt.timedelta(0)])
def test_a_timeout_must_be_positive(timeout: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        single(never, timeout=timeout).compile()


def test_a_sync_node_cannot_have_a_timeout() -> None:
    with pytest.raises(ValueError, match="(?i)sync"):
        single(lambda _state: None, timeout=1).compile()


async def test_a_step_timeout_ends_the_superstep_and_keeps_what_finished(saver: Any) -> None:
    runs: list[str] = []

    async def slow(_state: Any) -> dict[str, Any]:
        runs.append("slow")
        if len(runs) == 1:
            await anyio.sleep_forever()
        return {"log": ["slow"]}

    graph = fan("ok", ("slow", slow), first=None).compile(checkpointer=saver)
    graph.step_timeout = 0.2
    with anyio.fail_after(10), pytest.raises(TimeoutError):
        await graph.ainvoke({}, CONFIG)
    snapshot = await graph.aget_state(CONFIG)
    assert snapshot.next == ("slow",)
    assert snapshot.values["log"] == ["ok"]
    assert (await graph.ainvoke(None, CONFIG))["log"] == ["ok", "slow", "join"]


# Concurrency


@pytest.mark.parametrize(("limit", "expected"), [(1, 1), (3, 3), (None, 10)])
async def test_max_concurrency_limits_how_many_nodes_run_at_once(limit: int | None, expected: int) -> None:
    running = 0
    peak = 0
    full = anyio.Event()

    async def work(_item: int) -> dict[str, Any]:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        if running == expected:
            full.set()
        await full.wait()
        for _ in range(5):
            await anyio.sleep(0)
        running -= 1
        return {"log": ["w"]}

    builder = StateGraph(Log)
    builder.add_node("work", work)
    builder.add_conditional_edges(START, lambda _state: [Send("work", n) for n in range(10)], ["work"])
    config: Any = {} if limit is None else {"max_concurrency": limit}
    with anyio.fail_after(10):
        assert len((await builder.compile().ainvoke({}, config))["log"]) == 10
    assert peak == expected


async def test_a_failure_cancels_its_siblings_and_a_question_does_not(saver: Any) -> None:
    cancelled: list[str] = []
    gate = Gate()
    started = anyio.Event()

    async def slow(_state: Any) -> None:
        started.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            cancelled.append("slow")
            raise

    async def bad(state: Any) -> Any:
        await started.wait()
        return await gate.fail(state)

    gate.open.set()
    graph = fan(("slow", slow), ("bad", bad)).compile(checkpointer=saver)
    with anyio.fail_after(10), pytest.raises(ValueError, match="boom"):
        await graph.ainvoke({}, CONFIG)
    assert cancelled == ["slow"]


async def test_a_node_that_cancels_itself_is_an_error(saver: Any) -> None:
    async def n(_state: Any) -> None:
        if anyio.get_cancelled_exc_class().__module__.startswith("trio"):
            pytest.skip("trio does not let programs make its cancellation")
        raise anyio.get_cancelled_exc_class()

    graph = single(n).compile(checkpointer=saver)
    with pytest.raises(NodeCancelledError):
        await graph.ainvoke({}, CONFIG)


async def test_a_base_exception_of_a_node_reaches_the_caller(saver: Any) -> None:
    class Stop(BaseException):
        pass

    async def n(_state: Any) -> None:
        raise Stop

    with pytest.raises(Stop):
        await single(n).compile(checkpointer=saver).ainvoke({}, CONFIG)


async def test_a_base_exception_beside_a_finished_sibling_is_recorded_and_keeps_it(saver: Any) -> None:
    class Stop(BaseException):
        pass

    gate = Gate("ok")
    gate.error = Stop("now")  # type: ignore[assignment]
    graph = fan("ok", ("bad", gate.fail), first=None).compile(checkpointer=saver)
    with pytest.raises(Stop):
        await gate.run(graph, {}, CONFIG)
    snapshot = await graph.aget_state(CONFIG)
    assert (snapshot.values["log"], snapshot.next) == (["ok"], ("bad",))
    assert {task.name: task.error for task in snapshot.tasks} == {"ok": None, "bad": "Stop('now')"}
    gate.mended = True
    assert (await graph.ainvoke(None, CONFIG))["log"] == ["bad", "ok", "join"]


async def test_streamed_chunks_of_a_failed_attempt_are_not_withdrawn_but_its_writes_are() -> None:
    attempts: list[int] = []

    async def n(_state: Any, runtime: Runtime) -> Any:
        attempts.append(1)
        runtime.stream_writer(len(attempts))
        if len(attempts) == 1:
            raise ConnectionError
        return Command(update={"log": ["once"]})

    graph = single(n, retry_policy=RetryPolicy(**QUICK)).compile()
    assert await collect(graph.astream({}, stream_mode=["custom", "updates"])) == [
        ("custom", 1),
        ("custom", 2),
        ("updates", {"n": {"log": ["once"]}}),
    ]


async def test_a_chain_of_many_nodes_runs() -> None:
    names = [f"n{number:02}" for number in range(30)]
    assert (await chain(*names).compile().ainvoke({}))["log"] == names
