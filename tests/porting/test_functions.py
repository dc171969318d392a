"""The functions around savers, stores and caches give what LangGraph's give."""

from __future__ import annotations

import operator
import sys
from types import ModuleType
from typing import Annotated, Any, TypedDict
from uuid import UUID

import langgraph.callbacks
import langgraph.channels
import langgraph.checkpoint.base
import langgraph.checkpoint.base.id
import langgraph.errors
import langgraph.graph
import langgraph.runtime
import langgraph.store.base
import langgraph.types
import pytest

import persistence.store
from persistence import saver
from persistence.cache import BaseCache, FullKey, Namespace
from persistence.errors import InvalidNamespaceError
from persistence.memory import InMemoryCache, InMemorySaver, InMemoryStore
from persistence.postgres import PostgresSaver, PostgresStore
from persistence.postgres.options import pooled
from persistence.saver import BaseCheckpointSaver, CheckpointTuple
from persistence.sqlite import SqliteSaver
from runtime import callbacks, channels, errors
from runtime.graph import START, StateGraph
from runtime.runtime import ExecutionInfo, Runtime
from runtime.store import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from runtime.types import CachePolicy, Interrupt

CONFIGS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"metadata": {"a": 1, "b": 2, "langgraph_node": "n"}, "configurable": {"a": 3, "b": 4, "c": 5}}, {"a": 0}),
    ({"configurable": {"thread_id": "t", "checkpoint_ns": "", "__x": 1, "y__": 2}}, {"source": "loop", "step": 1}),
    ({"metadata": {"text": "a\0b", "bytes": b"1", "list": [1], "none": None, "flag": True, "half": 0.5}}, {}),
    ({"metadata": None, "run_id": "top", "configurable": {"run_id": "r"}}, {"t": "x\0", "writes": {"n": "\0"}}),
    ({}, {"step": -1}),
]


@pytest.mark.parametrize("number", range(len(CONFIGS)))
def test_the_same_metadata(number: int) -> None:
    """Plain values of the config join what is given; what a row tells already does not."""
    theirs = langgraph.checkpoint.base
    config, metadata = CONFIGS[number]
    found = saver.get_checkpoint_metadata(config, metadata)
    assert found == theirs.get_checkpoint_metadata(config, metadata)  # type: ignore[arg-type]
    bare = saver.get_serializable_checkpoint_metadata(config, metadata)
    assert bare == theirs.get_serializable_checkpoint_metadata(config, metadata)  # type: ignore[arg-type]
    assert saver.EXCLUDED_METADATA_KEYS == theirs.EXCLUDED_METADATA_KEYS


def test_the_same_checkpoints() -> None:
    """But for ids, times and the number of the form; channels that hold nothing are left out here."""
    ours, theirs = saver.empty_checkpoint(), langgraph.checkpoint.base.empty_checkpoint()
    assert ours.keys() == theirs.keys() - {"pending_sends"}
    assert ours["v"] == saver.LATEST_VERSION
    ours |= {"channel_versions": {"a": 1}, "versions_seen": {"n": {"a": 1}}, "updated_channels": ["a"]}
    full, empty = channels.LastValue(int, "a"), channels.LastValue(int, "b")
    full.update([3])
    made = saver.create_checkpoint(ours, {"a": full, "b": empty}, 7)
    assert made["channel_values"] == {"a": 3}
    assert (made["channel_versions"], made["versions_seen"]) == ({"a": 1}, {"n": {"a": 1}})
    assert made["versions_seen"]["n"] is not ours["versions_seen"]["n"]
    assert made["updated_channels"] is None
    assert made["id"] > ours["id"]
    assert UUID(made["id"]).clock_seq == 7
    assert saver.create_checkpoint(made, None, 8, id="mine")["id"] == "mine"
    assert saver.create_checkpoint(made, None, 8)["channel_values"] == {"a": 3}
    copied = saver.copy_checkpoint(ours)
    assert copied == ours
    for part in ("channel_values", "channel_versions", "versions_seen", "updated_channels"):
        assert copied[part] is not ours[part]


def test_a_checkpoint_is_made_of_channels_that_say_by_an_error_that_they_are_empty() -> None:
    """As those of LangGraph's kind may; one error class for both packages."""

    class Plain:
        def is_available(self) -> bool:
            return True

        def checkpoint(self) -> Any:
            raise errors.EmptyChannelError("a")

    assert issubclass(errors.EmptyChannelError, saver.EmptyChannelError)
    assert saver.create_checkpoint(saver.empty_checkpoint(), {"a": Plain()}, 0)["channel_values"] == {}


def test_the_same_ids() -> None:
    """In order, with the node and the sequence that are asked for."""
    ids = [saver.uuid6(node=1, clock_seq=5) for _ in range(1000)]
    theirs = langgraph.checkpoint.base.id.uuid6(node=1, clock_seq=5)
    assert [str(one) for one in ids] == sorted({str(one) for one in ids})
    assert {(one.version, one.node, one.clock_seq) for one in ids} == {(6, 1, 5)}
    assert str(ids[0])[18:] == str(theirs)[18:]
    assert str(ids[0])[:6] == str(theirs)[:6]  # the same epoch: two days and a half have these digits in common
    assert str(saver.uuid6(clock_seq=-2))[18:23] == str(langgraph.checkpoint.base.id.uuid6(clock_seq=-2))[18:23]
    assert saver.uuid6().node != saver.uuid6().node


DOCUMENT: dict[str, Any] = {
    "a": {"b": "x", "c": [{"d": 1}, {"d": None}, {"d": "z"}]},
    "l": ["p", 4, True],
    "none": None,
    "ü": 1.5,
}
PATHS = ["", "$", "a", "a.b", "a.c[*].d", "a.c[0].d", "a.c[-1].d", "a.c[9]", "l[*]", "l", "*", "a.*", "{a.b,ü}"]
PATHS += ["a.{b,c}", "none", "x.y", "a[0]", "a..b"]


@pytest.mark.parametrize("path", PATHS)
def test_the_same_texts_at_a_path(path: str) -> None:
    """Given as text, or in parts."""
    parts = persistence.store.tokenize_path(path)
    assert parts == langgraph.store.base.tokenize_path(path)
    expected = langgraph.store.base.get_text_at_path(DOCUMENT, path)
    assert persistence.store.get_text_at_path(DOCUMENT, path) == expected
    assert persistence.store.get_text_at_path(DOCUMENT, parts) == expected


async def test_functions_become_embeddings() -> None:
    """Sync and async ones, called in either way."""

    def lengths(texts: Any) -> list[list[float]]:
        return [[float(len(text))] for text in texts]

    async def slowly(texts: Any) -> list[list[float]]:
        return lengths(texts)

    ours, theirs = persistence.store.ensure_embeddings(lengths), langgraph.store.base.ensure_embeddings(lengths)
    assert ours.embed_documents(["a", "bb"]) == theirs.embed_documents(["a", "bb"])
    assert ours.embed_query("ccc") == theirs.embed_query("ccc")
    for function in (lengths, slowly):
        made = persistence.store.ensure_embeddings(function)
        assert await made.aembed_documents(["a", "bb"]) == [[1.0], [2.0]]
        assert await made.aembed_query("ccc") == [3.0]
        assert persistence.store.ensure_embeddings(made) is made
    with pytest.raises(ValueError, match="embed must be given"):
        persistence.store.ensure_embeddings(None)
    with pytest.raises(TypeError, match="function or an embeddings object"):
        persistence.store.ensure_embeddings(5)


def test_an_async_function_can_embed_where_nothing_can_be_awaited() -> None:
    """On the process's portal."""

    async def slowly(texts: Any) -> list[list[float]]:
        return [[float(len(text))] for text in texts]

    assert persistence.store.ensure_embeddings(slowly).embed_query("ab") == [2.0]


def test_a_name_is_looked_up_by_langchain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is installed; the index of a store takes a name as well."""
    monkeypatch.setitem(sys.modules, "langchain.embeddings", None)
    with pytest.raises(ImportError, match="pip install langchain"):
        persistence.store.ensure_embeddings("openai:small")
    with pytest.raises(ImportError, match="'openai:small'"):
        InMemoryStore(index={"dims": 1, "embed": "openai:small"})
    installed: Any = ModuleType("langchain.embeddings")
    installed.init_embeddings = lambda name: lambda texts: [[float(len(name))] for _ in texts]
    monkeypatch.setitem(sys.modules, "langchain.embeddings", installed)
    store = InMemoryStore(index={"dims": 1, "embed": "openai:small"})
    store.put(("a",), "k", {"text": "x"})
    assert store.search(("a",), query="y")[0].score == 1.0


OPERATIONS: list[Any] = [
    GetOp(("a", "b"), "k"),
    GetOp((), "k"),
    PutOp(("a.b",), "k", {}),
    SearchOp(("a.b",)),
    SearchOp(()),
    ListNamespacesOp((MatchCondition("prefix", ("*", "a.b")),)),
    ListNamespacesOp((MatchCondition("suffix", ("*", "a")),)),
    ListNamespacesOp(),
]


@pytest.mark.parametrize("number", range(len(OPERATIONS)))
def test_the_same_namespaces_are_refused(number: int) -> None:
    """By the same error's name."""
    ours = OPERATIONS[number]
    theirs: Any = getattr(langgraph.store.base, type(ours).__name__)(*ours)
    refused = []
    for check, error, op in (
        (persistence.store.validate_op_namespace, InvalidNamespaceError, ours),
        (langgraph.store.base.validate_op_namespace, langgraph.store.base.InvalidNamespaceError, theirs),
    ):
        try:
            check(op)
        except error:
            refused.append(check)
    assert len(refused) in (0, 2)


class State(TypedDict):
    n: int


class Grown(TypedDict):
    log: Annotated[list[str], operator.add]


class Ported(BaseCache):
    """A cache as it is written for LangGraph."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[FullKey, tuple[str, bytes]] = {}

    async def aget(self, keys: Any) -> dict[FullKey, Any]:
        return {key: self.serde.loads_typed(self.kept[key]) for key in keys if key in self.kept}

    async def aset(self, pairs: Any) -> None:
        self.kept |= {key: self.serde.dumps_typed(value) for key, (value, _ttl) in pairs.items()}

    async def aclear(self, namespaces: Any = None) -> None:
        gone: list[Namespace] | None = namespaces
        self.kept = {} if gone is None else {key: one for key, one in self.kept.items() if key[0] not in gone}


def test_a_cache_of_ones_own_runs_here() -> None:
    """With the methods that LangGraph's base class asks for."""
    ran: list[int] = []
    cache = Ported()
    builder = StateGraph(State).add_edge(START, "a")
    builder.add_node("a", lambda state: ran.append(state["n"]) or {"n": state["n"] + 1}, cache_policy=CachePolicy())
    graph = builder.compile(cache=cache)
    assert [graph.invoke({"n": n}) for n in (1, 1, 2)] == [{"n": 2}, {"n": 2}, {"n": 3}]
    assert ran == [1, 2]
    graph.clear_cache()
    assert graph.invoke({"n": 1}) == {"n": 2}
    assert ran == [1, 2, 1]


def test_a_blocking_saver_reads_one_checkpoint_by_the_base_class() -> None:
    """LangGraph's ``get`` asks the saver's ``get_tuple``."""

    class Blocking(BaseCheckpointSaver):
        def get_tuple(self, config: Any) -> CheckpointTuple | None:
            return CheckpointTuple(config, self.kept, {}) if config["configurable"]["thread_id"] == "t" else None

        kept = saver.empty_checkpoint()

    assert Blocking().get({"configurable": {"thread_id": "t"}}) is Blocking.kept
    assert Blocking().get({"configurable": {"thread_id": "u"}}) is None
    with pytest.raises(NotImplementedError, match="get_tuple"):
        BaseCheckpointSaver().get({"configurable": {"thread_id": "t"}})


def test_the_same_records() -> None:
    """What programs make by hand, in tests above all."""
    assert Interrupt.from_ns(1, "a:b").id == langgraph.types.Interrupt.from_ns(1, "a:b").id
    assert str(callbacks.GraphLifecycleEvent).count("Event") == 2
    made: list[Any] = [Runtime, langgraph.runtime.Runtime]
    ours, theirs = (kind(context="c", previous=1) for kind in made)
    for one, kind in zip((ours, theirs), made, strict=True):
        assert one.merge(kind(context="d")) == one.override(context="d")
    info = ExecutionInfo("c", "ns", "t")
    assert info.patch(task_id="u") == ExecutionInfo("c", "ns", "u")
    assert ours.override(execution_info=info).patch_execution_info(node_attempt=2).execution_info == info.patch(
        node_attempt=2
    )
    for one in (ours, theirs):
        with pytest.raises(RuntimeError):
            one.patch_execution_info(node_attempt=2)


def test_the_same_errors_by_hand() -> None:
    """As a program raises them in its tests."""
    for module in (errors, langgraph.errors):
        late = module.NodeTimeoutError("n", 2.5, kind="run", run_timeout=2.0)
        assert (late.node, late.elapsed, late.kind, late.timeout, late.run_timeout, late.idle_timeout) == (
            "n",
            2.5,
            "run",
            2.0,
            2.0,
            None,
        )
        with pytest.raises(ValueError, match="timeout"):
            module.NodeTimeoutError("n", 2.5, kind="idle", run_timeout=2.0)
        cancelled = module.NodeCancelledError("n")
        assert cancelled.node == "n"
        assert "'n'" in str(cancelled)
        assert str(module.NodeCancelledError("n", "m")) == "m"
        assert module.UnknownInterruptError("m", reason="not_pending").pending_ids == ()


@pytest.mark.parametrize("name", ["LastValue", "Topic", "EphemeralValue", "UntrackedValue", "AnyValue"])
def test_channels_tell_the_same_types(name: str) -> None:
    """Of what is read and of what is written."""
    ours, theirs = getattr(channels, name)(int), getattr(langgraph.channels, name)(int)
    assert (ours.ValueType, ours.UpdateType) == (theirs.ValueType, theirs.UpdateType)
    added = channels.BinaryOperatorAggregate(int, operator.add)
    assert added.ValueType is langgraph.channels.BinaryOperatorAggregate(int, operator.add).ValueType


def test_a_pools_config_says_how_many_connections() -> None:
    """And what goes to the driver; what it cannot mean here is refused."""
    assert pooled({"min_size": 1, "max_size": 4, "kwargs": {"ssl": False}}, {}) == {
        "pool_size": 4,
        "connect_arguments": {"ssl": False},
    }
    assert pooled({"max_size": None}, {"connect_timeout": 1.0}) == {"connect_timeout": 1.0}
    unknown: Any = {"max_lifetime": 5}
    with pytest.raises(TypeError, match="max_lifetime"):
        PostgresStore.from_conn_string("postgresql://host/db", pool_config=unknown)


@pytest.mark.parametrize("name", ["graph", "Graph"])
@pytest.mark.parametrize("suffix", [None, "INPUT", "output"])
def test_the_same_names_of_graphs(name: str, suffix: str | None) -> None:
    """With and without a suffix."""
    found = []
    for start, kind in ((START, StateGraph), (langgraph.graph.START, langgraph.graph.StateGraph)):
        builder: Any = kind(State)
        graph = builder.add_node("a", lambda state: state).add_edge(start, "a").compile(name=name)
        found.append((graph.get_name(suffix), graph.get_name(suffix, name="Other")))
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", [InMemorySaver, SqliteSaver, PostgresSaver], ids=["memory", "sqlite", "postgres"])
def test_savers_count_as_savers(kind: type) -> None:
    """For programs that ask, or have a library ask: pydantic settings with a saver in them."""
    assert issubclass(kind, BaseCheckpointSaver)

    class Own(BaseCheckpointSaver[int]):
        pass

    assert issubclass(Own, BaseCheckpointSaver)
    assert not issubclass(kind, Own)
    assert not issubclass(dict, BaseCheckpointSaver)


def test_caches_count_as_caches() -> None:
    assert isinstance(InMemoryCache(), BaseCache)
    assert isinstance(Ported(), BaseCache)
    assert not isinstance(InMemoryCache(), Ported)
    assert not isinstance({}, BaseCache)
    assert BaseCache[int] is not None


def test_a_saved_checkpoint_has_five_fields() -> None:
    """What rests beside them is no field: programs unpack it."""
    with InMemorySaver() as kept:
        builder = StateGraph(Grown).add_node("a", lambda _state: {"log": ["a"]}).add_edge(START, "a")
        config = {"configurable": {"thread_id": "1"}}
        builder.compile(kept).invoke({"log": ["in"]}, config)
        found = kept.get_tuple(config)
        assert found is not None
        _, checkpoint, metadata, parent, writes = found
        assert (checkpoint["channel_values"], metadata["step"], writes) == ({"log": ["in", "a"]}, 1, [])
        assert parent is not None
        assert found._fields == langgraph.checkpoint.base.CheckpointTuple._fields
        assert found.lineage is not None
        replaced = found._replace(pending_writes=None)
        assert (replaced.pending_writes, replaced.lineage) == (None, found.lineage)
        assert found == (*found[:4], [])
