"""Any sequence of units, forks, deletions, copies and prunings reads the same from all savers and a plain model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from persistence.contracts.checkpoint import WRITES_IDX_MAP, Addition, Checkpoint, Mark, TaskWrites, Unit
from persistence.memory import InMemorySaver
from persistence.serde.encrypted import EncryptedSerializer
from persistence.sqlite import SqliteSaver
from tests.persistence.writer.samples import checkpoint

if TYPE_CHECKING:
    from persistence.writer.contract import RowSaver

THREADS = ("a", "b", "c")
SPACES = ("", "child")
RUNS = ("r0", "r1", "r2")
CHANNELS = ("x", "y", "__resume__", "__error__")

threads, spaces, runs = map(st.sampled_from, (THREADS, SPACES, RUNS))
values = st.none() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=3)
steps = st.one_of(
    st.tuples(
        st.just("put"),
        threads,
        spaces,
        st.integers(0, 5),  # which known checkpoint is its parent; none if there is no such
        st.dictionaries(st.sampled_from("pqr"), values),
        st.integers(0, 2),  # how much the log grows
        st.booleans(),  # whether the log is written whole
        runs,
    ),
    st.tuples(
        st.just("write"),
        threads,
        spaces,
        st.integers(0, 5),
        st.sampled_from(("t1", "t2")),
        st.lists(st.tuples(st.sampled_from(CHANNELS), values), min_size=1, max_size=3),
    ),
    st.tuples(st.just("delete"), threads),
    st.tuples(st.just("copy"), threads, threads),
    st.tuples(st.just("prune"), st.lists(threads, max_size=2)),
    st.tuples(st.just("delete runs"), st.lists(runs, max_size=2)),
)


@dataclass
class Space:
    """What one (thread, namespace) should hold."""

    checkpoints: dict[str, tuple[Checkpoint, str | None, dict[str, Any], dict[str, tuple[Mark, ...]]]] = field(
        default_factory=dict
    )
    writes: dict[str, dict[tuple[str, int], tuple[str, str, Any]]] = field(default_factory=dict)

    def keep(self, ids: set[str]) -> None:
        self.checkpoints = {key: one for key, one in self.checkpoints.items() if key in ids}
        self.writes = {key: one for key, one in self.writes.items() if key in ids}


class Model:
    """The contract, as simply as it can be said; it also makes the units for the real savers."""

    def __init__(self) -> None:
        self.threads: dict[str, dict[str, Space]] = {}
        self.count = 0

    def space(self, thread_id: str, ns: str) -> Space:
        return self.threads.setdefault(thread_id, {}).setdefault(ns, Space())

    def put(
        self, thread_id: str, ns: str, parent_at: int, new: dict[str, Any], grows: int, whole: bool, run: str
    ) -> Unit:
        space = self.space(thread_id, ns)
        self.count += 1
        own_id = f"{self.count:04}"
        known = sorted(space.checkpoints)
        parent = known[parent_at] if parent_at < len(known) else None
        if parent is None:
            held, versions = {}, {}
            marks: tuple[Mark, ...] = ()
        else:
            made, _, _, lineage = space.checkpoints[parent]
            held, versions, marks = dict(made["channel_values"]), dict(made["channel_versions"]), lineage["log"]
        held.update(new)
        versions.update(dict.fromkeys(new, own_id))
        changed: dict[str, Any] = dict(new)
        log = held.get("log", [])
        if grows or not marks:
            added = [own_id] * grows
            held["log"], versions["log"] = [*log, *added], own_id
            if whole or not marks:
                changed["log"], marks = held["log"], (Mark(0, own_id, len(held["log"])),)
            else:
                own = Mark(marks[-1].index + 1, own_id, len(held["log"]))
                changed["log"], marks = Addition(marks[-1], own.index, added), (*marks, own)
        made = checkpoint(own_id, held, versions)
        metadata = {"run_id": run, "step": self.count}
        space.checkpoints[own_id] = (made, parent, metadata, {"log": marks})
        return Unit(thread_id, ns, [], made, parent, metadata, changed, {"log": marks})

    def write(self, thread_id: str, ns: str, at: int, task_id: str, writes: list[tuple[str, Any]]) -> Unit:
        space = self.space(thread_id, ns)
        known = sorted(space.checkpoints)
        target = known[at] if at < len(known) else f"none {at}"
        rows = space.writes.setdefault(target, {})
        for position, (channel, value) in enumerate(writes):
            if channel in WRITES_IDX_MAP:
                rows[task_id, WRITES_IDX_MAP[channel]] = (f"~{task_id}", channel, value)
            else:
                rows.setdefault((task_id, position), (f"~{task_id}", channel, value))
        return Unit(thread_id, ns, [TaskWrites(target, task_id, f"~{task_id}", writes)])

    def copy(self, source: str, target: str) -> None:
        for ns, space in list(self.threads.get(source, {}).items()):
            other = self.space(target, ns)
            for key, one in space.checkpoints.items():
                other.checkpoints.setdefault(key, one)
            for key, rows in space.writes.items():
                other.writes[key] = {**rows, **other.writes.get(key, {})}

    def prune(self, thread_ids: list[str]) -> None:
        for thread_id in thread_ids:
            for space in self.threads.get(thread_id, {}).values():
                space.keep({max(space.checkpoints)} if space.checkpoints else set())

    def delete_runs(self, run_ids: list[str]) -> None:
        for spaces_of_thread in self.threads.values():
            for space in spaces_of_thread.values():
                kept = {key for key, one in space.checkpoints.items() if one[2]["run_id"] not in run_ids}
                if len(kept) < len(space.checkpoints):
                    space.keep(kept)

    def read(self) -> list[Any]:
        found = []
        for thread_id, spaces_of_thread in self.threads.items():
            for ns, space in spaces_of_thread.items():
                for key, (made, parent, metadata, lineage) in space.checkpoints.items():
                    rows = sorted(
                        (path, task_id, idx, channel, value)
                        for (task_id, idx), (path, channel, value) in space.writes.get(key, {}).items()
                    )
                    writes = [(task_id, channel, value) for _, task_id, _, channel, value in rows]
                    found.append(((key, thread_id, ns), made, parent, metadata, writes, lineage))
        return sorted(found, key=lambda one: one[0], reverse=True)


async def read(saver: RowSaver) -> list[Any]:
    found = []
    async for one in saver.alist(None):
        where = one.config["configurable"]
        parent = None if one.parent_config is None else one.parent_config["configurable"]["checkpoint_id"]
        key = (where["checkpoint_id"], where["thread_id"], where["checkpoint_ns"])
        found.append((key, one.checkpoint, parent, one.metadata, one.pending_writes, one.lineage))
        alone = await saver.aget_tuple(one.config)
        assert alone == one
    return found


async def perform(model: Model, savers: list[RowSaver], step: tuple[Any, ...]) -> None:
    name, *arguments = step
    if name in ("put", "write"):
        unit = getattr(model, name)(*arguments)
        for saver in savers:
            await saver.send(saver.encode(unit))  # type: ignore[attr-defined]
        return
    if name == "delete":
        model.threads.pop(arguments[0], None)
    elif name == "copy":
        model.copy(*arguments)
    elif name == "prune":
        model.prune(*arguments)
    else:
        model.delete_runs(*arguments)
    method = {"delete": "adelete_thread", "copy": "acopy_thread", "prune": "aprune", "delete runs": "adelete_for_runs"}
    for saver in savers:
        await getattr(saver, method[name])(*arguments)


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, max_size=25))
def test_every_saver_reads_like_the_model(sequence: list[tuple[Any, ...]]) -> None:
    async def run() -> None:
        model = Model()
        sealed = EncryptedSerializer(b"0123456789abcdef")
        async with SqliteSaver(":memory:") as sqlite, SqliteSaver(":memory:", serde=sealed) as sealed_sqlite:
            savers = [InMemorySaver(), InMemorySaver(serde=sealed), sqlite, sealed_sqlite]
            for step in sequence:
                await perform(model, savers, step)
            expected = model.read()
            for saver in savers:
                assert await read(saver) == expected

    anyio.run(run)
