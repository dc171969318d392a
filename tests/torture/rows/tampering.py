"""Changes to a thread's rows, whatever the tables let through, with checksums made right again."""

from __future__ import annotations

import json
import random
from typing import Any, NamedTuple

from persistence.writer.binding import MARK
from persistence.writer.encoding import ADDITION, checksum, checksum_of_facts
from tests.persistence.serde.forging import Forger, forged

Row = tuple[Any, ...]
NASTY: tuple[Any, ...] = (
    None, True, 0, -1, 10**30, 1.5, 1e308, "", "x", "1" * 5000, "\0", "a|b:c", "__pregel_tasks", "branch:to:nowhere",
    [], {}, [[]], {"x": 1}, ["x"], {"": {}}, [1, "a", None],
)  # fmt: skip
RESERVED = (
    "__error__", "__interrupt__", "__resume__", "__pregel_tasks", "__error_source_node__", "__no_writes__",
    "__return__", "__start__", "branch:to:join", "words", "item", "messages", "text", "nowhere", "\N{BALLOON}",
)  # fmt: skip


class Tables(NamedTuple):
    """The rows of one thread."""

    checkpoints: list[Row]
    writes: list[Row]
    blobs: list[Row]


class Tamperer:
    """Changes rows from a seed."""

    def __init__(self, seed: object, forger: Forger) -> None:
        """Take what makes stored values."""
        self._random = random.Random(repr(seed))
        self._forger = forger

    def changed(self, tables: Tables) -> tuple[Tables, str]:
        """Return the tables with one to three rows changed, and what was done."""
        after = Tables(*(list(rows) for rows in tables))
        done: list[str] = []
        for _ in range(self._random.choice([1, 1, 2, 3])):
            change = self._random.choice([self._body, self._body, self._facts, self._blob, self._blob, self._write,
                                          self._write, self._write, self._parent, self._swap, self._lose])  # fmt: skip
            done.append(change(after))
        return after, "; ".join(done)

    def _pick(self, rows: list[Row]) -> int:
        # The newest rows are what is read most.
        return self._random.randrange(len(rows)) if self._random.random() < 0.5 else len(rows) - 1

    def _body(self, tables: Tables) -> str:
        at = self._pick(tables.checkpoints)
        *head, _, text, facts = tables.checkpoints[at]
        if self._random.random() < 0.9:
            text = json.dumps(self._grafted(_parsed(text)))
        else:
            start = self._random.randrange(len(text))
            text = text[:start] + self._random.choice(["", "{", "\\ud800", "]", "9" * 400]) + text[start + 3 :]
        tables.checkpoints[at] = self._summed((*head, "", text, facts))
        return f"body {at}: {text[:300]}"

    def _facts(self, tables: Tables) -> str:
        at = self._pick(tables.checkpoints)
        *head, facts = tables.checkpoints[at]
        facts = json.dumps(self._grafted(_parsed(facts)))
        tables.checkpoints[at] = self._summed((*head, facts))
        return f"metadata {at}: {facts}"

    def _blob(self, tables: Tables) -> str:
        at = self._pick(tables.blobs)
        *head, kind, _ = tables.blobs[at]
        new, data = self._typed()
        if ADDITION in kind and self._random.random() < 0.8:
            new += ADDITION
        tables.blobs[at] = (*head, new, data)
        return f"blob {head} {new} {data.hex()[:200]}"

    def _write(self, tables: Tables) -> str:
        at = self._pick(tables.writes)
        *place, task, idx, channel, kind, data, path = tables.writes[at]
        what = self._random.randrange(5)
        if what < 2 or self._random.random() < 0.5:
            kind, data = self._typed()
        if what == 2:
            channel = self._random.choice(RESERVED)
        elif what == 3:
            task = self._random.choice(["", "x", "00000000-0000-0000-0000-000000000000", task])
        elif what == 4:
            path = self._random.choice(["", "~", "x", "9" * 50, path[:5]])
        tables.writes[at] = (*place, task, idx, channel, kind, data, path)
        return f"write {task} {channel} {kind} {data.hex()[:200]} {path}"

    def _parent(self, tables: Tables) -> str:
        at = self._pick(tables.checkpoints)
        row = tables.checkpoints[at]
        parent = self._random.choice([row[2], None, "", "zzz", tables.checkpoints[0][2], tables.checkpoints[-1][2]])
        tables.checkpoints[at] = self._summed((*row[:3], parent, *row[4:]))
        return f"parent of {row[2]}: {parent}"

    def _swap(self, tables: Tables) -> str:
        rows, key = self._random.choice([(tables.checkpoints, 3), (tables.writes, 5), (tables.blobs, 4)])
        one, other = self._random.randrange(len(rows)), self._random.randrange(len(rows))
        rows[one], rows[other] = rows[one][:key] + rows[other][key:], rows[other][:key] + rows[one][key:]
        if key > 3 and self._random.random() < 0.7:
            for at in (one, other):  # as rows of old, which are not bound to their keys
                column = key + (key == 5)
                rows[at] = (*rows[at][:column], rows[at][column].partition(MARK)[0], *rows[at][column + 1 :])
        return f"swapped {rows[one][:key]} and {rows[other][:key]}"

    def _lose(self, tables: Tables) -> str:
        rows = self._random.choice(tables)
        if len(rows) < 2:
            return "nothing"
        return f"lost {rows.pop(self._random.randrange(len(rows)))[:5]}"

    def _summed(self, row: Row) -> Row:
        """Return a checkpoint's row with the checksums of what it holds, most of the time."""
        *place, parent, kind, text, facts = row
        if self._random.random() < 0.9:
            kind = checksum(text.encode()) + checksum_of_facts(parent, facts.encode())
        return (*place, parent, kind, text, facts)

    def _typed(self) -> tuple[str, bytes]:
        return forged(self._forger.tree(2)) if self._random.random() < 0.4 else self._forger.typed()

    def _grafted(self, tree: Any) -> Any:
        """Return JSON in which some parts are others, or are gone."""
        if self._random.random() < 0.06:
            return self._random.choice(NASTY)
        if isinstance(tree, dict):
            kept = {key: self._grafted(part) for key, part in tree.items() if self._random.random() > 0.02}
            if self._random.random() < 0.05:
                kept[self._random.choice([*RESERVED, "v", "id", "step", "source", "parents"])] = self._grafted(None)
            return kept
        return [self._grafted(part) for part in tree] if isinstance(tree, list) else tree


def _parsed(text: str) -> Any:
    """Return the value of JSON; the text itself if an earlier change broke it."""
    try:
        return json.loads(text)
    except ValueError:
        return text
