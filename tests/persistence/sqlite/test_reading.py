"""What reads cost: two queries a page, whatever the history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from persistence.contracts.checkpoint import Addition, Mark, Unit
from persistence.sqlite import SqliteSaver
from tests.persistence.writer.samples import checkpoint, config, unit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.anyio
TRANSACTION = ("BEGIN", "ROLLBACK")


@pytest.fixture
async def saver(tmp_path: Path) -> AsyncIterator[SqliteSaver]:
    async with SqliteSaver(tmp_path / "threads.sqlite", synchronous="NORMAL") as opened:
        yield opened


async def traced(saver: SqliteSaver) -> list[str]:
    """Return a list that every statement of the reading connection is added to."""
    statements: list[str] = []
    backend: Any = saver._backend

    def note(sql: str) -> None:
        if not sql.startswith(TRANSACTION):
            statements.append(sql)

    await backend._cross(backend._reader.run, lambda raw: raw.set_trace_callback(note))
    return statements


async def fill(saver: SqliteSaver, count: int) -> None:
    for number in range(count):
        one = unit("t", f"{number:06}", writes_to=f"{number:06}", value=[number] * 3)
        await saver.send(saver.encode(one))


async def test_one_checkpoint_of_a_long_history_costs_two_queries(saver: SqliteSaver) -> None:
    await fill(saver, 1000)
    await saver.aget_tuple(config())
    statements = await traced(saver)
    newest = await saver.aget_tuple(config())
    assert newest is not None
    assert newest.checkpoint["id"] == "000999"
    assert len(statements) == 2
    statements.clear()
    assert (await saver.aget_tuple(config("t", "000500"))) is not None
    assert len(statements) == 2
    statements.clear()
    assert [one.checkpoint["id"] async for one in saver.alist(config(), limit=1)] == ["000999"]
    assert len(statements) == 2
    assert "LIMIT 1" in statements[0]


async def test_reading_one_touches_one(saver: SqliteSaver, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(saver, 100)
    decoded: list[str] = []
    decode = saver._decoder.decode

    class Noting:
        @staticmethod
        def decode(row: Any, page: Any) -> Any:
            decoded.append(row[2])
            assert len(page.checkpoints) == 1
            return decode(row, page)

    monkeypatch.setattr(saver, "_decoder", Noting)
    async for _ in saver.alist(config(), limit=1):
        pass
    await saver.aget_tuple(config())
    assert decoded == ["000099", "000099"]


async def test_a_page_costs_two_queries_however_many_checkpoints_it_holds(saver: SqliteSaver) -> None:
    await fill(saver, 400)
    statements = await traced(saver)
    assert len([one async for one in saver.alist(config())]) == 400
    assert len(statements) == 2 * 4  # pages of 16, 64, 256 and the rest
    statements.clear()
    history = saver.alist(config())
    await anext(history)
    await history.aclose()  # type: ignore[attr-defined]
    assert len(statements) == 2
    statements.clear()
    assert [one async for one in saver.alist(config("u"))] == []
    assert len(statements) == 1


async def test_reads_of_a_thread_use_its_key(saver: SqliteSaver) -> None:
    await fill(saver, 3)
    statements = await traced(saver)
    async for _ in saver.alist(config(), before=config("t", "000002"), limit=1):
        pass
    await saver.aget_tuple(config())
    backend: Any = saver._backend
    await backend._cross(backend._reader.run, lambda raw: raw.set_trace_callback(None))
    for statement in statements:
        plan = await backend._cross(
            backend._reader.run, lambda raw, sql=statement: raw.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()
        )
        for _, _, _, step in plan:
            assert "TEMP B-TREE" not in step
            assert not step.startswith(("SCAN checkpoint", "SCAN w", "SCAN b")), step


async def test_appending_costs_what_was_appended_and_reading_stays_short(saver: SqliteSaver) -> None:
    """A log of 120 entries that rests on a number of rows that grows with its logarithm."""
    log: list[str] = []
    marks: tuple[Mark, ...] = ()
    rows = 0
    for number in range(120):
        entry = f"entry {number} " + "x" * 200
        log = [*log, entry]
        own = Mark(number, f"{number:04}", len(log))
        # The base is the newest mark whose index has more trailing zero bits: a binary counter.
        while marks and number & -number >= (marks[-1].index & -marks[-1].index or 1 << 30):
            marks = marks[:-1]
        value = log if not marks else Addition(marks[-1], number, log[marks[-1].length :])
        marks = (*marks, own)
        made = checkpoint(f"{number:06}", {"log": log}, {"log": own.version})
        one = Unit("t", "", checkpoint=made, changed={"log": value}, lineage={"log": marks})
        request = saver.encode(one)
        rows += sum(len(row[5]) for row in request.blobs)
        await saver.send(request)
    assert rows < 8 * len("".join(log))
    newest = await saver.aget_tuple(config())
    assert newest is not None
    assert newest.checkpoint["channel_values"]["log"] == log
    assert newest.lineage is not None
    assert len(newest.lineage["log"]) <= 8
    await saver.aprune(["t"])
    pruned = await saver.aget_tuple(config())
    assert pruned is not None
    assert pruned.checkpoint == newest.checkpoint
