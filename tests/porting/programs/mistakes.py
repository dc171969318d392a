"""What goes wrong, and by which error."""

import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import EmptyInputError, GraphRecursionError, InvalidUpdateError
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt


class State(TypedDict, total=False):
    log: Annotated[list, operator.add]
    n: int


def tried(what, function):
    try:
        print(what, "->", function())
    except (EmptyInputError, GraphRecursionError, InvalidUpdateError) as error:
        kinds = [k for k in (EmptyInputError, GraphRecursionError, InvalidUpdateError) if isinstance(error, k)]
        print(what, kinds[0].__name__)
    except Exception as error:
        kinds = [k for k in (ValueError, TypeError, RuntimeError, KeyError) if isinstance(error, k)]
        print(what, kinds[0].__name__ if kinds else type(error).__name__)


def graph(node=lambda s: {}, **options):
    return StateGraph(State).add_node("a", node).add_edge(START, "a").compile(**options)


config = {"configurable": {"thread_id": "1"}}
tried("no start", lambda: StateGraph(State).add_node("a", tried).compile())
tried("unknown target", lambda: StateGraph(State).add_node("a", tried).add_edge(START, "b").compile())
tried("unknown source", lambda: StateGraph(State).add_node("a", tried).add_edge("b", "a").compile())
tried("twice", lambda: StateGraph(State).add_node("a", tried).add_node("a", tried))
tried("reserved", lambda: StateGraph(State).add_node("__start__", tried))
tried("colon", lambda: StateGraph(State).add_node("a|b", tried))
tried("from end", lambda: StateGraph(State).add_edge(END, "a"))
tried("to start", lambda: StateGraph(State).add_edge("a", START))
tried("lambda", lambda: StateGraph(State).add_node(lambda s: s).nodes.keys())
tried("returns text", lambda: graph(lambda s: "text").invoke({"n": 1}))
tried("returns number", lambda: graph(lambda s: 5).invoke({"n": 1}))
tried("unknown key", lambda: graph(lambda s: {"x": 5}).invoke({"n": 1}))
tried("raises", lambda: graph(lambda s: {}[1]).invoke({"n": 1}))
tried("no input", lambda: graph().invoke(None))
tried("list input", lambda: graph().invoke([1]))
tried("no thread", lambda: graph(checkpointer=InMemorySaver()).invoke({"n": 1}))
tried("no saver", lambda: graph().get_state(config))
tried("interrupt without saver", lambda: graph(lambda s: {"n": interrupt("q")}).invoke({"n": 1}) and "stopped")
tried("interrupt outside", lambda: interrupt("q"))
tried("empty state", lambda: graph(checkpointer=InMemorySaver()).get_state(config).values)
tried("update fresh", lambda: sorted(graph(checkpointer=InMemorySaver()).update_state(config, {"n": 1})["configurable"]))
tried("update unknown node", lambda: graph(checkpointer=InMemorySaver()).update_state(config, {"n": 1}, as_node="zz"))
tried("limit", lambda: graph(lambda s: Command(goto="a")).invoke({"n": 1}, {"recursion_limit": 3}))
tried("limit 0", lambda: graph().invoke({"n": 1}, {"recursion_limit": 0}))
tried("bad reducer", lambda: graph(lambda s: {"log": 5}).invoke({"log": [1]}))
tried("entry without parameter", lambda: entrypoint()(lambda: 1))
tried("task outside", lambda: task(lambda: 1)())
tried("async invoke", lambda: graph(checkpointer=InMemorySaver(), interrupt_before=["a"]).invoke({"n": 1}, config))
tried("goto end", lambda: graph(lambda s: Command(goto=END)).invoke({"n": 1}))
tried("update list", lambda: graph(lambda s: Command(update=[("n", 7), ("log", [1])])).invoke({"n": 1}))
tried("compile bad saver", lambda: graph(checkpointer="memory"))
