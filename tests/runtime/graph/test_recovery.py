"""Recovery: runs whose process died are found and continued, each by one process only."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest

from persistence.memory import InMemorySaver
from persistence.sqlite import SqliteSaver
from runtime.cli import main
from runtime.errors import FencedError, OrphanedTaskError
from runtime.graph.recovery import Recovered, arecover
from runtime.types import interrupt
from tests.crash.recovering import die_at_work, saver_at
from tests.crash.zygote import Zygote
from tests.stories.graphs import chain

GRAPH = """
from tests.stories.graphs import chain

graph = chain("first", "slow", "last").compile(name="worker")
"""


on_both = pytest.mark.parametrize("died", ["sqlite", "postgres"], indirect=True)
"""Where threads have leases."""


class Died(NamedTuple):
    """A database in which the runs of three threads died with their process."""

    where: str
    change: Callable[[str], object]
    """Carries out a statement there."""

    def saver(self) -> Any:
        """Return a closed saver."""
        return saver_at(self.where)


@pytest.fixture(scope="module")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """What forks the processes that die."""
    with Zygote(tmp_path_factory.mktemp("zygote") / "errors", ["tests.crash.recovering"]) as started:
        yield started


@pytest.fixture
def died(request: pytest.FixtureRequest, zygote: Zygote, tmp_path: Path) -> Died:
    """In SQLite, unless a test asks for another."""
    where = str(tmp_path / "threads.sqlite")

    def change(sql: str) -> object:
        with closing(sqlite3.connect(where)) as raw, raw:
            return raw.execute(sql)

    if getattr(request, "param", "sqlite") == "postgres":
        where = request.getfixturevalue("postgres_url")
        change = partial(request.getfixturevalue("postgres").rows, url=where)
    assert zygote.start(die_at_work, where=where).was_killed()
    return Died(where, change)


@on_both
@pytest.mark.slow
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_what_died_is_continued_once_by_however_many(died: Died, durability: Any) -> None:
    ran: Counter[str] = Counter()

    def counted(name: str) -> Any:
        async def node(_state: Any) -> dict[str, Any]:
            ran[name] += 1
            await anyio.sleep(0.01)
            return {"log": [name]}

        return (name, node)

    found: list[list[Recovered]] = []
    async with died.saver() as one, died.saver() as other, anyio.create_task_group() as group:
        builder = chain(*map(counted, ("first", "slow", "last")))

        async def recover(saver: Any) -> None:
            found.append(
                await arecover(builder.compile(saver, name="worker"), durability=durability, max_concurrency=2)
            )

        group.start_soon(recover, one)
        group.start_soon(recover, other)
    assert ran == {"slow": 3, "last": 3}
    assert sorted(each.thread_id for part in found for each in part if each.status == "finished") == list("abc")
    assert {each.status for part in found for each in part} <= {"finished", "taken"}
    async with died.saver() as saver:
        graph = builder.compile(saver, name="worker")
        for thread in "abc":
            state = await graph.aget_state({"configurable": {"thread_id": thread}})
            assert (state.values, state.next) == ({"log": ["first", "slow", "last"]}, ())
        assert await arecover(graph) == []


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 2, 3])
async def test_so_many_threads_are_continued_at_once_and_no_more(died: Died, most: int) -> None:
    begun: list[str] = []
    inside: list[int] = []
    full = anyio.Event()

    def config(name: str) -> dict[str, Any]:  # asked for where a thread is begun
        begun.append(name)
        return {}

    async def slow(_state: Any) -> dict[str, Any]:
        inside.append(len(begun))
        if len(inside) == most:
            full.set()
        await full.wait()  # for ever, if fewer are at work at once
        return {"log": ["slow"]}

    async with died.saver() as saver:
        graph = chain("first", ("slow", slow), "last").compile(saver, name="worker")
        with anyio.fail_after(15):
            found = await arecover(graph, config=config, max_concurrency=most)
    assert inside[:most] == [most] * most
    assert [each.status for each in found] == ["finished"] * 3


def statuses(*found: list[Recovered]) -> list[list[str]]:
    """Return what was said of each thread, whoever said it."""
    said = [(each.thread_id, each.status) for part in found for each in part]
    return [sorted(status for thread_id, status in said if thread_id == wanted) for wanted in "abc"]


@on_both
@pytest.mark.slow
@pytest.mark.parametrize("savers", ["one saver", "two savers"])
@pytest.mark.parametrize("unfinished", [True, False], ids=["unfinished", "finished"])
async def test_only_who_took_a_thread_says_what_became_of_it(died: Died, savers: str, unfinished: bool) -> None:
    """Another, who looked at the thread before that, says that it was taken."""
    async with died.saver() as one, died.saver() as other:
        graph = chain("first", "slow", "last").compile(one, name="worker")
        if not unfinished:
            for thread in "abc":
                await graph.ainvoke(None, {"configurable": {"thread_id": thread}})
            died.change("UPDATE checkpoint_leases SET held = TRUE, owner = 'gone' WHERE thread_id <> 'done'")
        late = chain("first", "slow", "last").compile(one if savers == "one saver" else other, name="worker")
        found: list[list[Recovered]] = []
        looks, looked, done = late.aget_state, anyio.Event(), anyio.Event()

        async def look(config: Any, **options: Any) -> Any:
            state = await looks(config, **options)
            looked.set()
            await done.wait()
            return state

        async def be_faster() -> None:
            await looked.wait()
            found.append(await arecover(graph))
            done.set()

        late.aget_state = look  # type: ignore[method-assign]
        assert len(await one.aheld_leases()) == 3
        with anyio.fail_after(15):
            async with anyio.create_task_group() as group:
                group.start_soon(be_faster)
                found.append(await arecover(late, max_concurrency=1))
        assert statuses(*found) == [["finished", "taken"]] * 3
        assert await one.aheld_leases() == []


@on_both
@pytest.mark.slow
async def test_a_list_of_the_dead_that_is_old_brings_nothing(died: Died) -> None:
    async with died.saver() as saver:
        graph = chain("first", "slow", "last").compile(saver, name="worker")
        rows = await saver.aheld_leases()
        assert statuses(await arecover(graph)) == [["finished"]] * 3

        async def old() -> Any:
            return rows

        saver.aheld_leases = old
        assert statuses(await arecover(graph)) == [["taken"]] * 3


async def test_a_run_inside_one_that_was_overtaken_is_told(tmp_path: Path) -> None:
    """It cannot begin again: the thread is not its own to take."""
    path, config = tmp_path / "threads.sqlite", {"configurable": {"thread_id": "t"}}
    async with SqliteSaver(path) as saver:
        inner = chain("node").compile(saver)

        async def node(_state: Any) -> dict[str, Any]:
            await saver.aget_tuple(config)  # waits for what was sent
            with closing(sqlite3.connect(path)) as raw, raw:
                raw.execute("UPDATE checkpoint_leases SET epoch = epoch + 1, owner = 'heir'")
            with pytest.raises(FencedError):
                await inner.ainvoke({}, config, durability="sync")
            return {"log": ["told"]}

        with anyio.fail_after(10), pytest.raises(FencedError):
            await chain(("node", node)).compile(saver).ainvoke({}, config, durability="sync")


@pytest.mark.slow
async def test_only_threads_of_the_graphs_own_name_are_continued(died: Died) -> None:
    async with died.saver() as saver:
        assert await arecover(chain("first", "slow", "last").compile(name="another"), saver) == []
        assert len(await saver.aheld_leases()) == 3


@on_both
@pytest.mark.slow
async def test_one_that_fails_does_not_keep_the_others(died: Died) -> None:
    async def slow(state: Any) -> dict[str, Any]:
        if state["a"] == 1:
            message = "not this one"
            raise RuntimeError(message)
        return {"log": ["slow"]}

    async with died.saver() as saver:
        graph = chain("first", ("slow", slow), "last").compile(saver, name="worker")
        ended = await arecover(graph, config=lambda thread: {"metadata": {"again": thread}}, durability="sync")
        assert [(one.thread_id, one.status) for one in ended] == [(thread, "failed") for thread in "abc"]
        assert all(isinstance(one.error, KeyError) for one in ended)
        assert await saver.aheld_leases() == []  # their caller has been told; now it is his to resume them


@pytest.mark.slow
async def test_a_graph_without_the_node_that_is_due_leaves_the_thread_as_it_is(died: Died) -> None:
    """It was renamed, or the graph is another one of the same name."""
    async with died.saver() as saver:
        ended = await arecover(chain("first", "renamed", "last").compile(saver, name="worker"))
        assert [one.status for one in ended] == ["failed"] * 3
        assert all(isinstance(one.error, OrphanedTaskError) and "'slow'" in str(one.error) for one in ended)
        ended = await arecover(chain("first", "slow", "last").compile(saver, name="worker"))
        assert [one.status for one in ended] == ["finished"] * 3
        assert ended[0].value == {"log": ["first", "slow", "last"]}


async def test_a_thread_that_only_waits_is_left_waiting(tmp_path: Path) -> None:
    """Its process died after the question was stored and before the thread was let go."""
    path, asked = tmp_path / "threads.sqlite", 0

    async def ask(_state: Any) -> dict[str, Any]:
        nonlocal asked
        asked += 1
        return {"log": [interrupt("?")]}

    config = {"configurable": {"thread_id": "t"}}
    async with SqliteSaver(path) as saver:
        await chain(("ask", ask)).compile(saver).ainvoke({}, config)
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE checkpoint_leases SET held = 1")
    async with SqliteSaver(path) as saver:
        graph = chain(("ask", ask)).compile(saver)
        assert await arecover(graph) == [Recovered("t", "waiting")]
        assert await saver.aheld_leases() == []
        assert asked == 1
        assert (await graph.aget_state(config)).interrupts[0].value == "?"


async def test_what_cannot_be_recovered_is_said() -> None:
    with pytest.raises(TypeError, match=r"use builder.compile\(saver\)"):
        await arecover(chain("one"))  # type: ignore[arg-type]  # that is what is tried
    with pytest.raises(ValueError, match="no checkpointer"):
        await arecover(chain("one").compile())
    with pytest.raises(ValueError, match="keeps no leases"):
        await arecover(chain("one").compile(InMemorySaver()))
    async with SqliteSaver(":memory:") as saver:
        with pytest.raises(ValueError, match="at least 1"):
            await arecover(chain("one").compile(saver), max_concurrency=0)


@pytest.mark.slow
def test_the_command_line_recovers(
    died: Died, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command has a loop of its own, so it is not tried on each."""
    (tmp_path / "app_to_recover.py").write_text(GRAPH)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def actorgraph(*words: str) -> str:
        capsys.readouterr()
        assert main(["recover", "app_to_recover:graph", "--db", died.where, *words]) == 0
        return capsys.readouterr().out

    assert [row["thread"] for row in json.loads(actorgraph("--dry-run", "--json"))["recovered"]] == list("abc")
    assert "3 threads were continued" in actorgraph()
    assert json.loads(actorgraph("--json"))["recovered"] == []
    assert "No run of app_to_recover:graph died" in actorgraph()
