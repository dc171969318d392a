"""The shapes that agents are built of: chains, routes, workers, loops that judge, joins that wait, results that are kept."""

import operator
from typing import Annotated, Literal

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.cache.memory import InMemoryCache
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.types import CachePolicy, Command, Send
from pydantic import BaseModel, Field
from typing_extensions import TypedDict


def model(*answers):
    return GenericFakeChatModel(messages=iter([AIMessage(answer, id=f"m{n}") for n, answer in enumerate(answers)]))


class Chapter(BaseModel):
    title: str = Field(description="what it is called")
    pages: int = 1


class Report(TypedDict):
    topic: str
    plan: list[Chapter]
    written: Annotated[list[str], operator.add]
    text: str


class Work(TypedDict):
    chapter: Chapter
    written: Annotated[list[str], operator.add]


llm = model("a plan", "text of tea", "text of rain")


def plan(state: Report):
    llm.invoke(state["topic"])
    return {"plan": [Chapter(title="tea"), {"title": "rain", "pages": 2}]}


def worker(work: Work):
    chapter = work["chapter"]
    title = chapter.title if isinstance(chapter, Chapter) else chapter["title"]
    return {"written": [f"{title}: written"]}


def assign(state: Report):
    return [Send("worker", {"chapter": chapter}) for chapter in state["plan"]]


def bind(state: Report):
    return {"text": " / ".join(state["written"])}


builder = StateGraph(Report).add_node(plan).add_node(worker).add_node(bind).add_edge(START, "plan")
builder.add_conditional_edges("plan", assign, ["worker"]).add_edge("worker", "bind").add_edge("bind", END)
for chunk in builder.compile().stream({"topic": "weather", "written": []}, stream_mode="values"):
    print(chunk)


class Joke(TypedDict, total=False):
    topic: str
    joke: str
    grade: Literal["funny", "dull"]
    tries: Annotated[int, operator.add]


writer = model("knock knock", "a horse walks in", "a better horse")


def tell(state: Joke):
    said = writer.invoke(f"again, {state['grade']}" if state.get("grade") else state["topic"])
    return {"joke": said.content, "tries": 1}


def grade(state: Joke):
    return {"grade": "funny" if state["tries"] == 3 else "dull"}


def verdict(state: Joke) -> Literal["Good", "Again"]:
    return "Good" if state["grade"] == "funny" else "Again"


loop = StateGraph(Joke).add_sequence([tell, grade]).add_edge(START, "tell")
loop = loop.add_conditional_edges("grade", verdict, {"Good": END, "Again": "tell"}).compile()
for mode, chunk in loop.stream({"topic": "horses", "tries": 0}, stream_mode=["updates", "messages"]):
    print(mode, chunk if mode == "updates" else (chunk[0].content, chunk[1]["langgraph_node"], chunk[1]["langgraph_step"]))


class Case(TypedDict, total=False):
    question: str
    answer: str
    seen: Annotated[list[str], operator.add]


def route(state: Case) -> Command[Literal["bills", "repairs", "__end__"]]:
    for word, target in (("pay", "bills"), ("broken", "repairs")):
        if word in state["question"]:
            return Command(update={"seen": [f"sent to {target}"]}, goto=target)
    return Command(update={"answer": "who knows?"}, goto=END)


def bills(state: Case):
    return {"answer": "paid"}


def repairs(state: Case) -> Command[Literal["bills"]]:
    return Command(update={"seen": ["mended"]}, goto=["bills"])


desk = StateGraph(Case).add_node(route).add_node(bills).add_node(repairs).add_edge(START, "route").compile()
for question in ("how to pay", "it is broken", "why"):
    print(desk.invoke({"question": question, "seen": []}))


def step(name):
    def node(state):
        return {"seen": [name]}

    return node


late = StateGraph(Case)
for name in ("start", "short", "long", "longer"):
    late.add_node(name, step(name))
late.add_node("report", lambda state: {"answer": ",".join(sorted(state["seen"]))}, defer=True)
late.add_edge(START, "start").add_edge("start", "short").add_edge("start", "long").add_edge("long", "longer")
late = late.add_edge("short", "report").add_edge("longer", "report").compile()
for chunk in late.stream({"seen": []}, stream_mode="values"):
    print(chunk)

costs = []


def price(state: Case):
    costs.append(state["question"])
    return {"answer": f"{len(state['question'])} coins"}


shop = StateGraph(Case).add_node(price, cache_policy=CachePolicy(ttl=300)).add_edge(START, "price")
shop = shop.compile(cache=InMemoryCache())
for question in ("bread", "bread", "cake"):
    print(shop.invoke({"question": question}, stream_mode="updates"), costs)
shop.clear_cache()
print(shop.invoke({"question": "bread"}, stream_mode=["updates", "values"]), costs)
by_length = StateGraph(Case).add_edge(START, "price")
by_length.add_node("price", price, cache_policy=CachePolicy(key_func=lambda state: str(len(state["question"]))))
by_length = by_length.compile(cache=InMemoryCache())
print([by_length.invoke({"question": word})["answer"] for word in ("oats", "rice", "wheat")], costs)


@task
def draft(topic: str) -> str:
    return f"draft on {topic}"


@task
def polish(text: str) -> str:
    return text.upper()


@entrypoint()
def chain(topic: str):
    first = draft(topic).result()
    return polish(first).result() if "tea" in topic else first


for topic in ("tea", "rain"):
    for chunk in chain.stream(topic, stream_mode="updates"):
        print(chunk)
