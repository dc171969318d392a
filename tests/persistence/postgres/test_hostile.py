"""Text and numbers that jsonb would refuse or change: in values, metadata, filters and names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from persistence.errors import SerializationError
from persistence.postgres import PostgresSaver
from tests.persistence.writer.samples import config, put

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.anyio

KEYS: Final = ("\0", "\ue000", "\ue0000", "\\u0000", "a\0b", "{}", "{0}", "$1", "'); DROP TABLE checkpoints; --", "")
NAMES: Final = ("é\U0001f600 ' \" %", "'; DROP TABLE checkpoints; --", "{x}", "$1", "\ue000", "\ue0001", "a:b|c", "\\")
NUMBERS: Final = (0, -1, 2**53, 2**63 - 1, 0.1, -0.0, 0.0, 1e16, 1e300, 5e-324, -1e22, 1.0)


@pytest.fixture
async def saver(postgres_url: str) -> AsyncIterator[PostgresSaver]:
    async with PostgresSaver(postgres_url) as opened:
        yield opened


async def ids(saver: PostgresSaver, **options: object) -> list[str]:
    return [stored.checkpoint["id"] async for stored in saver.alist(None, **options)]  # type: ignore[arg-type]


async def test_keys_of_filters(saver: PostgresSaver) -> None:
    for number, key in enumerate(KEYS):
        await put(saver, f"{number:03}", {}, **{key: "here"})
    for number, key in enumerate(KEYS):
        assert await ids(saver, filter={key: "here"}) == [f"{number:03}"], key
        assert await ids(saver, filter={key: "there"}) == [], key


async def test_names(saver: PostgresSaver) -> None:
    for name in NAMES:
        where = await put(saver, "1", {name: [name]}, thread_id=name, ns=name)
        await saver.aput_writes(where, [(name, name)], name, name)
    for name in NAMES:
        stored = await saver.aget_tuple(config(name, ns=name))
        assert stored is not None
        assert stored.checkpoint["channel_values"] == {name: [name]}
        assert stored.pending_writes == [(name, name, name)]
    assert len(await ids(saver)) == len(NAMES)


async def test_numbers(saver: PostgresSaver) -> None:
    """Value, type and sign; a filter finds them by value."""
    held = {f"n{place}": number for place, number in enumerate(NUMBERS)}
    where = await put(saver, "1", held, numbers=list(NUMBERS))
    stored = await saver.aget_tuple(where)
    assert stored is not None
    values = stored.checkpoint["channel_values"]
    assert [repr(values[f"n{place}"]) for place in range(len(NUMBERS))] == list(map(repr, NUMBERS))
    assert list(map(repr, stored.metadata["numbers"])) == list(map(repr, NUMBERS))
    for place, number in enumerate(NUMBERS):
        await put(saver, f"n{place:02}", {}, held=number)
        assert await ids(saver, filter={"held": number}, limit=1) == [f"n{place:02}"]
    assert await ids(saver, filter={"held": 0}) == ["n06", "n05", "n00"]
    assert await ids(saver, filter={"held": 10**16}) == ["n07"]
    assert await ids(saver, filter={"held": 1}) == ["n11"]
    assert await ids(saver, filter={"held": True}) == []


async def test_a_lone_surrogate_in_metadata_is_refused_as_everywhere(saver: PostgresSaver) -> None:
    with pytest.raises(SerializationError):
        await put(saver, "1", {}, note="\ud800")
    assert await ids(saver) == []
