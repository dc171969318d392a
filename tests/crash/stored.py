"""What is on disk, read without this project's code."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from persistence.contracts.checkpoint import WRITES_IDX_MAP
from tests.crash.programs import Program


@dataclass(frozen=True)
class Line:
    """The checkpoints of one namespace: each id with its parent and its step."""

    checkpoints: dict[str, tuple[str | None, int]] = field(default_factory=dict)

    @property
    def head(self) -> str | None:
        return max(self.checkpoints, default=None)

    @property
    def head_step(self) -> int:
        """Step of the newest checkpoint; -2 if there is none."""
        return -2 if self.head is None else self.checkpoints[self.head][1]

    def at(self, step: int) -> str:
        """Return the checkpoint of a step."""
        return next(one for one, (_, at) in self.checkpoints.items() if at == step)


@dataclass(frozen=True)
class Rows:
    """One thread's rows."""

    lines: dict[str, Line]
    """By namespace."""
    writes: set[tuple[str, str, int]]
    """(checkpoint id, task id, index)"""
    finished: set[tuple[str, str]]
    """(checkpoint id, node) of tasks whose results are stored."""
    blobs: int

    @classmethod
    def of(cls, path: Path) -> Rows:
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            lines: dict[str, Line] = {}
            for ns, one, parent, metadata in connection.execute(
                "SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, metadata FROM checkpoints"
            ):
                lines.setdefault(ns, Line()).checkpoints[one] = (parent, json.loads(metadata)["step"])
            writes = connection.execute(
                "SELECT checkpoint_id, task_id, idx, task_path FROM checkpoint_writes"
            ).fetchall()
            (blobs,) = connection.execute("SELECT count(*) FROM checkpoint_blobs").fetchone()
        return cls(
            lines,
            {(one, task, index) for one, task, index, _ in writes},
            {(one, node_of(path)) for one, _, index, path in writes if index not in WRITES_IDX_MAP.values()},
            blobs,
        )

    @property
    def root(self) -> Line:
        """The graph's own checkpoints."""
        return self.lines.get("", Line())

    @property
    def child(self) -> Line:
        """Those of its subgraph, which runs once."""
        below = [line for ns, line in self.lines.items() if ns]
        assert len(below) <= 1, "the subgraph has begun twice"
        return below[0] if below else Line()

    @property
    def checkpoints(self) -> set[str]:
        """Every checkpoint id."""
        return {one for line in self.lines.values() for one in line.checkpoints}

    def durable(self, program: Program) -> set[str]:
        """Return the nodes whose results are on disk, in a checkpoint or waiting for one."""
        nodes = self._durable(self.root, program.nodes)
        return nodes | (set(program.inner) if program.child in nodes else self._durable(self.child, program.inner))

    def _durable(self, line: Line, nodes: dict[str, int]) -> set[str]:
        pending = {node for checkpoint, node in self.finished if checkpoint == line.head}
        return {node for node, step in nodes.items() if step <= line.head_step or node in pending}


def node_of(task_path: str) -> str:
    """Return the node named by a stored task path."""
    return task_path.rpartition(", ")[2]
