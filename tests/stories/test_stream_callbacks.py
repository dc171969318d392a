"""Callbacks: who is told that a run pauses and goes on, and what of a config reaches nodes and subgraphs."""

from __future__ import annotations

import logging
from typing import Any
from uuid import UUID

import anyio
import pytest
from langchain_core.callbacks import AsyncCallbackManager, BaseCallbackHandler, CallbackManager

from runtime.callbacks import GraphCallbackHandler, GraphInterruptEvent, GraphResumeEvent
from runtime.config import get_config
from runtime.types import Command, RunnableConfig, interrupt
from tests.stories.graphs import Log, chain, collect, thread

Event = GraphInterruptEvent | GraphResumeEvent


class Watcher(GraphCallbackHandler):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def on_interrupt(self, event: GraphInterruptEvent) -> None:
        """Note a pause."""
        self.events.append(event)

    def on_resume(self, event: GraphResumeEvent) -> None:
        """Note that it goes on."""
        self.events.append(event)

    @property
    def told(self) -> list[tuple[str, str, int]]:
        """Kind, status and depth of what was told."""
        kinds = {GraphInterruptEvent: "pause", GraphResumeEvent: "resume"}
        return [(kinds[type(event)], event.status, len(event.checkpoint_ns)) for event in self.events]


class AsyncWatcher(Watcher):
    """Waits before it notes."""

    async def on_interrupt(self, event: GraphInterruptEvent) -> None:  # type: ignore[override]
        """Note a pause."""
        await anyio.lowlevel.checkpoint()
        self.events.append(event)


def ask(_state: Log) -> dict[str, Any]:
    """Ask, and note the answer."""
    return {"log": [interrupt("?")]}


PAUSE, RESUME = ("pause", "pending", 0), ("resume", "pending", 0)


def watched(name: str, *watchers: Any, **more: Any) -> dict[str, Any]:
    """Return the config of a thread that is watched."""
    return {**thread(name), "callbacks": list(watchers), **more}


async def test_pauses_and_resumes_are_told(saver: Any) -> None:
    graph, watcher, waiting = chain("one", ("ask", ask)).compile(saver), Watcher(), AsyncWatcher()
    await graph.ainvoke({"a": 1}, watched("t", watcher, waiting))
    snapshot = await graph.aget_state(thread("t"))
    [paused] = watcher.events
    assert isinstance(paused, GraphInterruptEvent)
    assert paused.interrupts == snapshot.interrupts
    assert paused.checkpoint_id == snapshot.config["configurable"]["checkpoint_id"]
    assert isinstance(paused.run_id, UUID)
    await graph.ainvoke(Command(resume="yes"), watched("t", watcher, waiting))
    assert watcher.told == waiting.told == [PAUSE, RESUME]
    assert watcher.events[1].checkpoint_id == paused.checkpoint_id
    assert watcher.events[1].run_id != paused.run_id


async def test_a_run_that_does_not_pause_tells_nothing(saver: Any) -> None:
    watcher = Watcher()
    graph = chain("one").compile(saver)
    await graph.ainvoke({"a": 1}, watched("t", watcher))
    await graph.ainvoke({"a": 2}, watched("t", watcher))
    assert watcher.events == []


async def test_a_pause_is_told_once_it_can_be_answered(saver: Any) -> None:
    """Whoever is told may answer at once, in another process."""
    graph, answered = chain(("ask", ask)).compile(saver), list[Any]()

    class Answering(GraphCallbackHandler):
        async def on_interrupt(self, event: GraphInterruptEvent) -> None:
            del event
            answered.append((await graph.aget_state(thread("t"))).interrupts[0].value)

    await graph.ainvoke({"a": 1}, watched("t", Answering()))
    assert answered == ["?"]


async def test_breakpoints_say_on_which_side_of_the_node_the_run_stops(saver: Any) -> None:
    graph, watcher = chain("one", "two").compile(saver), Watcher()
    await graph.ainvoke({"a": 1}, watched("t", watcher), interrupt_before=["two"])
    await graph.ainvoke(None, watched("t", watcher), interrupt_after=["two"])
    assert watcher.told == [("pause", "interrupt_before", 0), RESUME, ("pause", "interrupt_after", 0)]
    assert all(event.interrupts == () for event in watcher.events if isinstance(event, GraphInterruptEvent))


async def test_of_nested_graphs_the_outermost_tells_the_pause_and_each_tells_that_it_goes_on(saver: Any) -> None:
    graph = chain(("sub", chain(("ask", ask)).compile())).compile(saver)
    watcher = Watcher()
    await graph.ainvoke({"a": 1}, watched("t", watcher))
    assert watcher.told == [PAUSE]
    await graph.ainvoke(Command(resume="yes"), watched("t", watcher))
    assert watcher.told == [PAUSE, RESUME, ("resume", "pending", 1)]
    assert watcher.events[2].checkpoint_ns[0].startswith("sub:")


async def test_streams_tell_too_after_the_chunk_that_shows_the_pause(saver: Any) -> None:
    graph, watcher = chain(("ask", ask)).compile(saver), Watcher()
    seen: list[Any] = []
    async for chunk in graph.astream({"a": 1}, watched("t", watcher)):
        seen.append(chunk)
    assert "__interrupt__" in seen[0]
    assert watcher.told == [PAUSE]
    assert (await collect(graph.astream(Command(resume="yes"), watched("t", watcher)))) == [{"ask": {"log": ["yes"]}}]
    assert watcher.told == [PAUSE, RESUME]


async def test_a_replay_goes_on_from_where_it_was_sent(saver: Any) -> None:
    graph, watcher = chain("one", "two").compile(saver), Watcher()
    await graph.ainvoke({"a": 1}, thread("t"))
    [before] = [one async for one in graph.aget_state_history(thread("t")) if one.next == ("two",)]
    await graph.ainvoke(None, {**before.config, "callbacks": [watcher]})
    assert watcher.told == [RESUME]


async def test_without_a_checkpointer_a_pause_is_told_all_the_same() -> None:
    watcher = Watcher()
    await chain(("ask", ask)).compile().ainvoke({"a": 1}, {"callbacks": [watcher]})
    assert watcher.told == [PAUSE]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda watcher: watcher,
        lambda watcher: (watcher,),
        lambda watcher: [BaseCallbackHandler(), watcher],
        lambda watcher: AsyncCallbackManager([watcher]),
        lambda watcher: CallbackManager([watcher]),
    ],
)
async def test_callbacks_come_in_many_shapes(wrap: Any) -> None:
    watcher = Watcher()
    await chain(("ask", ask)).compile().ainvoke({"a": 1}, {"callbacks": wrap(watcher)})
    assert watcher.told == [PAUSE]


async def test_a_run_may_have_an_id_given() -> None:
    watcher, given = Watcher(), UUID(int=7)
    graph = chain(("ask", ask)).compile()
    for run_id in (given, str(given), "no uuid"):
        await graph.ainvoke({"a": 1}, {"callbacks": [watcher], "run_id": run_id})
    assert [event.run_id for event in watcher.events] == [given, given, None]


async def test_a_watcher_that_fails_is_logged_and_others_are_told(saver: Any, caplog: pytest.LogCaptureFixture) -> None:
    class Failing(GraphCallbackHandler):
        def on_interrupt(self, event: GraphInterruptEvent) -> None:
            del event
            msg = "watcher"
            raise ValueError(msg)

    class Insisting(Failing):
        raise_error = True

    watcher = Watcher()
    graph = chain(("ask", ask)).compile(saver)
    with caplog.at_level(logging.WARNING, "actorgraph"):
        paused = await graph.ainvoke({"a": 1}, watched("1", Failing(), watcher))
    assert "Failing.on_interrupt failed" in caplog.text
    assert paused["__interrupt__"][0].value == "?"
    with pytest.raises(ValueError, match="watcher"):
        await graph.ainvoke({"a": 1}, watched("2", Insisting(), watcher))
    assert watcher.told == [PAUSE, PAUSE]
    assert (await graph.aget_state(thread("2"))).interrupts


async def test_a_sync_watcher_works_in_a_thread_of_its_own_unless_it_is_quick() -> None:
    threads: list[bool] = []

    class Where(GraphCallbackHandler):
        def on_interrupt(self, event: GraphInterruptEvent) -> None:
            del event
            try:
                anyio.get_current_task()
            except Exception:  # noqa: BLE001 - there is no event loop in a worker thread
                threads.append(True)
            else:
                threads.append(False)

    class Quick(Where):
        run_inline = True

    await chain(("ask", ask)).compile().ainvoke({}, {"callbacks": [Where(), Quick()]})
    assert threads == [True, False]


def test_a_watcher_is_a_handler_of_langchains() -> None:
    assert issubclass(GraphCallbackHandler, BaseCallbackHandler)
    module: Any = __import__("runtime.callbacks", fromlist=["callbacks"])
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        module.nothing  # noqa: B018 - the access is the test


# ---- what reaches nodes and subgraphs --------------------------------------------------------------------------------


class Named(BaseCallbackHandler):
    """A handler with a name to tell it by."""

    def __init__(self, name: str) -> None:
        self.name = name


def seen(config: RunnableConfig) -> tuple[list[str], list[str], dict[str, Any]]:
    """Return the names of the handlers, the tags, and the program's own metadata of a config."""
    manager: Any = config["callbacks"]
    metadata = {key: value for key, value in config["metadata"].items() if len(key) == 1}
    assert manager.tags == config["tags"]
    assert metadata.items() <= manager.metadata.items()
    return [handler.name for handler in manager.handlers], config["tags"], metadata


async def test_callbacks_tags_and_metadata_reach_nodes_and_subgraphs() -> None:
    found: list[Any] = []

    def look(_state: Log, config: RunnableConfig) -> None:
        found.append(seen(config))

    child = chain(("look", look)).compile()

    async def call(_state: Log, config: RunnableConfig) -> None:
        await child.ainvoke({})
        await child.ainvoke({}, config)
        await child.ainvoke({}, {"callbacks": [Named("own")], "tags": ["own"], "metadata": {"a": "own"}})
        await child.with_config(callbacks=[Named("with")], tags=["with"], metadata={"a": "with"}).ainvoke({})

    graph = chain(("look", look), ("node", child), ("call", call)).compile()
    graph = graph.with_config({"callbacks": [Named("graph")], "tags": ["graph"], "metadata": {"g": 1, "a": "graph"}})
    await graph.ainvoke({}, {"callbacks": [Named("call")], "tags": ["call"], "metadata": {"c": 1, "a": "call"}})
    plain = (["graph", "call"], ["graph", "call"], {"g": 1, "a": "call", "c": 1})
    assert found == [
        plain,
        plain,
        plain,
        plain,
        (["graph", "call", "own"], ["graph", "call", "own"], {"g": 1, "a": "own", "c": 1}),
        (["graph", "call", "with"], ["graph", "call", "with"], {"g": 1, "a": "with", "c": 1}),
    ]


async def test_of_a_manager_nodes_hear_what_it_passes_on() -> None:
    found: list[Any] = []

    def look(_state: Log, config: RunnableConfig) -> None:
        found.append(seen(config)[0])

    root: Any = Watcher()
    below: Any = Watcher()
    below.name = "watcher"
    manager = AsyncCallbackManager([root], inheritable_handlers=[below], tags=["root"], inheritable_tags=["below"])
    graph = chain(("look", look), ("sub", chain(("look", look)).compile())).compile()
    for callbacks in (manager, [Named("more")]):
        await graph.with_config(callbacks=[Named("graph")]).ainvoke({}, {"callbacks": callbacks, "tags": ["below"]})
    assert found == [["watcher", "graph"]] * 2 + [["graph", "more"]] * 2
    await graph.with_config(callbacks=manager).ainvoke(
        {}, {"callbacks": AsyncCallbackManager([], inheritable_handlers=[Named("merged")]), "tags": ["below"]}
    )
    assert found[4:] == [["watcher", "merged"]] * 2


async def test_names_of_a_call_are_not_those_of_what_its_nodes_call() -> None:
    found: list[Any] = []
    graph = chain(("look", lambda _state: found.append(get_config()))).compile()
    await graph.ainvoke({}, {"run_name": "mine", "run_id": UUID(int=1), "max_concurrency": 2})
    assert "run_name" not in found[0]
    assert "run_id" not in found[0]
    assert found[0]["max_concurrency"] == 2
