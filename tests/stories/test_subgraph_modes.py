"""What a subgraph keeps: nothing, its execution, its thread; in its parent's saver or in one of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from persistence.memory import InMemorySaver
from persistence.sqlite import SqliteSaver
from runtime.errors import ConfigError, InvalidUpdateError
from runtime.graph import END, START, StateGraph
from runtime.types import Command, RunnableConfig, Send, interrupt
from tests.stories.graphs import CONFIG, Log, chain, fan, history, thread
from tests.stories.nests import Runs, asked

pytestmark = pytest.mark.anyio


def counter(runs: Runs | None = None) -> tuple[str, Callable[[Any], Any]]:
    """A node that counts in its state."""

    async def count(state: Log) -> dict[str, Any]:
        if runs is not None:
            runs["count"] += 1
        return {"a": state.get("a", 0) + 1}

    return "count", count


def telling(child: Any) -> tuple[str, Callable[[Any], Any]]:
    """A node that runs a child without input and notes its count."""

    async def tell(_state: Log) -> dict[str, Any]:
        return {"log": [str((await child.ainvoke({"log": []}))["a"])]}

    return "tell", tell


async def count_of(saver: Any) -> dict[str, int]:
    """The number of checkpoints by namespace, ids left out."""
    counts: dict[str, int] = {}
    async for one in saver.alist(CONFIG):
        name = "|".join(part.partition(":")[0] for part in one.config["configurable"]["checkpoint_ns"].split("|"))
        counts[name] = counts.get(name, 0) + 1
    return counts


# State between runs


@pytest.mark.parametrize(("kept", "expected"), [(None, ["1", "1"]), (False, ["1", "1"]), (True, ["1", "2"])])
async def test_between_runs_of_the_thread(saver: Any, kept: Any, expected: list[str]) -> None:
    graph = chain(telling(chain(counter()).compile(checkpointer=kept))).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    assert (await graph.ainvoke({}, CONFIG))["log"] == expected
    assert (await graph.ainvoke({}, thread("other")))["log"] == ["1"]


async def test_between_steps_of_one_run(saver: Any) -> None:
    child = chain(counter()).compile(checkpointer=True)
    builder = StateGraph(Log)
    builder.add_node(*telling(child))
    builder.add_edge(START, "tell")
    builder.add_conditional_edges("tell", lambda state: "tell" if len(state["log"]) < 3 else END)
    graph = builder.compile(checkpointer=saver)
    config = {**CONFIG, "metadata": {"run_id": "one"}}
    assert (await graph.ainvoke({}, config))["log"] == ["1", "2", "3"]


async def test_several_calls_of_one_task_keep_a_state_each(saver: Any) -> None:
    child = chain(counter()).compile(checkpointer=True)

    async def twice(_state: Log) -> dict[str, Any]:
        first = (await child.ainvoke({"log": []}))["a"]
        second = (await child.ainvoke({"a": 10}))["a"]
        return {"log": [f"{first} {second}"]}

    graph = chain(("f", twice)).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    assert (await graph.ainvoke({}, CONFIG))["log"] == ["1 11", "2 11"]
    assert set(await count_of(saver)) == {"", "f", "f|1"}


@pytest.mark.parametrize("kept", [None, True])
async def test_several_calls_of_one_task_get_an_answer_each(saver: Any, kept: Any) -> None:
    child = chain(Runs().asker("n")).compile(checkpointer=kept)

    async def thrice(_state: Log) -> dict[str, Any]:
        return {"log": [(await child.ainvoke({"log": []}))["log"][-1] for _ in range(3)]}

    graph = chain(("p", thrice)).compile(checkpointer=saver)
    result = await graph.ainvoke({"log": []}, CONFIG)
    for answer in ("A", "B", "C"):
        assert asked(result) == ["n?"]
        result = await graph.ainvoke(Command(resume=answer), CONFIG)
    assert result == {"log": ["n:A", "n:B", "n:C"]}


async def test_a_restart_of_the_program_keeps_it(database: str) -> None:
    for expected in (["1"], ["1", "2"]):
        async with SqliteSaver.from_conn_string(database) as saver:
            child = chain(counter()).compile(checkpointer=True)
            graph = chain(telling(child)).compile(checkpointer=saver)
            assert (await graph.ainvoke({}, CONFIG))["log"] == expected


async def test_kept_inside_one_that_is_not(saver: Any) -> None:
    middle = chain(telling(chain(counter()).compile(checkpointer=True))).compile()
    graph = chain(("p", middle)).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    assert (await graph.ainvoke({}, CONFIG))["log"][-1] == "2"


async def test_a_kept_one_pauses_and_goes_on(saver: Any) -> None:
    runs = Runs()
    child = chain(counter(runs), runs.asker("n")).compile(checkpointer=True)
    graph = chain(("p", child)).compile(checkpointer=saver)
    for turn in (1, 2):
        assert asked(await graph.ainvoke({}, CONFIG)) == ["n?"]
        await graph.ainvoke(Command(resume=f"t{turn}"), CONFIG)
    state = await graph.aget_state({"configurable": {"thread_id": "t", "checkpoint_ns": "p"}})
    assert state.values["log"] == ["n:t1", "n:t1", "n:t2"]  # the parent's log is given to it each time
    assert runs == {"count": 2, "n": 4}


async def test_new_input_while_it_waits_discards_its_pending_work_and_keeps_its_state(saver: Any) -> None:
    runs = Runs()
    child = chain(counter(runs), runs.asker("n")).compile(checkpointer=True)

    async def node(_state: Log) -> dict[str, Any]:
        return {"log": [str((await child.ainvoke({"log": []}))["a"])]}

    graph = chain(("f", node)).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    await graph.ainvoke({}, CONFIG)
    assert (await graph.ainvoke(Command(resume="yes"), CONFIG))["log"] == ["2"]
    assert runs["count"] == 2


async def test_a_root_graph_cannot_be_one() -> None:
    graph = chain("n").compile(checkpointer=True)
    with pytest.raises(RuntimeError, match="root"):
        await graph.ainvoke({}, CONFIG)


# At the same time


def senders(child: Any, *names: str) -> StateGraph:
    """A graph that sends to a node twice; the node runs the child."""

    async def work(state: Any) -> dict[str, Any]:
        result = await child.ainvoke({"a": state, "log": []})
        return {"log": [str(result["a"])]}

    builder = StateGraph(Log)
    for name in names:
        builder.add_node(name, work)
    sends = [Send(names[number % len(names)], 10 * number) for number in range(2)]
    builder.add_conditional_edges(START, lambda _state: sends)
    return builder


@pytest.mark.parametrize("limit", [None, 1])
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_one_kept_state_is_not_used_twice_at_once(saver: Any, durability: Any, limit: int | None) -> None:
    graph = senders(chain(counter()).compile(checkpointer=True), "work").compile(checkpointer=saver)
    config = {**CONFIG, **({} if limit is None else {"max_concurrency": limit})}
    values: list[Any] = [{}, None]
    for value in values:
        with pytest.raises(InvalidUpdateError, match="checkpointer=True") as caught:
            await graph.ainvoke(value, config, durability=durability)
        assert "MULTIPLE_SUBGRAPHS" in str(caught.value)
        assert "work" in str(caught.value)


async def test_nor_deep_inside_two_that_run_at_once(saver: Any) -> None:
    arrived: list[int] = []
    both = anyio.Event()

    async def wait(_state: Log) -> dict[str, Any]:
        arrived.append(1)
        if len(arrived) == 2:
            both.set()
        with anyio.move_on_after(0.2):
            await both.wait()
        return {}

    kept = chain(("wait", wait), counter()).compile(checkpointer=True)
    graph = senders(chain(telling(kept), counter()).compile(), "work").compile(checkpointer=saver)
    with pytest.raises(InvalidUpdateError, match="checkpointer=True"):
        await graph.ainvoke({}, CONFIG)


async def test_nodes_of_different_names_have_a_state_each(saver: Any) -> None:
    graph = senders(chain(counter()).compile(checkpointer=True), "left", "right").compile(checkpointer=saver)
    assert await graph.ainvoke({}, CONFIG) == {"log": ["1", "11"]}
    assert set(await count_of(saver)) == {"", "left", "right"}


@pytest.mark.parametrize("kept", [None, False])
async def test_others_may_be_used_at_once(saver: Any, kept: Any) -> None:
    graph = senders(chain(counter()).compile(checkpointer=kept), "work").compile(checkpointer=saver)
    assert await graph.ainvoke({}, CONFIG) == {"log": ["1", "11"]}


async def test_only_one_of_two_sends_uses_it(saver: Any) -> None:
    child = chain(counter()).compile(checkpointer=True)

    async def work(state: Any) -> dict[str, Any]:
        return {"log": [str((await child.ainvoke({"a": state}))["a"]) if state else "none"]}

    builder = StateGraph(Log)
    builder.add_node("work", work)
    builder.add_conditional_edges(START, lambda _state: [Send("work", 0), Send("work", 5)])
    graph = builder.compile(checkpointer=saver)
    assert await graph.ainvoke({}, CONFIG) == {"log": ["none", "6"]}


# Stateless


async def test_a_stateless_one_starts_over_and_its_answers_are_kept(saver: Any) -> None:
    runs = Runs()
    child = chain(runs.step("s"), runs.asker("n", "q1", "q2")).compile(checkpointer=False)
    graph = chain(("p", child)).compile(checkpointer=saver)
    assert asked(await graph.ainvoke({}, CONFIG)) == ["q1"]
    assert asked(await graph.ainvoke(Command(resume="A"), CONFIG)) == ["q2"]
    assert await graph.ainvoke(Command(resume="B"), CONFIG) == {"log": ["s", "n:A", "n:B"]}
    assert runs == {"s": 3, "n": 3}
    assert set(await count_of(saver)) == {""}


async def test_questions_side_by_side_in_a_stateless_one(saver: Any) -> None:
    runs = Runs()
    child = fan(runs.asker("l"), runs.asker("r"), first=None).compile(checkpointer=False)
    graph = chain(("p", child)).compile(checkpointer=saver)
    result = await graph.ainvoke({}, CONFIG)
    ids = {one.value: one.id for one in result["__interrupt__"]}
    assert sorted(ids) == ["l?", "r?"]
    assert asked(await graph.ainvoke(Command(resume={ids["r?"]: "R"}), CONFIG)) == ["l?"]
    assert (await graph.ainvoke(Command(resume={ids["l?"]: "L"}), CONFIG))["log"] == ["l:L", "r:R", "join"]


async def test_a_stateless_one_in_a_sync_node_words_its_question_anew(saver: Any) -> None:
    count = iter(range(9))
    child = chain(("n", lambda _s: {"log": [interrupt(f"draft {next(count)}")]})).compile(checkpointer=False)
    graph = chain(("p", child)).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    assert await graph.ainvoke(Command(resume="yes"), CONFIG) == {"log": ["yes"]}


# A saver of its own


@pytest.mark.parametrize("swapped", [False, True])
async def test_a_saver_of_its_own_is_used(database: str, swapped: bool) -> None:
    runs = Runs()
    async with SqliteSaver.from_conn_string(database) as other:
        memory = InMemorySaver()
        parents, childs = (other, memory) if swapped else (memory, other)
        child = chain(runs.step("s"), runs.asker("n")).compile(checkpointer=childs)
        graph = chain(("p", child)).compile(checkpointer=parents)
        assert asked(await graph.ainvoke({}, CONFIG)) == ["n?"]
        assert set(await count_of(parents)) == {""}
        assert set(await count_of(childs)) == {"p"}
        snapshot = await graph.aget_state(CONFIG, subgraphs=True)
        assert snapshot.tasks[0].state.next == ("n",)
        assert (await graph.aget_state(snapshot.tasks[0].state.config)).values == {"log": ["s"]}
        assert await graph.ainvoke(Command(resume="yes"), CONFIG) == {"log": ["s", "n:yes"]}
        assert runs["s"] == 1


async def test_a_thread_of_its_own_in_a_saver_of_its_own(database: str) -> None:
    async with SqliteSaver.from_conn_string(database) as own:
        child = chain(counter()).compile(checkpointer=own)

        async def node(_state: Log) -> dict[str, Any]:
            return {"log": [str((await child.ainvoke({"log": []}, thread("fix")))["a"])]}

        graph = chain(("f", node)).compile(checkpointer=InMemorySaver())
        await graph.ainvoke({}, CONFIG)
        assert (await graph.ainvoke({}, CONFIG))["log"] == ["1", "2"]
        assert (await child.aget_state(thread("fix"))).values["a"] == 2


async def test_a_saver_of_its_own_under_a_parent_without_one() -> None:
    own = InMemorySaver()
    child = chain(counter()).compile(checkpointer=own)
    graph = chain(telling(child)).compile()
    for _ in range(2):
        assert (await graph.ainvoke({}, CONFIG))["log"] == ["1"]
    with pytest.raises(ConfigError, match="thread"):
        await graph.ainvoke({})


# Detached calls


@pytest.mark.parametrize("how", ["config", "bound", "changed"])
async def test_a_named_thread_detaches_the_call(saver: Any, how: str) -> None:
    own = InMemorySaver()
    child = chain(counter(), Runs().asker("n")).compile(checkpointer=own)
    bound = child.with_config(thread("fix"))

    async def node(_state: Log, config: RunnableConfig) -> dict[str, Any]:
        if how == "config":
            result = await child.ainvoke({"log": []}, thread("fix"))
        elif how == "bound":
            result = await bound.ainvoke({"log": []})
        else:
            changed: Any = {**config, "configurable": {**config["configurable"], "thread_id": "fix"}}
            result = await child.ainvoke({"log": []}, changed)
        return {"log": [f"got {result['__interrupt__'][0].value}"]}

    graph = chain(("f", node)).compile(checkpointer=saver)
    assert await graph.ainvoke({}, CONFIG) == {"log": ["got n?"]}
    assert set(await count_of(saver)) == {""}
    assert len(await history(child, thread("fix"))) == 3
    assert (await child.ainvoke(Command(resume="yes"), thread("fix")))["log"] == ["n:yes"]


async def test_the_nodes_own_config_passed_on_does_not_detach(saver: Any) -> None:
    child = chain(Runs().asker("n")).compile()

    async def node(_state: Log, config: RunnableConfig) -> dict[str, Any]:
        return {"log": (await child.ainvoke({"log": []}, {**config, "tags": ["mine"]}))["log"]}

    graph = chain(("f", node)).compile(checkpointer=saver)
    assert asked(await graph.ainvoke({}, CONFIG)) == ["n?"]
    assert await graph.ainvoke(Command(resume="yes"), CONFIG) == {"log": ["n:yes"]}
