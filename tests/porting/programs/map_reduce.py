"""Jokes about each subject, then the best one; and an orchestrator with workers."""

import operator
from typing import Annotated

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from pydantic import BaseModel, Field
from typing_extensions import TypedDict


class Subjects(BaseModel):
    subjects: list[str]


class BestJoke(BaseModel):
    id: int = Field(ge=0)


class OverallState(TypedDict):
    topic: str
    subjects: list
    jokes: Annotated[list, operator.add]
    best_selected_joke: str


class JokeState(TypedDict):
    subject: str


def generate_topics(state: OverallState):
    return {"subjects": Subjects(subjects=["lions", "elephants", "penguins"]).subjects}


def generate_joke(state: JokeState):
    return {"jokes": [f"joke about {state['subject']}"]}


def continue_to_jokes(state: OverallState):
    return [Send("generate_joke", {"subject": s}) for s in state["subjects"]]


def best_joke(state: OverallState):
    best = BestJoke(id=len(state["jokes"]) - 1)
    return {"best_selected_joke": state["jokes"][best.id]}


graph = StateGraph(OverallState)
graph.add_node("generate_topics", generate_topics)
graph.add_node("generate_joke", generate_joke)
graph.add_node("best_joke", best_joke)
graph.add_edge(START, "generate_topics")
graph.add_conditional_edges("generate_topics", continue_to_jokes, ["generate_joke"])
graph.add_edge("generate_joke", "best_joke")
graph.add_edge("best_joke", END)
app = graph.compile()
for s in sorted(app.stream({"topic": "animals"}), key=str):
    print(s)
print(app.invoke({"topic": "animals"}))
for mode, chunk in app.stream({"topic": "animals"}, stream_mode=["values", "debug"]):
    print(mode, sorted(chunk) if mode == "debug" else chunk)


class Section(BaseModel):
    name: str
    words: int = 0


class Report(BaseModel):
    topic: str
    sections: list[Section] = []
    done: Annotated[list[str], operator.add] = []
    final: str = ""


class Worker(TypedDict):
    section: Section
    done: Annotated[list, operator.add]


def orchestrator(state: Report):
    return {"sections": [Section(name=f"{state.topic} {n}", words=n) for n in range(3)]}


def worker(state: Worker):
    return {"done": [f"{state['section'].name}: {state['section'].words} words"]}


def synthesizer(state: Report):
    return {"final": "\n---\n".join(state.done)}


builder = StateGraph(Report)
builder.add_node(orchestrator)
builder.add_node(worker)
builder.add_node(synthesizer)
builder.add_edge(START, "orchestrator")
builder.add_conditional_edges("orchestrator", lambda s: [Send("worker", {"section": x}) for x in s.sections], ["worker"])
builder.add_edge("worker", "synthesizer")
builder.add_edge("synthesizer", END)
print(builder.compile().invoke({"topic": "tea"}))
print(builder.compile().invoke(Report(topic="rain"))["final"])
print(builder.compile().get_graph().draw_mermaid().count("-.->"))
