"""A person approves, edits or rejects, with SQLite, and a dynamic goto."""

import asyncio
import tempfile
from pathlib import Path
from typing import Literal, TypedDict

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt


class State(TypedDict):
    llm_output: str
    decision: str
    age: int


def generate(state: State) -> State:
    return {"llm_output": "This is the generated output."}


def human_approval(state: State) -> Command[Literal["approved_path", "rejected_path"]]:
    decision = interrupt({"question": "Do you approve?", "llm_output": state["llm_output"]})
    if decision["type"] == "accept":
        return Command(goto="approved_path", update={"decision": "approved"})
    if decision["type"] == "edit":
        return Command(goto="approved_path", update={"decision": "edited", "llm_output": decision["text"]})
    return Command(goto="rejected_path", update={"decision": "rejected"})


def approved_path(state: State):
    question = "What is your age?"
    while True:
        answer = interrupt(question)
        if not isinstance(answer, int) or answer < 0:
            question = f"'{answer}' is not a valid age. What is your age?"
            continue
        break
    return {"age": answer}


def rejected_path(state: State):
    return {"age": -1}


builder = StateGraph(State)
builder.add_node("generate", generate)
builder.add_node(human_approval)
builder.add_node(approved_path)
builder.add_node(rejected_path)
builder.add_edge(START, "generate")
builder.add_edge("generate", "human_approval")
builder.add_edge("approved_path", END)
builder.add_edge("rejected_path", END)


async def main():
    path = str(Path(tempfile.mkdtemp()) / "checkpoints.sqlite")
    for number, decision in enumerate([{"type": "accept"}, {"type": "edit", "text": "Mine"}, {"type": "no"}]):
        config = {"configurable": {"thread_id": str(number)}}
        async with AsyncSqliteSaver.from_conn_string(path) as saver:
            graph = builder.compile(checkpointer=saver)
            result = await graph.ainvoke({}, config)
            print([i.value for i in result["__interrupt__"]])
            state = await graph.aget_state(config)
            print(state.next, [task.interrupts[0].value for task in state.tasks], state.values)
        async with AsyncSqliteSaver.from_conn_string(path) as saver:
            graph = builder.compile(checkpointer=saver)
            async for chunk in graph.astream(Command(resume=decision), config, stream_mode="updates"):
                if "__interrupt__" in chunk:
                    print("interrupt", [i.value for i in chunk["__interrupt__"]])
                else:
                    print(chunk)
            for answer in (-5, "ten", 30):
                if (await graph.aget_state(config)).next:
                    result = await graph.ainvoke(Command(resume=answer), config)
                    print({k: v if k != "__interrupt__" else v[0].value for k, v in result.items()})
            print([(s.metadata["source"], s.metadata["step"], s.next) async for s in graph.aget_state_history(config)])


asyncio.run(main())
