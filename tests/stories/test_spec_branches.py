"""Going back to where nothing was left to do, and the steps that updates and copies count."""

from typing import Any

import pytest

from runtime.graph import END, START
from runtime.types import Command, StateUpdate, interrupt
from tests.stories.graphs import CONFIG, chain, collect, history, steps

pytestmark = pytest.mark.anyio

MODES = pytest.mark.parametrize("durability", ["sync", "async", "exit"])


async def turns(saver: Any, *said: str) -> tuple[Any, list[Any]]:
    """Run one turn for each word; return the graph and where each turn ended."""
    graph = chain("a").compile(checkpointer=saver)
    ends = []
    for word in said:
        await graph.ainvoke({"log": [word]}, CONFIG)
        ends.append((await graph.aget_state(CONFIG)).config)
    return graph, ends


@MODES
async def test_going_back_to_the_end_of_a_turn_continues_from_there(saver: Any, durability: Any) -> None:
    graph, ends = await turns(saver, "1", "2")
    before = await history(graph)
    assert await graph.ainvoke(None, ends[0], durability=durability) == {"log": ["1", "a"]}
    head = await graph.aget_state(CONFIG)
    assert (head.metadata["source"], head.metadata["step"], head.next) == ("fork", 2, ())
    assert (head.parent_config, head.values) == (ends[0], {"log": ["1", "a"]})
    assert (await history(graph))[1:] == before
    assert await graph.ainvoke({"log": ["3"]}, CONFIG, durability=durability) == {"log": ["1", "a", "3", "a"]}


async def test_going_back_to_the_newest_end_branches_once(saver: Any) -> None:
    graph, ends = await turns(saver, "1")
    await graph.ainvoke(None, ends[0])
    fork = (await graph.aget_state(CONFIG)).config
    assert fork != ends[0]
    await graph.ainvoke(None, fork)
    await graph.ainvoke(None, CONFIG)
    assert (await graph.aget_state(CONFIG)).config == fork


@MODES
async def test_a_branch_on_which_work_rests_is_branched_from(saver: Any, durability: Any) -> None:
    """Going back to an edit that is still the newest runs on from it, unless something had come of it already."""
    builder = chain("a")
    builder.add_node("ask", lambda _state: {"log": [interrupt("first?"), interrupt("second?")]})
    builder.add_edge("a", "ask")
    graph = builder.compile(checkpointer=saver)
    await graph.ainvoke({"log": ["1"]}, CONFIG, interrupt_before=["ask"], durability=durability)
    edit = await graph.aupdate_state(CONFIG, {"log": ["u"]}, as_node="a")
    await graph.ainvoke(None, edit, durability=durability)
    assert (await graph.aget_state(CONFIG)).config == edit
    await graph.ainvoke(Command(resume="1st"), CONFIG, durability=durability)
    await graph.ainvoke(None, edit, durability=durability)
    head = await graph.aget_state(CONFIG)
    assert (head.metadata["source"], head.parent_config) == ("fork", edit)
    assert [question.value for question in head.interrupts] == ["first?"]
    for answer in ("1.", "2."):
        await graph.ainvoke(Command(resume=answer), CONFIG, durability=durability)
    assert (await graph.aget_state(CONFIG)).values == {"log": ["1", "a", "u", "1.", "2."]}


async def test_what_a_command_writes_at_an_old_end_is_kept(saver: Any) -> None:
    graph, ends = await turns(saver, "1", "2")
    assert await graph.ainvoke(Command(update={"log": ["u"]}), ends[0]) == {"log": ["1", "a", "u"]}
    head = await graph.aget_state(CONFIG)
    assert (head.values, head.parent_config) == ({"log": ["1", "a", "u"]}, ends[0])


async def test_an_answer_at_an_old_end_leaves_the_thread_alone(saver: Any) -> None:
    graph, ends = await turns(saver, "1", "2")
    before = await history(graph)
    assert await graph.ainvoke(Command(resume="yes"), ends[0]) == {"log": ["1", "a"]}
    assert await history(graph) == before


@pytest.mark.parametrize(
    ("as_node", "expected"),
    [
        (None, (0, "update", ("a",))),
        ("a", (0, "update", ("b",))),
        (START, (0, "update", ("a",))),
        (END, (0, "update", ())),
        ("__input__", (-1, "input", (START,))),
    ],
)
async def test_the_first_update_of_a_thread_is_step_0_and_input_is_before_it(
    saver: Any, as_node: str | None, expected: tuple[int, str, tuple[str, ...]]
) -> None:
    graph = chain("a", "b").compile(checkpointer=saver)
    await graph.aupdate_state(CONFIG, None if as_node == END else {"log": ["u"]}, as_node=as_node)
    assert steps(await history(graph)) == [expected]


async def test_a_copy_counts_on_from_what_it_copies(saver: Any) -> None:
    graph, _ = await turns(saver, "1")
    for old in reversed(await history(graph)):
        await graph.aupdate_state(old.config, None, as_node="__copy__")
        copy = (await history(graph))[0]
        assert (copy.metadata["step"], copy.metadata["source"]) == (old.metadata["step"] + 1, "fork")
        assert (copy.next, copy.values, copy.parent_config) == (old.next, old.values, old.parent_config)


async def test_a_copy_shows_what_is_written_on_top_of_it(saver: Any) -> None:
    graph, _ = await turns(saver, "1", "2")
    old = next(one for one in reversed(await history(graph)) if one.next == ("a",))
    await graph.aupdate_state(old.config, [StateUpdate({"log": ["x"]}, "a")], as_node="__copy__")
    updated, copy = (await history(graph))[:2]
    assert steps([updated, copy]) == [(2, "update", ()), (1, "fork", ("a",))]
    assert updated.values == {"log": ["1", "x"]}
    assert [task.result for task in copy.tasks] == [{"log": ["x"]}]


async def test_a_branch_at_an_end_is_told(saver: Any) -> None:
    graph, ends = await turns(saver, "1", "2")
    told = await collect(graph.astream(None, ends[0], stream_mode="checkpoints"))
    assert [(one["metadata"]["source"], one["next"], one["values"]) for one in told] == [
        ("fork", [], {"log": ["1", "a"]})
    ]
