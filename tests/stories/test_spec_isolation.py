"""What a node does to its input in place reaches neither its siblings, nor the caller, nor the history."""

import operator
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypedDict

import anyio
import pytest

from persistence.memory import InMemorySaver
from runtime.errors import InvalidUpdateError
from runtime.func import entrypoint, task
from runtime.graph import START, StateGraph
from runtime.types import Command, RetryPolicy, Send, interrupt
from tests.stories.graphs import CONFIG, at, chain, fan, history

pytestmark = pytest.mark.anyio


class State(TypedDict, total=False):
    items: list[Any]
    table: dict[str, Any]
    tags: set[str]
    log: Annotated[list[Any], operator.add]


def mutate(state: State) -> dict[str, Any]:
    """Change every container of the input in place and return nothing."""
    state["items"].append("mutated")
    state["table"]["mutated"] = True
    state["tags"].add("mutated")
    state["log"].append("mutated")
    return {}


def fresh() -> dict[str, Any]:
    return {"items": [1], "table": {"k": 1}, "tags": {"t"}, "log": ["in"]}


def seen_by(seen: dict[str, Any], name: str, gate: anyio.Event | None = None) -> Any:
    async def node(state: State) -> dict[str, Any]:
        if gate is not None:
            await gate.wait()
        seen[name] = {key: (list(v) if isinstance(v, list) else v.copy()) for key, v in state.items()}  # type: ignore[attr-defined]
        return {}

    return node


async def test_the_callers_objects_are_untouched(saver: Any) -> None:
    given = fresh()
    await chain(("mut", mutate), schema=State).compile(checkpointer=saver).ainvoke(given, CONFIG)
    assert given == fresh()


async def test_the_callers_objects_are_untouched_without_a_saver() -> None:
    given = fresh()
    result = await chain(("mut", mutate), schema=State).compile().ainvoke(given)
    assert given == fresh()
    assert result == fresh()


async def test_the_next_node_sees_the_state_not_the_mutation(saver: Any) -> None:
    seen: dict[str, Any] = {}
    nodes = [("mut", mutate), ("read", seen_by(seen, "read"))]
    await chain(*nodes, schema=State).compile(checkpointer=saver).ainvoke(fresh(), CONFIG)
    assert seen["read"] == fresh()


async def test_siblings_do_not_see_each_others_mutations(saver: Any) -> None:
    seen: dict[str, Any] = {}
    gate = anyio.Event()

    async def mut(state: State) -> dict[str, Any]:
        mutate(state)
        gate.set()
        return {}

    graph = fan(("a_mut", mut), ("b_read", seen_by(seen, "read", gate)), first=None, last=None, schema=State)
    with anyio.fail_after(10):
        await graph.compile(checkpointer=saver).ainvoke(fresh(), CONFIG)
    assert seen["read"] == fresh()


async def test_live_and_replayed_values_are_equal(saver: Any) -> None:
    seen: dict[str, Any] = {}
    nodes = [("mut", mutate), ("read", seen_by(seen, "read"))]
    graph = chain(*nodes, schema=State).compile(checkpointer=saver)
    live = await graph.ainvoke(fresh(), CONFIG)
    first = seen.pop("read")
    replayed = await graph.ainvoke(None, at(await history(graph), "read").config)
    assert first == seen["read"]
    assert live == replayed == fresh()


async def test_the_stored_history_is_untouched(saver: Any) -> None:
    graph = chain(("mut", mutate), ("mut2", mutate), schema=State).compile(checkpointer=saver)
    await graph.ainvoke(fresh(), CONFIG)
    for snapshot in await history(graph):
        assert "mutated" not in repr(snapshot.values)


async def test_mutating_and_returning_a_container_writes_it_once(saver: Any) -> None:
    def grow(state: State) -> dict[str, Any]:
        state["items"].append(2)
        return {"items": state["items"]}

    graph = chain(("grow", grow), schema=State).compile(checkpointer=saver)
    assert (await graph.ainvoke(fresh(), CONFIG))["items"] == [1, 2]
    assert at(await history(graph), "grow").values["items"] == [1]


async def test_what_a_node_keeps_of_its_output_cannot_change_the_state(saver: Any) -> None:
    kept: list[Any] = []

    async def give(_state: State) -> dict[str, Any]:
        kept.append(["given"])
        return {"items": kept[0]}

    async def later(_state: State) -> dict[str, Any]:
        kept[0].append("changed later")
        return {}

    graph = chain(("give", give), ("later", later), schema=State).compile(checkpointer=saver)
    result = await graph.ainvoke(fresh(), CONFIG)
    assert result["items"] == (await graph.aget_state(CONFIG)).values["items"]


async def test_what_the_caller_does_to_the_result_stays_with_the_caller(saver: Any) -> None:
    graph = chain(("n", lambda _state: {"log": ["n"]}), schema=State).compile(checkpointer=saver)
    result = await graph.ainvoke(fresh(), CONFIG)
    result["items"].append("mine")
    assert (await graph.aget_state(CONFIG)).values["items"] == [1]
    assert (await graph.ainvoke(None, CONFIG))["items"] == [1]


async def test_what_is_sent_is_seen_by_each_as_it_was_sent(saver: Any) -> None:
    sent, seen = fresh(), list[Any]()

    async def part(state: State) -> dict[str, Any]:
        seen.append(repr(state))
        mutate(state)
        return {}

    builder = StateGraph(State).add_node("part", part)
    builder.add_conditional_edges(START, lambda _state: [Send("part", sent), Send("part", sent)], ["part"])
    await builder.compile(checkpointer=saver).ainvoke(fresh(), CONFIG)
    assert seen == [repr(fresh())] * 2
    assert sent == fresh()


async def test_an_attempt_sees_what_is_sent_as_the_first_did() -> None:
    seen: list[Any] = []

    async def part(state: State) -> dict[str, Any]:
        seen.append(repr(state))
        mutate(state)
        if len(seen) == 1:
            raise ConnectionError
        return {}

    policy = RetryPolicy(initial_interval=0, jitter=False)
    builder = StateGraph(State).add_node("part", part, retry_policy=policy)
    builder.add_conditional_edges(START, lambda _state: Send("part", fresh()), ["part"])
    await builder.compile().ainvoke({})
    assert seen == [repr(fresh())] * 2


async def test_an_answer_is_the_same_each_time_the_node_asks(saver: Any) -> None:
    answer: dict[str, Any] = {"lines": [["yes"]]}

    async def ask(_state: State) -> dict[str, Any]:
        lines = interrupt("first")["lines"]
        lines[0].append("and")
        interrupt("second")
        return {"items": lines}

    graph = chain(("ask", ask), schema=State).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    await graph.ainvoke(Command(resume=answer), CONFIG)
    assert (await graph.ainvoke(Command(resume="yes"), CONFIG))["items"] == [["yes", "and"]]
    assert answer == {"lines": [["yes"]]}


async def test_what_a_call_does_to_its_arguments_is_not_seen_by_its_caller(saver: Any) -> None:
    """When the workflow is resumed, its finished calls do nothing."""
    seen: list[Any] = []

    @task
    async def append(items: list[Any], table: dict[str, Any]) -> None:
        items.append(1)
        table["more"] = 1

    @entrypoint(checkpointer=saver)
    async def workflow(_given: Any) -> None:
        items, table = list[Any](), dict[str, Any]()
        await append(items, table=table)
        seen.append((items, table))
        interrupt("?")

    await workflow.ainvoke("go", CONFIG)
    await workflow.ainvoke(Command(resume="on"), CONFIG)
    assert seen == [([], {})] * 2


async def test_debug_finds_a_mutation_deep_inside_the_input(saver: Any) -> None:
    async def deep(state: State) -> dict[str, Any]:
        state["table"]["list"].append("deep")
        return {}

    graph = chain(("fine", lambda _state: {}), ("deep", deep), schema=State).compile(checkpointer=saver, debug=True)
    with pytest.raises(InvalidUpdateError, match="deep") as caught:
        await graph.ainvoke({**fresh(), "table": {"list": [1]}}, CONFIG)
    assert "in place" in str(caught.value)
    assert (await graph.aget_state(CONFIG)).next == ("deep",)


class Immutable(dict[str, Any]):
    """A dict that is its own copy and takes nothing in."""

    def __copy__(self) -> Any:
        return self

    def __setitem__(self, key: str, value: Any) -> None:
        raise TypeError(key)


class Recent(dict[str, Any]):
    """A dict that moves what is set to its end."""

    def __setitem__(self, key: str, value: Any) -> None:
        self.pop(key, None)
        super().__setitem__(key, value)


class Uncopied(dict[str, Any]):
    """A dict that cannot be copied."""

    def __copy__(self) -> Any:
        raise RuntimeError


@dataclass
class Client:
    """An object that cannot be copied."""

    hosts: list[str]

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(protocol)


@dataclass(frozen=True)
class Single:
    """An object that is its own copy."""

    items: list[int]

    def __copy__(self) -> Any:
        return self


class Pair(NamedTuple):
    """A tuple with names."""

    left: list[int]


class Tagged(Pair):
    """One with an attribute that is no field."""

    tags: list[str] = []  # noqa: RUF012 - as programs have them


class Listed(tuple[int, ...]):
    """A tuple with an attribute and no names."""

    __slots__ = ()
    tags: list[str] = []  # noqa: RUF012


ODD = (Immutable(a=[1]), Recent(a=1, b=2), Uncopied(a=1), Client(["a"]), Single([1]), Tagged([1]), Listed((1,)))


@pytest.mark.parametrize("sent", ODD, ids=lambda sent: type(sent).__name__)
async def test_what_cannot_be_copied_is_shared_and_stays_as_it_is(sent: Any) -> None:
    seen: list[Any] = []
    held = sent.items if isinstance(sent, Single) else None
    builder = StateGraph(State).add_node("part", seen.append)
    builder.add_conditional_edges(START, lambda _state: [Send("part", sent)], ["part"])
    await builder.compile().ainvoke(fresh())
    assert [type(one) for one in seen] == [type(sent)]
    assert seen[0] is sent or seen == [sent]
    assert held is None or held is sent.items


@pytest.mark.parametrize(
    "answer", [Immutable(a=[1]), Recent(a=1, b=2), Uncopied(a=1)], ids=lambda one: type(one).__name__
)
async def test_an_answer_that_cannot_be_copied_is_given_as_it_is(answer: Any) -> None:
    seen: list[Any] = []
    saver = InMemorySaver()
    saver.register_types([type(answer)])
    graph = chain(("ask", lambda _state: seen.append(interrupt("?"))), schema=State).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    await graph.ainvoke(Command(resume=answer), CONFIG)
    assert [(type(one), dict(one)) for one in seen] == [(type(answer), dict(answer))]
