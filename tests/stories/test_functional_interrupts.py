"""Questions that workflows and their tasks ask: all are listed, any can be answered, nothing answered runs twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import anyio
import pytest
from hypothesis import given as given_values
from hypothesis import settings
from hypothesis import strategies as st
from pydantic import BaseModel

from persistence.memory import InMemorySaver
from persistence.sqlite import SqliteSaver
from runtime.func import entrypoint, task
from runtime.types import Command, interrupt
from tests.stories.asking import Asking, all_of, ids, pending
from tests.stories.graphs import CONFIG, collect

pytestmark = pytest.mark.anyio


# ---- one at a time ---------------------------------------------------------------------------------------------------


async def test_a_task_and_its_workflow_ask_in_turn(saver: Any) -> None:
    asking = Asking()

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        before = await asking.work("before")
        answers = await asking.ask("one", "two")
        own = interrupt("three")
        return [before, answers, own, await asking.sync_ask("four"), interrupt("five")]

    result = await flow.ainvoke(1, CONFIG)
    seen = []
    for answer in ("A", "B", "C", "D", "E"):
        seen += [(question.value, question.id) for question in result["__interrupt__"]]
        snapshot = await flow.aget_state(CONFIG)
        assert list(snapshot.interrupts) == result["__interrupt__"]
        assert (snapshot.next, snapshot.values) == (("flow",), None)
        result = await flow.ainvoke(Command(resume=answer), CONFIG)
    assert result == ["before", ["A", "B"], "C", "D", "E"]
    assert [value for value, _ in seen] == ["one", "two", "three", "four", "five"]
    assert len({each for _, each in seen}) == 5
    assert asking.runs == {"before": 1, "one": 3, "four": 2}
    assert (await flow.aget_state(CONFIG)).interrupts == ()


async def test_none_asks_again_under_the_same_id(saver: Any) -> None:
    asking = Asking()

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        return [await asking.work("work"), await asking.ask("q")]

    first = await flow.ainvoke(1, CONFIG)
    assert ids(await flow.ainvoke(None, CONFIG)) == ids(first)
    assert asking.runs == {"work": 1, "q": 2}
    assert await flow.ainvoke(Command(resume=0), CONFIG) == ["work", [0]]


async def test_a_question_on_a_later_call_returns_the_question_only(saver: Any) -> None:
    @entrypoint(checkpointer=saver)
    async def flow(given: int, *, previous: Any = None) -> Any:
        if given > 1:
            interrupt("q")
        return {"given": given, "previous": previous}

    first = await flow.ainvoke(1, CONFIG)
    second = await flow.ainvoke(2, CONFIG)
    assert list(second) == ["__interrupt__"]
    chunks = await collect(flow.astream(3, CONFIG, stream_mode=["values", "updates"]))
    assert [(mode, list(chunk)) for mode, chunk in chunks] == [
        ("updates", ["__interrupt__"]),
        ("values", ["__interrupt__"]),
    ]
    assert (await flow.aget_state(CONFIG)).values == first
    assert await flow.ainvoke(Command(resume=1), CONFIG) == {"given": 3, "previous": first}


async def test_a_question_in_sync_code_called_from_blocking_code(database: str) -> None:
    asking = Asking()

    def build(saver: Any) -> Any:
        @entrypoint(checkpointer=saver)
        def flow(given: int) -> Any:
            futures = [asking.sync_ask("task"), asking.work("work")]
            return [futures[1].result(), futures[0].result(), interrupt("own")]

        return flow

    def run() -> Any:
        with SqliteSaver.from_conn_string(database) as saver:
            assert pending(build(saver).invoke(1, CONFIG)) == ["task"]
        with SqliteSaver.from_conn_string(database) as saver:
            assert pending(build(saver).invoke(Command(resume="A"), CONFIG)) == ["own"]
            return build(saver).invoke(Command(resume="B"), CONFIG)

    assert await anyio.to_thread.run_sync(run) == ["work", "A", "B"]
    assert asking.runs == {"work": 1, "task": 2}


async def test_answers_are_checked_and_wrong_ones_are_forgotten(saver: Any) -> None:
    class Approval(BaseModel):
        yes: bool

    runs: list[str] = []

    @task
    async def approve(name: str) -> bool:
        runs.append(name)
        return bool(interrupt(name, response_schema=Approval).yes)

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        return await all_of([approve("a"), approve("b")])

    first = ids(await flow.ainvoke(1, CONFIG))
    with pytest.raises((ValueError, ExceptionGroup)) as failed:
        await flow.ainvoke(Command(resume={first["a"]: {"yes": "maybe"}, first["b"]: {"yes": False}}), CONFIG)
    assert "yes" in repr(failed.value)
    left = {one.value: one.id for one in (await flow.aget_state(CONFIG)).interrupts}
    assert left["a"] == first["a"]
    answers = {each: {"yes": True} if name == "a" else {"yes": False} for name, each in left.items()}
    assert await flow.ainvoke(Command(resume=answers), CONFIG) == [True, False]


# ---- several at once -------------------------------------------------------------------------------------------------


async def test_questions_asked_at_once_are_all_listed(saver: Any) -> None:
    asking = Asking()

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        return await all_of([asking.ask("a"), asking.work("w"), asking.sync_ask("b"), asking.ask("c", "d")])

    result = await flow.ainvoke(1, CONFIG)
    assert sorted(pending(result)) == ["a", "b", "c"]
    assert len(set(ids(result).values())) == 3
    with pytest.raises(RuntimeError, match="multiple pending interrupts"):
        await flow.ainvoke(Command(resume="x"), CONFIG)
    known = ids(result)
    second = await flow.ainvoke(Command(resume={known["b"]: "B", known["c"]: "C"}), CONFIG)
    assert sorted(pending(second)) == ["a", "d"]
    assert ids(second)["a"] == known["a"]
    known = ids(second)
    assert await flow.ainvoke(Command(resume={known["d"]: "D", known["a"]: "A"}), CONFIG) == [
        ["A"],
        "w",
        "B",
        ["C", "D"],
    ]
    # What is answered runs again, what waits is left alone, what is done is found again.
    assert asking.runs == {"a": 2, "w": 1, "b": 2, "c": 3}


async def test_gathered_questions_are_all_listed(saver: Any, anyio_backend_name: str) -> None:
    if anyio_backend_name != "asyncio":
        pytest.skip("gather is asyncio's")
    asking = Asking()

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        return await asyncio.gather(asking.ask("a"), asking.ask("b"), asking.work("w"))

    known = ids(await flow.ainvoke(1, CONFIG))
    assert sorted(known) == ["a", "b"]
    assert pending(await flow.ainvoke(Command(resume={known["b"]: "B"}), CONFIG)) == ["a"]
    assert await flow.ainvoke(Command(resume="A"), CONFIG) == [["A"], ["B"], "w"]
    assert asking.runs == {"a": 2, "b": 2, "w": 1}


async def test_a_workflow_asks_beside_its_tasks(saver: Any) -> None:
    asking = Asking()

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        future = asking.ask("task's")
        own = interrupt("own")
        return [own, await future]

    known = ids(await flow.ainvoke(1, CONFIG))
    assert sorted(known) == ["own", "task's"]
    assert pending(await flow.ainvoke(Command(resume={known["own"]: 1}), CONFIG)) == ["task's"]
    assert asking.runs == {"task's": 1}
    assert await flow.ainvoke(Command(resume={known["task's"]: 2}), CONFIG) == [1, [2]]
    assert asking.runs == {"task's": 2}


async def test_a_question_that_nobody_awaits_pauses_all_the_same(saver: Any) -> None:
    asking = Asking()

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> str:
        _ = asking.ask("q")
        return "returned"

    assert pending(await flow.ainvoke(1, CONFIG)) == ["q"]
    assert (await flow.aget_state(CONFIG)).next == ("flow",)
    assert await flow.ainvoke(Command(resume=1), CONFIG) == "returned"
    assert asking.runs == {"q": 2}


async def test_a_pause_cannot_be_swallowed(saver: Any) -> None:
    asking = Asking()

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        try:
            return await asking.ask("q")
        except BaseException:  # noqa: BLE001 - it is what users write
            return "swallowed"

    assert pending(await flow.ainvoke(1, CONFIG)) == ["q"]
    assert await flow.ainvoke(Command(resume=1), CONFIG) == [1]


@pytest.mark.slow
@given_values(data=st.data())
@settings(max_examples=40)
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_any_order_of_partial_answers_gives_the_same_result(backend: str, data: Any) -> None:
    """Random trees of calls that ask; random subsets answered at a time, by new graph objects each time."""
    trees = st.recursive(st.just(()), lambda inner: st.lists(inner, min_size=1, max_size=3).map(tuple), max_leaves=6)
    tree = data.draw(trees.filter(bool))
    order = data.draw(st.randoms(use_true_random=False))
    runs: Counter[str] = Counter()

    @task
    async def node(path: str, below: Any) -> Any:
        runs[path] += 1
        mine = interrupt(path) if len(path) % 2 else None
        found = await all_of([node(f"{path}.{place}", inner) for place, inner in enumerate(below)])
        return [path, mine, found]

    def expected(path: str, below: Any) -> Any:
        mine = f"answer to {path}" if len(path) % 2 else None
        return [path, mine, [expected(f"{path}.{place}", inner) for place, inner in enumerate(below)]]

    async def main() -> None:
        saver = InMemorySaver()
        given: Any = tree
        answered: Counter[str] = Counter()
        while True:

            @entrypoint(checkpointer=saver)
            async def flow(given: Any) -> Any:
                return await all_of([node(str(place), inner) for place, inner in enumerate(given)])

            before = Counter(runs)
            result = await flow.ainvoke(given, CONFIG)
            if "__interrupt__" not in result:
                assert result == [expected(str(place), inner) for place, inner in enumerate(tree)]
                return
            known = ids(result)
            assert len(set(known.values())) == len(result["__interrupt__"]) == len(known)
            for waiting in known:
                assert runs[waiting] - before[waiting] <= 1
            chosen = order.sample(sorted(known), order.randint(1, len(known)))
            answered.update(chosen)
            assert max(answered.values()) == 1, "nothing is asked again once it is answered"
            given = Command(resume={known[each]: f"answer to {each}" for each in chosen})

    anyio.run(main, backend=backend)
