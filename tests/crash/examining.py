"""What must hold of a database whose writer was killed, and of the run that goes on from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from persistence.memory import InMemorySaver
from persistence.sqlite import SqliteSaver
from runtime.graph import CompiledStateGraph
from tests.crash.ledger import Account, Ledger
from tests.crash.programs import CONFIG, Program, go_on
from tests.crash.stored import Line, Rows


class Quiet:
    """A witness of runs that nobody kills."""

    def __init__(self, ledger: Ledger | None = None) -> None:
        self._ledger = ledger

    def note(self, *words: object) -> None:
        if self._ledger is not None:
            self._ledger.note("resumed", *words)

    async def recorded(self, node: str) -> None:
        """Wait for nothing: nobody looks at what is half done."""


@dataclass(frozen=True)
class Reference:
    """How a program goes if nothing happens to it: its state after each step."""

    program: Program
    values: Mapping[int, Any]

    @classmethod
    async def of(cls, program: Program) -> Reference:
        graph = program.build(Quiet()).compile(checkpointer=InMemorySaver())
        result = await graph.ainvoke(program.given, CONFIG)
        if program.answer is not None:
            result = await graph.ainvoke(program.answer, CONFIG)
        assert result == program.result
        return cls(program, {one.metadata["step"]: one.values async for one in graph.aget_state_history(CONFIG)})


def check_acknowledged(account: Account, rows: Rows, program: Program) -> None:
    """What was acknowledged is there."""
    for kind, *key in account.all("acknowledged"):
        if kind == "checkpoint":
            assert key[0] in rows.checkpoints, f"acknowledged checkpoint {key[0]} is gone"
        else:
            checkpoint, task, index = key
            assert (checkpoint, task, int(index)) in rows.writes, f"acknowledged write of task {task} is gone"
    if account.all("result"):
        assert rows.root.head_step == program.last_step


def check_ended(account: Account, rows: Rows, before: Rows, program: Program) -> None:
    """A run that nobody killed says so, and everything it left on disk was acknowledged."""
    assert json.loads(" ".join(account.all("result")[0])) == program.result
    acknowledged = {key[1] for key in account.all("acknowledged") if key[0] == "checkpoint"}
    assert acknowledged == rows.checkpoints - before.checkpoints


def check_chain(rows: Rows) -> None:
    """Every checkpoint follows its parent by one step, from the first on."""
    if not rows.lines:
        assert not rows.writes, "writes without the checkpoint they belong to"
        assert not rows.blobs
    for line in rows.lines.values():
        assert [parent for parent, _ in line.checkpoints.values()].count(None) == 1
        for one, (parent, step) in line.checkpoints.items():
            if parent is None:
                assert step == -1
            else:
                assert parent in line.checkpoints, f"{one} has lost its parent"
                assert step == line.checkpoints[parent][1] + 1, f"{one} does not follow its parent"
    assert {checkpoint for checkpoint, _, _ in rows.writes} <= rows.checkpoints


def check_steps_of_sync(account: Account, rows: Rows, program: Program) -> None:
    """Where a node had started, all that came before it is durable: checkpoints and what made them."""
    for node in account.names("start"):
        if node in program.inner:
            check_before(node, program.inner, rows.child, rows)
            check_before(program.child, program.nodes, rows.root, rows)
        else:
            check_before(node, program.nodes, rows.root, rows)


def check_before(node: str, nodes: dict[str, int], line: Line, rows: Rows) -> None:
    """What had to come before a node is durable."""
    step = nodes[node]
    assert line.head_step >= step - 1, f"{node} ran before step {step - 1} was durable"
    for earlier, made_in in nodes.items():
        if made_in < step:
            assert (line.at(made_in - 1), earlier) in rows.finished, f"{node} ran before {earlier} was durable"


def check_exit(rows: Rows, program: Program, before: Rows) -> None:
    """The whole run is there, or nothing of it."""
    if rows.root.head_step != program.last_step:
        assert rows == before


async def check_readable(saver: SqliteSaver, graph: CompiledStateGraph, rows: Rows, reference: Reference) -> None:
    """Every checkpoint can be read back, and holds what the program had at its step."""
    listed = [one async for one in saver.alist(CONFIG)]
    assert [one.checkpoint["id"] for one in listed] == sorted(rows.checkpoints, reverse=True)
    for one in listed:
        assert await saver.aget_tuple(one.config) == one
    async for snapshot in graph.aget_state_history(CONFIG):
        step = snapshot.metadata["step"]
        expected = reference.values[step]
        # Results that wait for their checkpoint are shown with it, as far as they go.
        assert snapshot.values == expected or snapshot.created_at == listed[0].checkpoint["ts"], step


@dataclass(frozen=True)
class Finding:
    """What a kill left."""

    durable: frozenset[str]
    """Nodes whose results were on disk."""
    asked_again: bool
    """Whether the answer that the run was given was lost with it."""


async def examine(
    path: Path, ledger: Path, reference: Reference, durability: Any, before: Rows, *, killed: bool
) -> Finding:
    """Check a database after its writer was killed, then go on from it."""
    program, account, rows = reference.program, Account.of(ledger), Rows.of(path)
    check_acknowledged(account, rows, program)
    if not killed:
        check_ended(account, rows, before, program)
    if durability == "exit":
        check_exit(rows, program, before)
    else:
        check_chain(rows)
    if durability == "sync":
        check_steps_of_sync(account, rows, program)
    notes = Ledger(ledger)
    async with SqliteSaver(path, synchronous="NORMAL") as saver:
        graph = program.build(Quiet(notes)).compile(checkpointer=saver)
        await check_readable(saver, graph, rows, reference)
        outcome = await go_on(graph, program, durability)
        asked_again = "__interrupt__" in outcome
        if asked_again:
            assert program.answer is not None
            assert durability != "sync" or not account.all("answered"), (
                "the node had seen an answer that was not durable"
            )
            outcome = await graph.ainvoke(program.answer, CONFIG, durability=durability)
        assert outcome == program.result
        final = await graph.aget_state(CONFIG)
        assert (final.values, final.next) == (program.result, ())
    notes.close()
    finding = Finding(frozenset(rows.durable(program)), asked_again)
    again = [node for kind, node in Account.of(ledger).all("resumed") if kind == "start"]
    # What was durable did not run again; everything else did, once, and the one that had to ask again once more.
    expected = sorted(program.noted - finding.durable)
    assert sorted(again) == (sorted([*expected, "ask"]) if asked_again else expected)
    if durability != "exit":
        check_chain(Rows.of(path))
    return finding
