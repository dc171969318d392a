"""What is left of the tutorials: adaptive loops, plan and execute, reflection, sub-agents, branching with joins."""

import asyncio
import operator
from typing import Annotated, Any, Literal, Optional, TypedDict, Union

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langgraph.checkpoint.memory import InMemorySaver, MemorySaver
from langgraph.errors import GraphInterrupt, NodeInterrupt
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, RetryPolicy, Send, StateSnapshot
from pydantic import BaseModel, Field


class Plan(BaseModel):
    steps: list[str] = Field(description="in order")


class PlanExecute(TypedDict):
    input: str
    plan: list[str]
    past_steps: Annotated[list[tuple], operator.add]
    response: str


async def plan_step(state: PlanExecute):
    return {"plan": Plan(steps=["one", "two", "three"]).steps}


async def execute_step(state: PlanExecute):
    task = state["plan"][0]
    return {"past_steps": [(task, f"did {task}")]}


async def replan_step(state: PlanExecute):
    left = state["plan"][1:]
    return {"plan": left} if left else {"response": f"all {len(state['past_steps'])} done"}


def should_end(state: PlanExecute):
    return END if state.get("response") else "agent"


workflow = StateGraph(PlanExecute)
workflow.add_node("planner", plan_step)
workflow.add_node("agent", execute_step)
workflow.add_node("replan", replan_step)
workflow.add_edge(START, "planner")
workflow.add_edge("planner", "agent")
workflow.add_edge("agent", "replan")
workflow.add_conditional_edges("replan", should_end, ["agent", END])
app = workflow.compile(checkpointer=MemorySaver())
print(isinstance(app, CompiledStateGraph))


async def run():
    async for event in app.astream({"input": "go"}, {"recursion_limit": 50, "configurable": {"thread_id": "1"}}):
        for k, v in event.items():
            if k != "__end__":
                print(v)
    state = await app.aget_state({"configurable": {"thread_id": "1"}})
    print(isinstance(state, StateSnapshot), tuple(state.values["past_steps"][0]), state.next, state.interrupts)


asyncio.run(run())


class GraphState(TypedDict):
    question: str
    documents: list[str]
    generation: str
    tries: int


def retrieve(state):
    return {"documents": [Document(page_content=f"doc {n}", metadata={"n": n}) for n in range(3)]}


def grade(state):
    return {"documents": [d for d in state["documents"] if d.metadata["n"] % 2 == 0]}


def generate(state):
    return {"generation": ", ".join(d.page_content for d in state["documents"]), "tries": state.get("tries", 0) + 1}


def check(state) -> Literal["useful", "not useful"]:
    return "useful" if state["tries"] > 1 else "not useful"


rag = StateGraph(GraphState).add_node(retrieve).add_node(grade).add_node(generate)
rag.add_edge(START, "retrieve").add_edge("retrieve", "grade").add_edge("grade", "generate")
rag.add_conditional_edges("generate", check, {"useful": END, "not useful": "retrieve"})
rag = rag.compile(checkpointer=InMemorySaver())
result = rag.invoke({"question": "q"}, {"configurable": {"thread_id": "1"}})
print(result["generation"], result["tries"], result["documents"])

prompt = ChatPromptTemplate.from_messages([("system", "be {mood}"), ("placeholder", "{messages}")])
model = GenericFakeChatModel(messages=iter(AIMessage(f"essay {n}", id=f"e{n}") for n in range(9)))
chain = prompt | model


class Reflect(TypedDict):
    messages: Annotated[list[BaseMessage], operator.add]


def write(state: Reflect):
    return {"messages": [chain.invoke({"mood": "nice", "messages": state["messages"]})]}


def reflect(state: Reflect):
    return {"messages": [HumanMessage(f"better than {state['messages'][-1].content}", id=f"h{len(state['messages'])}")]}


loop = StateGraph(Reflect).add_node(write).add_node(reflect).add_edge(START, "write").add_edge("reflect", "write")
loop.add_conditional_edges("write", lambda s: END if len(s["messages"]) > 4 else "reflect")
print([m.content for m in loop.compile().invoke({"messages": [HumanMessage("topic", id="t")]})["messages"]])


def old_style(state):
    if state["tries"] < 1:
        raise NodeInterrupt("too few tries")
    return {"generation": "enough"}


old = StateGraph(GraphState).add_node("old", old_style).add_edge(START, "old").compile(InMemorySaver())
config = {"configurable": {"thread_id": "1"}}
print(old.invoke({"tries": 0}, config).get("generation"), old.get_state(config).next)
print([i.value for t in old.get_state(config).tasks for i in t.interrupts])
old.update_state(config, {"tries": 5})
print(old.invoke(None, config)["generation"])


class Parallel(TypedDict, total=False):
    log: Annotated[list, operator.add]
    which: str
    maybe: Optional[Union[int, str]]


def failing_once(state, seen=[]):
    seen.append(1)
    if len(seen) == 1:
        raise RuntimeError("first time")
    return {"log": ["b"]}


ran = []
wide = StateGraph(Parallel)
wide.add_node("a", lambda s: ran.append("a") or {"log": ["a"]})
wide.add_node("b", lambda s: failing_once(s))
wide.add_node("c", lambda s: {"log": ["c"]})
wide.add_edge(START, "a")
wide.add_edge("a", "b")
wide.add_edge("b", "c")
wide = wide.compile(InMemorySaver())
try:
    wide.invoke({"log": []}, config)
except RuntimeError as error:
    print(error, wide.get_state(config).next, [t.error is not None for t in wide.get_state(config).tasks])
print(wide.invoke(None, config), ran)
print(wide.invoke({"log": ["again"]}, config)["log"])
