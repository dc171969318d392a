"""Savers by hand: what is stored, read, listed, deleted; files that are opened again."""

import operator
import tempfile
from datetime import date, datetime, timezone
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, TypedDict
from uuid import UUID

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import CheckpointTuple, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from pydantic import BaseModel


class Color(Enum):
    RED = "red"


class Thing(BaseModel):
    name: str


class State(TypedDict):
    things: Annotated[list[Any], operator.add]
    color: Color
    thing: Thing
    when: datetime


VALUES = [1, "é", 2.5, None, True, b"bytes", {3}, date(2020, 1, 1), Decimal("1.5"), UUID(int=1), [{"a": {"b": []}}]]


def fill(state: State):
    now = datetime(2020, 1, 1, tzinfo=timezone.utc)
    return {"things": VALUES, "color": Color.RED, "thing": Thing(name="t"), "when": now}


def talk(state: State):
    return {"things": [HumanMessage("hi", id="h"), AIMessage("ho", id="a")]}


builder = StateGraph(State).add_node(fill).add_node(talk).add_edge(START, "fill").add_edge("fill", "talk")
path = str(Path(tempfile.mkdtemp()) / "file.db")
config = {"configurable": {"thread_id": "1"}}
with SqliteSaver.from_conn_string(path) as saver:
    builder.compile(saver).invoke({"things": []}, config)
with SqliteSaver.from_conn_string(path) as saver:
    graph = builder.compile(checkpointer=saver)
    values = graph.get_state(config).values
    print(values["things"], values["color"], values["thing"], values["when"])
    found = saver.get_tuple(config)
    print(type(found).__name__ == CheckpointTuple.__name__, found.config["configurable"].keys(), found.metadata)
    print(sorted(found.checkpoint), sorted(found.checkpoint["channel_values"]), found.pending_writes)
    print([(t.metadata["step"], t.metadata["source"]) for t in saver.list(config)])
    print([t.metadata["step"] for t in saver.list(config, filter={"source": "loop"}, limit=2)])
    print([t.metadata["step"] for t in saver.list(None, before=found.config)])
    print(len(list(saver.list({"configurable": {"thread_id": "none"}}))), saver.get({"configurable": {"thread_id": "none"}}))
    graph.invoke({"things": []}, {"configurable": {"thread_id": "2"}})
    saver.delete_thread("1")
    print(saver.get_tuple(config), sorted({t.config["configurable"]["thread_id"] for t in saver.list(None)}))

memory = InMemorySaver()
checkpoint = empty_checkpoint()
checkpoint["channel_values"] = {"a": 1}
checkpoint["channel_versions"] = {"a": 1}
root = {"configurable": {"thread_id": "x", "checkpoint_ns": ""}}
stored = memory.put(root, checkpoint, {"source": "input", "step": -1, "parents": {}}, {"a": 1})
memory.put_writes(stored, [("a", 2), ("b", [3])], "task")
back = memory.get_tuple(root)
print(back.checkpoint["channel_values"], back.pending_writes, back.metadata, back.parent_config)
print(stored["configurable"]["checkpoint_id"] == checkpoint["id"], memory.get_next_version(None, None) is not None)
graph = builder.compile(memory)
print(graph.get_state(config).values, graph.get_state(config).next, graph.get_state(config).metadata)
for durability in ("exit", "async", "sync"):
    here = {"configurable": {"thread_id": durability}}
    graph.invoke({"things": []}, here, durability=durability)
    print(durability, len(list(memory.list(here))))
