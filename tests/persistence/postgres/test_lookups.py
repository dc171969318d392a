"""What commits look at: rows by their keys, never a table from its start to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

from persistence.postgres import PostgresSaver
from tests.persistence.backends.graphs import chain, thread

if TYPE_CHECKING:
    from tests.persistence.postgres.server import Server

pytestmark = pytest.mark.anyio

MANY = 5000
"""Rows of others: enough for the planner to prefer a key to the table, where it has the choice."""

OTHERS = (
    f"""INSERT INTO checkpoints (thread_id, checkpoint_id, checkpoint)
    SELECT 'other ' || n, '1', '{{}}' FROM generate_series(1, {MANY}) AS n""",
    f"""INSERT INTO checkpoint_leases (thread_id, epoch, owner, graph, held)
    SELECT 'other ' || n, 1, 'nobody', 'g', false FROM generate_series(1, {MANY}) AS n""",
)

LOOKED_AT = "SELECT sum(seq_tup_read)::bigint FROM pg_stat_user_tables WHERE schemaname = current_schema()"
STORED = """SELECT n_tup_ins FROM pg_stat_user_tables
    WHERE schemaname = current_schema() AND relname = 'checkpoints'"""


@pytest.mark.parametrize("analyzed", [False, True])
async def test_a_superstep_does_not_read_what_is_of_others(
    postgres: Server, postgres_url: str, *, analyzed: bool
) -> None:
    """Whether the planner knows how much there is, or has not been told yet."""
    async with PostgresSaver(postgres_url) as saver:
        await chain(saver, 3).ainvoke({"trail": []}, thread("first"), durability="sync")
    for sql in (*OTHERS, *(["ANALYZE checkpoints", "ANALYZE checkpoint_leases"] if analyzed else [])):
        postgres.rows(sql, url=postgres_url)
    looked_at, stored = (postgres.rows(sql, url=postgres_url)[0][0] for sql in (LOOKED_AT, STORED))
    async with PostgresSaver(postgres_url) as saver:
        await chain(saver, 12).ainvoke({"trail": []}, thread("t"), durability="sync")
    with anyio.fail_after(15):  # the server counts what a connection did when that has ended
        while postgres.rows(STORED, url=postgres_url)[0][0] < stored + 13:
            await anyio.sleep(0.02)
    assert postgres.rows(LOOKED_AT, url=postgres_url)[0][0] - looked_at < MANY
