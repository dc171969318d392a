"""Threads that LangGraph left are gone on with here, to the same end as there."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver as PeerPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver as PeerSaver

from persistence.postgres import PostgresSaver
from persistence.sqlite import SqliteSaver
from runtime.cli import main
from tests.persistence.migration.peer import driver_url, postgres_peer
from tests.runtime.cli import both
from tests.runtime.cli.both import OURS, PEER, Build, human

Input = Callable[[SimpleNamespace], Any]


@dataclass
class Story:
    """What is done in LangGraph, and then in either library."""

    build: Build
    before: list[Input]
    after: list[Input]
    graph: str | None = None
    options: tuple[tuple[str, Any], ...] = ()


def given(value: Any) -> Input:
    return lambda lib: value


def answer(value: Any) -> Input:
    return lambda lib: lib.Command(resume=value)


START = given({"log": ["in"], "go": ""})
ON = given(None)

STORIES = {
    "a question": Story(both.asking, [START], [answer("1"), answer("2"), answer("3")]),
    "a second question of a node": Story(both.asking, [START, answer("1")], [answer("2"), answer("3")]),
    "a question of the next node": Story(both.asking, [START, answer("1"), answer("2")], [answer("3"), START]),
    "a question that is asked again": Story(both.asking, [START], [ON, answer("1"), answer("2"), answer("3")]),
    "another input instead": Story(both.asking, [START], [START, answer("1")]),
    "a finished thread": Story(both.asking, [START, *map(answer, "123")], [START, answer("4")]),
    "sends, a join, a deferred node": Story(both.fanned, [START], [answer("!")]),
    "a breakpoint": Story(both.fanned, [START], [ON, answer("!")], options=(("interrupt_before", ["joined"]),)),
    "a breakpoint after": Story(both.fanned, [START], [ON, answer("!")], options=(("interrupt_after", ["left"]),)),
    "two levels down": Story(both.nested, [START], [answer(word) for word in "abcd"]),
    "a level down, again": Story(both.nested, [START, answer("a")], [answer(word) for word in "bcd"]),
    "in the second call": Story(both.nested, [START, *map(answer, "abc")], [answer("d")]),
    "a kept state": Story(both.keeping, [START], [answer("1"), START, answer("2")]),
    "a kept state, later": Story(both.keeping, [START, answer("1"), START], [answer("2"), START, answer("3")]),
    "answers by id": Story(both.parallel, [START], []),
    "an overwrite that waits": Story(both.overwriting, [START], [answer("!")]),
    "a conversation": Story(both.chatting, [given(human("hello"))], [answer("hi"), given(human("more")), answer("no")]),
    "models": Story(
        both.ordering,
        [given({"customer": both.Customer(name="N")})],
        [answer(True)],
        "tests.runtime.cli.both:ordering_ours",
    ),
    "a chain of writes": Story(both.folding, [START], [answer("1"), START], "tests.runtime.cli.both:folding_ours"),
}


@pytest.fixture(autouse=True)
def mended() -> Iterator[None]:
    both.broken["now"] = True
    yield
    both.broken["now"] = True


def elsewhere(work: Callable[[], Any]) -> Any:
    """Do something in a thread without an event loop."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


async def told(graph: Any, lib: SimpleNamespace, inputs: list[Input], options: Any, thread: str = "1") -> list[Any]:
    """Return what comes of each call, and what the thread holds in the end."""
    config: Any = {"configurable": {"thread_id": thread}}
    outcomes: list[Any] = []
    for each in inputs:
        try:
            output = dict(await graph.ainvoke(each(lib), config, **dict(options)))
        except ValueError as error:
            outcomes.append(str(error))
            continue
        asked = [(one.id, one.value) for one in output.pop("__interrupt__", ())]
        outcomes.append((output, asked))
    state = await graph.aget_state(config)
    return [*outcomes, state.values, list(state.next)]


def run_there(path: Path, build: Build, inputs: list[Input], options: Any = ()) -> list[Any]:
    """Do it in LangGraph."""

    async def run() -> list[Any]:
        async with PeerSaver.from_conn_string(str(path)) as saver:
            return await told(build(PEER).compile(saver), PEER, inputs, options)

    found: list[Any] = elsewhere(lambda: asyncio.run(run()))
    return found


async def run_here(path: Path, build: Build, inputs: list[Input]) -> list[Any]:
    async with SqliteSaver(path) as saver:
        return await told(build(OURS).compile(saver), OURS, inputs, ())


def migrated(path: Path, *words: str) -> Path:
    target = path.with_name("ours.db")
    code = elsewhere(lambda: main(["migrate", "--from", "langgraph-sqlite", str(path), "--to", str(target), *words]))
    assert code == 0
    return target


def without_ids(outcomes: list[Any]) -> list[Any]:
    """Leave out the ids of questions that follow from new checkpoints, which are made at another time."""
    return [
        (each[0], [value for _, value in each[1]])
        if isinstance(each, tuple) and each and isinstance(each[0], dict)
        else each
        for each in outcomes
    ]


@pytest.mark.parametrize("name", STORIES)
async def test_goes_on_to_the_same_end(tmp_path: Path, name: str) -> None:
    story = STORIES[name]
    there = tmp_path / "there.db"
    run_there(there, story.build, story.before, story.options)
    kept = shutil.copy(there, tmp_path / "copy.db")
    expected = run_there(Path(kept), story.build, story.after)
    ours = migrated(there, *(("--graph", story.graph) if story.graph else ()))
    assert without_ids(await run_here(ours, story.build, story.after)) == without_ids(expected)


@pytest.mark.parametrize("name", STORIES)
async def test_the_same_questions_wait_and_the_same_is_told_of_the_past(tmp_path: Path, name: str) -> None:
    story = STORIES[name]
    there = tmp_path / "there.db"
    run_there(there, story.build, story.before, story.options)

    async def seen(graph: Any) -> Any:
        config: Any = {"configurable": {"thread_id": "1"}}
        return [
            (
                each.config["configurable"]["checkpoint_id"],
                each.parent_config and each.parent_config["configurable"]["checkpoint_id"],
                each.metadata,
                each.values,
                sorted(each.next),
                sorted((one.id, repr(one.value)) for one in each.interrupts),
                sorted((task.id, task.name) for task in each.tasks),
            )
            async for each in graph.aget_state_history(config)
        ]

    async def peer() -> Any:
        async with PeerSaver.from_conn_string(str(there)) as saver:
            return await seen(story.build(PEER).compile(saver))

    expected = elsewhere(lambda: asyncio.run(peer()))
    ours = migrated(there, *(("--graph", story.graph) if story.graph else ()))
    async with SqliteSaver(ours) as saver:
        assert await seen(story.build(OURS).compile(saver)) == expected


@pytest.mark.parametrize("name", ["sends, a join, a deferred node", "two levels down", "models", "a chain of writes"])
async def test_from_server_to_server(postgres: Any, tmp_path: Path, name: str) -> None:
    story = STORIES[name]
    expected = run_there(tmp_path / "there.db", story.build, [*story.before, *story.after])
    graph = ("--graph", story.graph) if story.graph else ()
    with postgres.schema() as url, postgres.schema() as target:
        with postgres_peer(url).saver():
            """Made the tables."""

        async def peer() -> None:
            async with PeerPostgresSaver.from_conn_string(driver_url(url)) as saver:
                await told(story.build(PEER).compile(saver), PEER, story.before, ())

        elsewhere(lambda: asyncio.run(peer()))
        words = ["migrate", "--from", "langgraph-postgres", url, "--to", target, *graph]
        assert elsewhere(lambda: main(words)) == 0
        async with PostgresSaver(target) as saver:
            outcomes = await told(story.build(OURS).compile(saver), OURS, story.after, ())
    assert without_ids(outcomes) == without_ids(expected[len(story.before) :])


async def test_a_failed_node_runs_again_and_its_finished_sibling_does_not(tmp_path: Path) -> None:
    there = tmp_path / "there.db"
    begun = given({"log": [], "go": "good bad"})
    assert run_there(there, both.failing, [begun])[0] == "broken"
    both.broken["now"] = False
    both.good_runs.clear()
    assert (await run_here(migrated(there), both.failing, [ON]))[0] == (
        {"log": ["mended", "good"], "go": "good bad"},
        [],
    )
    assert both.good_runs == []


async def test_a_node_whose_router_failed_runs_again(tmp_path: Path) -> None:
    """There, it counts as finished, and the run ends with work missing."""
    there = tmp_path / "there.db"
    assert run_there(there, both.failing, [given({"log": [], "go": "routed"})])[0] == "broken"
    both.broken["now"] = False
    outcome = (await run_here(migrated(there), both.failing, [ON]))[0]
    assert outcome == ({"log": ["routed", "end"], "go": "routed"}, [])


async def test_each_of_several_questions_gets_its_answer(tmp_path: Path) -> None:
    there = tmp_path / "there.db"
    ((_, asked), *_) = run_there(there, both.parallel, [START])
    ids = {value: key for key, value in asked}
    outcomes = await run_here(migrated(there), both.parallel, [answer({ids["two"]: "2"}), answer({ids["one"]: "1"})])
    assert outcomes[0][1] == [(ids["one"], "one")]
    assert outcomes[1] == ({"log": ["in", "one 1", "two 2"], "go": ""}, [])


async def test_an_answer_given_there_after_another_is_kept(tmp_path: Path) -> None:
    there = tmp_path / "there.db"
    ((_, asked), *_) = run_there(there, both.parallel, [START])
    ids = {value: key for key, value in asked}
    run_there(there, both.parallel, [answer({ids["two"]: "2"})])
    outcomes = await run_here(migrated(there), both.parallel, [answer("1")])
    assert outcomes[0] == ({"log": ["in", "one 1", "two 2"], "go": ""}, [])


async def test_updates_without_a_run_are_kept(tmp_path: Path) -> None:
    there = tmp_path / "there.db"
    updated = lambda lib: lib.Command(update={"log": ["updated"]})  # noqa: E731
    run_there(there, both.parallel, [START, updated])
    ids = [one.id for one in (await questions(migrated(there), both.parallel))]
    outcome = (await run_here(there.with_name("ours.db"), both.parallel, [answer(dict.fromkeys(ids, "!"))]))[0]
    assert outcome == ({"log": ["in", "updated", "one !", "two !"], "go": ""}, [])


async def questions(path: Path, build: Build) -> Any:
    async with SqliteSaver(path) as saver:
        return (await build(OURS).compile(saver).aget_state({"configurable": {"thread_id": "1"}})).interrupts


async def test_the_past_can_be_gone_back_to(tmp_path: Path) -> None:
    there = tmp_path / "there.db"
    run_there(there, both.nested, [START, *map(answer, "abcd")])
    async with SqliteSaver(migrated(there)) as saver:
        graph = both.nested(OURS).compile(saver)
        config: Any = {"configurable": {"thread_id": "1"}}
        first = [each async for each in graph.aget_state_history(config)][-1]
        assert first.next == ("__start__",)
        again = await graph.ainvoke(None, first.config)
        assert again["__interrupt__"][0].value == "deep?"
        for word in "wxyz":
            again = await graph.ainvoke(OURS.Command(resume=word), config)
        assert again["log"][-2:] == ["twice", "z"]


def test_a_function_that_asks(tmp_path: Path) -> None:
    """An entrypoint with tasks: what they returned is not done again."""

    def build(lib: SimpleNamespace, saver: Any, runs: list[int]) -> Any:
        @lib.task  # type: ignore[untyped-decorator]
        async def double(number: int) -> int:
            runs.append(number)
            return number * 2

        @lib.entrypoint(checkpointer=saver)  # type: ignore[untyped-decorator]
        async def program(given: int, *, previous: Any = None) -> Any:
            doubled = await double(given)
            return [doubled, lib.interrupt(doubled), previous]

        return program

    config: Any = {"configurable": {"thread_id": "1"}}

    async def there() -> Any:
        async with PeerSaver.from_conn_string(str(tmp_path / "there.db")) as saver:
            program = build(PEER, saver, [])
            await program.ainvoke(1, config)
            await program.ainvoke(PEER.Command(resume="a"), config)
            return await program.ainvoke(2, config)

    async def here(path: Path, runs: list[int]) -> Any:
        async with SqliteSaver(path) as saver:
            return await build(OURS, saver, runs).ainvoke(OURS.Command(resume="b"), config)

    assert elsewhere(lambda: asyncio.run(there()))["__interrupt__"][0].value == 4
    runs: list[int] = []
    path = migrated(tmp_path / "there.db")
    assert elsewhere(lambda: asyncio.run(here(path, runs))) == [4, "b", [2, "a", None]]
    assert runs == []
