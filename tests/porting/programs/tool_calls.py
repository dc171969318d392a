"""Tools called by hand, callbacks and events, messages in streams."""

import asyncio
import inspect
import operator
from typing import Annotated

from langchain_core.callbacks import BaseCallbackHandler, dispatch_custom_event
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_store, get_stream_writer
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph, add_messages
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict


def tried(what, function):
    """Print what comes of a call: its result, or the kind of its error."""
    try:
        result = function()
        print(what, "->", asyncio.run(result) if inspect.iscoroutine(result) else result)
    except Exception as error:
        print(what, [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"][0])


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


@tool
def add(a: int, b: int) -> int:
    "Add."
    return a + b


@tool
def ask(q: str) -> str:
    "Ask."
    return interrupt({"q": q})


@tool
def setn(n: int, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
    "Set n."
    return Command(update={"n": n, "messages": [ToolMessage("set", tool_call_id=tool_call_id)]})


class A(MessagesState):
    n: int


by = {t.name: t for t in (add, ask, setn)}


def tools(s):
    out = []
    for call in s["messages"][-1].tool_calls:
        r = by[call["name"]].invoke(call)
        out.append(r if isinstance(r, Command) else {"messages": [r]})
    return out if any(isinstance(o, Command) for o in out) else {"messages": [m for o in out for m in o["messages"]]}


def llm(s):
    k = len(s["messages"])
    if k == 1:
        return {
            "messages": [
                AIMessage(
                    "",
                    tool_calls=[
                        {"name": "add", "args": {"a": 1, "b": 2}, "id": "1"},
                        {"name": "ask", "args": {"q": "ok?"}, "id": "2"},
                    ],
                )
            ]
        }
    if k == 4:
        return {"messages": [AIMessage("", tool_calls=[{"name": "setn", "args": {"n": 5}, "id": "3"}])]}
    return {"messages": [AIMessage("done")]}


g = (
    StateGraph(A)
    .add_node(llm)
    .add_node(tools)
    .add_edge(START, "llm")
    .add_conditional_edges("llm", lambda s: "tools" if s["messages"][-1].tool_calls else END)
    .add_edge("tools", "llm")
    .compile(InMemorySaver())
)
c = cfg()
tried("first", lambda: V(g.invoke({"messages": "go"}, c))["__interrupt__"])
tried(
    "resume",
    lambda: (lambda r: ([(m.type, m.content) for m in r["messages"]], r["n"]))(g.invoke(Command(resume="yes"), c)),
)
tried("stream", lambda: [list(ch) for ch in g.stream({"messages": "go"}, cfg())])
tried(
    "messages",
    lambda: [
        (m.type, m.content, meta["langgraph_node"])
        for m, meta in g.stream({"messages": "go"}, cfg(), stream_mode="messages")
    ],
)
tried(
    "tool direct",
    lambda: seq(("t", lambda s: {"log": [add.invoke({"a": 1, "b": s["n"]})]})).invoke({"n": 3, "log": []}),
)


@tool
def cfgtool2(x: int, config: RunnableConfig) -> str:
    "Cfg."
    return config["configurable"]["user"] + config["metadata"]["langgraph_node"]


tried(
    "tool config",
    lambda: seq(("t", lambda s: {"log": [cfgtool2.invoke({"x": 1})]})).invoke(
        {"log": []}, {"configurable": {"user": "u"}}
    ),
)


@tool
def writes(x: int) -> str:
    "Writes."
    get_stream_writer()({"progress": x})
    return "w"


tried(
    "tool writer",
    lambda: list(seq(("t", lambda s: {"log": [writes.invoke({"x": 1})]})).stream({"log": []}, stream_mode="custom")),
)


@tool
def uses_store(x: str) -> str:
    "Store."
    return get_store().get(("a",), "k").value["v"]


st = InMemoryStore()
st.put(("a",), "k", {"v": "stored"})
tried(
    "tool store", lambda: seq(("t", lambda s: {"log": [uses_store.invoke({"x": "1"})]}), store=st).invoke({"log": []})
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


log = []


class H(BaseCallbackHandler):
    def on_llm_end(self, r, **k):
        log.append(("llm", r.generations[0][0].text))

    def on_tool_end(self, o, **k):
        log.append(("tool", str(getattr(o, "content", o))))

    def on_tool_error(self, e, **k):
        log.append(("tool error", repr(e)))

    def on_custom_event(self, n, d, **k):
        log.append((n, d))


@tool
def dbl(x: int) -> int:
    "D."
    return x * 2


@tool
def boom(x: int) -> int:
    "B."
    raise ValueError("b")


m = FakeListChatModel(responses=["one", "two"])


def node(s):
    return {"log": [m.invoke("hi").content, dbl.invoke({"x": 2})]}


g = seq(("n", node))
tried("run", lambda: g.invoke({"log": []}, {"callbacks": [H()]}))
print(log)
log.clear()


def bad(s):
    boom.invoke({"x": 1})


tried("err", lambda: seq(("b", bad)).invoke({"log": []}, {"callbacks": [H()]}))
print(log)
log.clear()
sub = seq(("n", node))
tried(
    "sub",
    lambda: (
        StateGraph(S).add_node("sub", sub).add_edge(START, "sub").compile().invoke({"log": []}, {"callbacks": [H()]})
    ),
)
print(log)
log.clear()
tried("with_config", lambda: g.with_config(callbacks=[H()]).invoke({"log": []}))
print(len(log))
log.clear()
tried("batch", lambda: len(g.batch([{"log": []}] * 2, {"callbacks": [H()]})))
print(len(log))
log.clear()


@task
def t(x):
    return dbl.invoke({"x": x})


@entrypoint()
def wf(x):
    return t(x).result()


tried("task", lambda: wf.invoke(4, {"callbacks": [H()]}))
print(log)
log.clear()


async def an(s):
    return {"log": [(await m.ainvoke("x")).content]}


tried("async", lambda: seq(("a", an)).ainvoke({"log": []}, {"callbacks": [H()]}))
print(log)
log.clear()
tried(
    "custom event",
    lambda: seq(("e", lambda s: dispatch_custom_event("ev", {"a": 1}))).invoke({"log": []}, {"callbacks": [H()]}),
)
print(log)
log.clear()
tried(
    "stream with cb",
    lambda: [type(x[0]).__name__ for x in g.stream({"log": []}, {"callbacks": [H()]}, stream_mode="messages")],
)
print(log)


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


def M(g, inp={"messages": []}, **k):
    return [
        (type(m).__name__, m.content, meta["langgraph_node"], meta["langgraph_step"])
        for m, meta in g.stream(inp, stream_mode="messages", **k)
    ]


def one(f):
    return StateGraph(MessagesState).add_node("n", f).add_edge(START, "n").compile()


tried("ai", lambda: M(one(lambda s: {"messages": AIMessage("a", id="1")})))
tried(
    "list", lambda: M(one(lambda s: {"messages": [AIMessage("a", id="1"), ToolMessage("t", tool_call_id="x", id="2")]}))
)
tried("dicts", lambda: M(one(lambda s: {"messages": [{"role": "assistant", "content": "d"}]})))
tried("tuples", lambda: M(one(lambda s: {"messages": [("ai", "t")]})))
tried("command", lambda: M(one(lambda s: Command(update={"messages": [AIMessage("c", id="1")]}))))
tried(
    "list cmds",
    lambda: M(
        one(lambda s: [Command(update={"messages": [AIMessage("c", id="1")]}), {"messages": [AIMessage("d", id="2")]}])
    ),
)
tried(
    "input echoed",
    lambda: M(
        one(lambda s: {"messages": s["messages"] + [AIMessage("n", id="2")]}), {"messages": [HumanMessage("h", id="1")]}
    ),
)
tried("no id", lambda: M(one(lambda s: {"messages": [AIMessage("x")]})))
tried(
    "same id twice",
    lambda: M(
        StateGraph(MessagesState)
        .add_node("n", lambda s: {"messages": [AIMessage("1", id="1")]})
        .add_node("m", lambda s: {"messages": [AIMessage("2", id="1")]})
        .add_edge(START, "n")
        .add_edge("n", "m")
        .compile()
    ),
)


class Other(TypedDict, total=False):
    chat: Annotated[list, add_messages]
    single: AIMessage


tried(
    "other key",
    lambda: M(
        StateGraph(Other)
        .add_node("n", lambda s: {"chat": [AIMessage("c", id="1")], "single": AIMessage("s", id="2")})
        .add_edge(START, "n")
        .compile(),
        {"chat": []},
    ),
)
tried(
    "remove", lambda: M(one(lambda s: {"messages": [RemoveMessage(id="1")]}), {"messages": [HumanMessage("h", id="1")]})
)
tried("human", lambda: M(one(lambda s: {"messages": [HumanMessage("h2", id="9")]})))
tried(
    "sub",
    lambda: M(
        StateGraph(MessagesState)
        .add_node("s", one(lambda s: {"messages": [AIMessage("in", id="1")]}))
        .add_edge(START, "s")
        .compile()
    ),
)
tried(
    "sub ns",
    lambda: [
        (len(n), m.content)
        for n, (m, meta) in StateGraph(MessagesState)
        .add_node("s", one(lambda s: {"messages": [AIMessage("in", id="1")]}))
        .add_edge(START, "s")
        .compile()
        .stream({"messages": []}, stream_mode="messages", subgraphs=True)
    ],
)
tried(
    "with updates",
    lambda: [
        k
        for k, _ in one(lambda s: {"messages": AIMessage("a", id="1")}).stream(
            {"messages": []}, stream_mode=["messages", "updates", "values"]
        )
    ],
)
