"""The engine and the reference do the same, operation by operation, and must agree on all that can be seen."""

from __future__ import annotations

import operator
from random import Random
from typing import Annotated, Any, TypedDict

import anyio
import anyio.lowlevel

from runtime.errors import EmptyInputError, GraphRecursionError
from runtime.graph import START, CompiledStateGraph, StateGraph
from runtime.types import Command, Send, interrupt
from tests.model.reference import LIMIT, Reference
from tests.model.shapes import Node, Parts, Shape, merged

MODES = ("sync", "async", "exit")


class State(TypedDict):
    """What every node adds to."""

    log: Annotated[list[str], operator.add]
    n: Annotated[int, operator.add]
    last: Annotated[dict[str, str], merged]


class NodeFailsError(Exception):
    """A node does what it was meant to."""


class Play:
    """One thread of one graph, on both sides."""

    def __init__(self, shape: Shape, saver: Any) -> None:
        self.reference = Reference(shape)
        self.graph = self._built(shape, saver)
        self.failures = dict(self.reference.failures)
        self.done: list[str] = []
        """What was done, for whoever has to do it again."""
        self.config: dict[str, Any] = {"configurable": {"thread_id": "t"}}

    # ---- the engine's side of the graph ----

    def _built(self, shape: Shape, saver: Any) -> CompiledStateGraph:
        builder = StateGraph(State)
        for name, node in shape.nodes.items():
            builder.add_node(name, self._body(node), defer=node.deferred)
            for target in node.edges:
                builder.add_edge(name, target)
            if node.routes:
                builder.add_conditional_edges(name, _router(node))
        for name in shape.starts:
            builder.add_edge(START, name)
        for join in shape.joins:
            builder.add_edge(list(join.sources), join.target)
        return builder.compile(checkpointer=saver)

    def _body(self, node: Node) -> Any:
        async def body(state: Any) -> dict[str, Any]:
            part: str = state.get("part", "")
            label = node.name + part
            answers = [interrupt(f"{label}?{number}") for number in range(node.questions)]
            await anyio.lowlevel.checkpoint()
            if not part and self.failures[node.name]:
                await anyio.sleep(ord(node.name))  # in virtual time: all others are done by then
                self.failures[node.name] -= 1
                raise NodeFailsError(node.name)
            return {"log": [label, *answers], "n": 1, "last": {"label": label}}

        return body

    # ---- operations ----

    async def begin(self, mode: str, at: int | None = None, **stops: Any) -> None:
        """Give input to the thread, or to one of its checkpoints."""
        number = len(self.done)
        values = {"log": [f"input{number}"], "n": number % 3, "last": {}}
        expected = self.reference.begin(values, mode, self._place(at), **stops)
        await self._compare(f"begin {mode} at {at} {stops}", expected, self._run(values, mode, at, **stops))

    async def go_on(self, mode: str, **stops: Any) -> None:
        """Resume."""
        expected = self.reference.go_on(mode, **stops)
        await self._compare(f"go on {mode} {stops}", expected, self._run(None, mode, **stops))

    async def answer(self, mode: str, which: int, **stops: Any) -> None:
        """Answer some of the open questions: those with a bit in ``which``."""
        questions = sorted(set(self.reference.live()[2])) if self._length else []
        chosen = {question: f"{question}!" for bit, question in enumerate(questions) if which & 1 << bit}
        if not chosen:
            return
        state = await self.graph.aget_state(self.config)
        answers: Any = {one.id: chosen[one.value] for one in state.interrupts if one.value in chosen}
        if len(state.interrupts) == 1 and which & 1:
            answers = chosen[state.interrupts[0].value]
        expected = self.reference.go_on(mode, chosen, **stops)
        await self._compare(
            f"answer {sorted(chosen)} {mode} {stops}", expected, self._run(Command(resume=answers), mode, **stops)
        )

    async def replay(self, mode: str, at: int, **stops: Any) -> None:
        """Run again from a checkpoint."""
        if not self._length:
            return
        expected = self.reference.replay(at % self._length, mode, **stops)
        await self._compare(f"replay {at} {mode} {stops}", expected, self._run(None, mode, at, **stops))

    async def command(self, mode: str, goto: str, **stops: Any) -> None:
        """Resume with a change of the state, and maybe with a node to go to."""
        if not self._length:
            return
        number = len(self.done)
        values = {"log": [f"command{number}"], "n": number % 3, "last": {"command": f"{number}"}}
        expected = self.reference.command(values, goto, mode, **stops)
        given: Any = Command(update=values, goto=goto or ())
        await self._compare(f"command to {goto} {mode} {stops}", expected, self._run(given, mode, **stops))

    async def update(self, as_node: str, at: int | None = None) -> None:
        """Edit the state as one of the nodes."""
        number = len(self.done)
        values = {"log": [f"edit{number}"], "n": number % 3, "last": {"edit": f"{number}"}}
        config = await self._config(at)
        self.reference.update(values, as_node, self._place(at))
        await self._compare(f"update as {as_node} at {at}", "", self._edit(config, values, as_node))

    async def by(self, chance: Random) -> None:
        """Do something by chance."""
        mode = chance.choice(MODES)
        names = (*self.reference.shape.nodes, START)
        at = chance.randrange(self._length) if self._length and chance.random() < 0.4 else None
        stops: dict[str, Any] = {}
        if chance.random() < 0.2:
            stops = {chance.choice(["before", "after"]): chance.sample(names[:-1], 1)}
        match chance.choice(["begin", "go on", "go on", "answer", "answer", "answer", "replay", "update", "command"]):
            case "begin":
                await self.begin(mode, at, **stops)
            case "go on":
                await self.go_on(mode, **stops)
            case "answer":
                await self.answer(mode, chance.randrange(1, 8), **stops)
            case "command":
                await self.command(mode, chance.choice(["", *names[:-1]]), **stops)
            case "replay":
                await self.replay(mode, at or 0, **stops)
            case _:
                await self.update(chance.choice(names), at)

    # ---- comparing ----

    @property
    def _length(self) -> int:
        return len(self.reference.thread)

    def _place(self, at: int | None) -> int | None:
        return None if at is None or not self._length else at % self._length

    async def _edit(self, config: Any, values: Any, as_node: str) -> str:
        await self.graph.aupdate_state(config, values, as_node=as_node)
        return ""

    async def _run(self, given: Any, mode: Any, at: int | None = None, *, before: Any = (), after: Any = ()) -> str:
        config = {**await self._config(at), "recursion_limit": LIMIT}
        options: dict[str, Any] = {"interrupt_before": list(before), "interrupt_after": list(after)}
        try:
            result = await self.graph.ainvoke(given, config, durability=mode, **options)
        except NodeFailsError as error:
            return f"{error} failed"
        except GraphRecursionError:
            return "limit"
        except EmptyInputError:
            return "empty"
        return "asked" if "__interrupt__" in result else "ended"

    async def _config(self, at: int | None) -> dict[str, Any]:
        if at is None:
            return self.config
        history = [one async for one in self.graph.aget_state_history(self.config)]
        if not history:
            return self.config
        return dict(history[::-1][at % len(history)].config)

    async def _compare(self, what: str, expected: str, call: Any) -> None:
        self.done.append(what)
        outcome = await call
        history = [one async for one in self.graph.aget_state_history(self.config)][::-1]
        places = {None: None} | {_id(one.config): place for place, one in enumerate(history)}
        seen = [
            (one.metadata["step"], one.metadata["source"], places[_id(one.parent_config)], one.values, sorted(one.next))
            for one in history
        ]
        self._agree("history", seen, self.reference.history())
        if history:
            state = await self.graph.aget_state(self.config)
            live = state.values, sorted(state.next), sorted(one.value for one in state.interrupts)
            self._agree("state", live, self.reference.live())
        self._agree("failures left", self.failures, dict(self.reference.failures))
        self._agree("outcome", outcome, expected)

    def _agree(self, what: str, seen: Any, expected: Any) -> None:
        """Raise AssertionError with all that is needed to see a disagreement again."""
        assert seen == expected, f"{what}: {seen} instead of {expected}; {self.reference.shape}; {self.done}"


def _id(config: Any) -> str | None:
    return config["configurable"]["checkpoint_id"] if config else None


def _router(node: Node) -> Any:
    async def router(state: State) -> list[Any]:
        targets: list[Any] = []
        for one in node.route(state["n"]):
            if isinstance(one, Parts):
                targets += [Send(one.node, {"part": f"<{node.name}{part}>"}) for part in range(one.number)]
            else:
                targets.append(one)
        return targets

    return router
