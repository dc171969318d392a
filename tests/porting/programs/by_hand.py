"""What programs do with the objects by hand: checks of classes, copies, unpacking, assigning."""

import asyncio
import copy
import dataclasses
import inspect
import operator
import pickle
from typing import Annotated, Any, Optional

from langgraph.cache.base import BaseCache
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import CachePolicy, Command, Interrupt, RetryPolicy, Send, StateSnapshot
from pydantic import BaseModel, ConfigDict
from typing_extensions import TypedDict


def tried(what, function):
    """Print what comes of a call: its result, or the kind of its error."""
    try:
        result = function()
        print(what, "->", asyncio.run(result) if inspect.iscoroutine(result) else result)
    except Exception as error:
        print(what, [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"][0])


saver = InMemorySaver()
tried("saver", lambda: isinstance(saver, BaseCheckpointSaver))
tried("saver sub", lambda: issubclass(InMemorySaver, BaseCheckpointSaver))
tried("store", lambda: (isinstance(InMemoryStore(), BaseStore), issubclass(InMemoryStore, BaseStore)))
tried("cache", lambda: (isinstance(InMemoryCache(), BaseCache), issubclass(InMemoryCache, BaseCache)))
tried("generic", lambda: BaseCheckpointSaver[str] is not None)
tried(
    "generic graph",
    lambda: (
        StateGraph[MessagesState] is not None,
        CompiledStateGraph[MessagesState, None, MessagesState, MessagesState] is not None,
        Command[str] is not None,
        Runtime[int] is not None,
        BaseCache[int] is not None,
        CachePolicy[Any] is not None,
    ),
)
g = StateGraph(MessagesState).add_node("a", lambda s: {}).add_edge(START, "a").compile(saver)
tried("graph", lambda: isinstance(g, CompiledStateGraph))


class Settings(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    saver: Optional[BaseCheckpointSaver] = None
    store: Optional[BaseStore] = None
    graph: Optional[CompiledStateGraph] = None
    retry: Optional[RetryPolicy] = None


tried(
    "settings", lambda: type(Settings(saver=saver, store=InMemoryStore(), graph=g, retry=RetryPolicy()).saver).__name__
)
c = {"configurable": {"thread_id": "1"}}
g.invoke({"messages": []}, c)


def unpack():
    config, checkpoint, metadata, parent, writes = saver.get_tuple(c)
    return metadata, len([1 for config, checkpoint, metadata, parent, writes in saver.list(c)])


tried("unpack", unpack)
tried("len", lambda: (len(saver.get_tuple(c)), saver.get_tuple(c)._asdict().keys()))
tried("asdict", lambda: list(g.get_state(c)._asdict()))
tried("snapshot ctor", lambda: StateSnapshot({}, (), {}, None, None, None, (), ())._fields)
tried("replace", lambda: g.get_state(c)._replace(values={"x": 1}).values)
tried("index", lambda: (g.get_state(c)[1], g.get_state(c)[0].keys()))
tried("task fields", lambda: list(g.get_state_history(c))[1].tasks[0]._fields)
tried(
    "retry",
    lambda: (
        RetryPolicy(max_attempts=2).max_attempts,
        RetryPolicy(1.0, 2.0).backoff_factor,
        RetryPolicy()._replace(max_attempts=9).max_attempts,
    ),
)
tried(
    "send", lambda: sorted(Send("a", {"x": 1}).__dict__) if hasattr(Send("a", 1), "__dict__") else [Send("a", 1).node]
)
tried(
    "copy",
    lambda: (
        copy.copy(Send("a", 1)) == Send("a", 1),
        copy.deepcopy(Command(goto="x")) == Command(goto="x"),
        copy.deepcopy(g.get_state(c)).values,
    ),
)
tried(
    "pickle",
    lambda: (
        pickle.loads(pickle.dumps(Send("a", 1))),
        pickle.loads(pickle.dumps(Command(goto="x", update={"a": 1}))),
        pickle.loads(pickle.dumps(Interrupt(value=1, id="x"))),
    ),
)
tried(
    "dc",
    lambda: (
        dataclasses.is_dataclass(Command(goto="a")),
        dataclasses.is_dataclass(Interrupt(value=1, id="x")),
        dataclasses.asdict(Interrupt(value=1, id="x")),
    ),
)
tried("dcr", lambda: dataclasses.replace(Command(goto="a"), update={"n": 1}))
tried("vars", lambda: {f.name: getattr(Command(goto="a"), f.name) for f in dataclasses.fields(Command)})
tried(
    "kwargs",
    lambda: (
        StateGraph(state_schema=MessagesState)
        .add_node(node="a", action=lambda s: {})
        .add_edge(start_key=START, end_key="a")
        .compile(checkpointer=None, name="nm")
        .name
    ),
)
tried("inv kw", lambda: g.invoke(input={"messages": []}, config=c, stream_mode="values") is not None)
tried(
    "stream kw",
    lambda: list(
        g.stream(
            input={"messages": []},
            config=c,
            stream_mode="updates",
            output_keys=None,
            interrupt_before=None,
            interrupt_after=None,
            durability=None,
            debug=None,
            subgraphs=False,
        )
    ),
)
tried("upd kw", lambda: g.update_state(config=c, values={"messages": []}, as_node="a", task_id=None) is not None)
tried("hist kw", lambda: len(list(g.get_state_history(config=c, filter=None, before=None, limit=1))))
tried(
    "compile kw",
    lambda: (
        type(
            g.builder.compile(
                checkpointer=saver,
                cache=None,
                store=None,
                interrupt_before=None,
                interrupt_after=None,
                debug=False,
                name="n",
            )
        ).__name__
    ),
)


class S(TypedDict, total=False):
    log: Annotated[list, operator.add]
    n: int


N = 0


def cfg(**k):
    global N
    N += 1
    return {"configurable": {"thread_id": str(N), **k}}


def V(r):
    return (
        {k: ([x.value for x in v] if k == "__interrupt__" else v) for k, v in r.items()} if isinstance(r, dict) else r
    )


def w(k):
    return lambda s: {"log": [k]}


def seq(*ns, **kw):
    return StateGraph(S).add_sequence(list(ns)).add_edge(START, ns[0][0]).compile(**kw)


g = seq(("a", w("a")), ("b", w("b")), checkpointer=InMemorySaver(), name="named")
c = cfg()
tried("nodes", lambda: list(g.nodes))
tried("node invoke", lambda: g.nodes["a"].invoke({"log": []}))
tried("name", lambda: (g.name, g.get_name()))
tried(
    "state schema",
    lambda: (
        g.builder.state_schema is S,
        g.builder.input_schema is S,
        g.builder.output_schema is S,
        g.builder.context_schema,
    ),
)
tried("checkpointer", lambda: (type(g.checkpointer).__name__, g.store))
g.checkpointer = InMemorySaver()
tried("replaced saver", lambda: g.invoke({"log": []}, c))
g2 = g.builder.compile()
tried("no saver", lambda: g2.checkpointer)
g2.checkpointer = InMemorySaver()
tried("assigned saver", lambda: (g2.invoke({"log": []}, c), g2.get_state(c).next))
g2.step_timeout = 5
tried("step timeout", lambda: g2.step_timeout)
tried("copy", lambda: copy.copy(g).invoke({"log": []}, cfg()))
tried("with_config type", lambda: type(g.with_config({"tags": ["a"]})) is type(g))
tried("repr ok", lambda: isinstance(repr(g), str))
tried("bool", lambda: bool(g))
tried("hash", lambda: isinstance(hash(g), int))
tried("channels", lambda: sorted(k for k in g.channels if not k.startswith(("__", "branch:"))))
tried(
    "interrupts",
    lambda: (g.interrupt_before_nodes, g.interrupt_after_nodes) if hasattr(g, "interrupt_before_nodes") else ([], []),
)
