"""The functional API: essays, parallel tasks, review, memory of the last call, retries."""

import asyncio
import time

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.func import entrypoint, task
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, RetryPolicy, interrupt

calls = []


@task
def write_essay(topic: str) -> str:
    calls.append("essay")
    return f"An essay about topic: {topic}"


@entrypoint(checkpointer=InMemorySaver())
def workflow(topic: str) -> dict:
    essay = write_essay(topic).result()
    is_approved = interrupt({"essay": essay, "action": "Please approve/reject the essay"})
    return {"essay": essay, "is_approved": is_approved}


config = {"configurable": {"thread_id": "1"}}
for item in workflow.stream("cat", config):
    print({k: v[0].value if k == "__interrupt__" else v for k, v in item.items()})
for item in workflow.stream(Command(resume=True), config):
    print(item)
print(calls)


@task
def add_one(number: int) -> int:
    return number + 1


@entrypoint(checkpointer=InMemorySaver())
def graph(numbers: list[int]) -> list[str]:
    futures = [add_one(i) for i in numbers]
    return [str(f.result()) for f in futures]


print(graph.invoke([1, 2, 3], config))


@entrypoint(checkpointer=InMemorySaver())
def accumulate(n: int, *, previous: int | None) -> entrypoint.final[int, int]:
    previous = previous or 0
    return entrypoint.final(value=previous, save=2 * n + previous)


print([accumulate.invoke(n, config) for n in (1, 2, 3)], accumulate.get_state(config).values)

attempts = 0


@task(retry_policy=RetryPolicy(max_attempts=3, initial_interval=0.01, retry_on=ValueError))
def get_info():
    global attempts
    attempts += 1
    if attempts < 3:
        raise ValueError("Failure")
    return "OK"


slow_runs = []


@task
def slow_task():
    slow_runs.append(1)
    time.sleep(0.01)
    return "Ran slow task."


failing = [True]


@task
def flaky():
    if failing[0]:
        raise ConnectionResetError("not now")
    return "fine"


@entrypoint(checkpointer=InMemorySaver())
def main(inputs, writer=None):
    result = slow_task().result()
    return [result, get_info().result(), flaky().result()]


try:
    main.invoke({"any": "thing"}, config)
except ConnectionResetError as error:
    print("failed", error)
failing[0] = False
print(main.invoke(None, config), len(slow_runs), attempts)

store = InMemoryStore()


@entrypoint(store=store)
async def remembers(name: str, *, store: BaseStore) -> int:
    item = await store.aget(("people",), name)
    count = item.value["count"] + 1 if item else 1
    await store.aput(("people",), name, {"count": count})
    get_stream_writer()({"counted": count})
    return count


async def run():
    print(await remembers.ainvoke("Ann"), await remembers.ainvoke("Ann"), await remembers.ainvoke("Bob"))
    async for mode, chunk in remembers.astream("Ann", stream_mode=["custom", "updates", "values"]):
        print(mode, chunk)


asyncio.run(run())
