"""What checkpoints can be found by, on every backend: any fact of their metadata, whatever it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.persistence.writer.samples import config, put

if TYPE_CHECKING:
    from persistence.writer.saver import GroupCommitSaver

pytestmark = pytest.mark.anyio

FACTS: dict[str, dict[str, Any]] = {
    "1": {"parents": {}, "step": -1, "source": "input"},
    "2": {"parents": {"": "1"}, "step": 0},
    "3": {"parents": {"": "1", "a|b": "7"}, "step": 0, "run_id": "r"},
    "4": {"writes": None, "flag": True, "deep": {"a": [1, {"b": "é\0"}]}},
    "5": {"flag": 1, "score": 0.5, "run_id": "r'; --"},
    "6": {"flag": False, "score": 1.0, "empty": "", "$where": "x", "a.b": 1},
}
FILTERS: list[tuple[dict[str, Any], str]] = [
    ({"parents": {}}, "654 1".replace(" ", "")),
    ({"parents": {"": "1"}}, "2"),
    ({"parents": {"a|b": "7", "": "1"}}, "3"),
    ({"parents": {"": "2"}}, ""),
    ({"step": 0}, "65432"),
    ({"step": -1, "source": "input"}, "1"),
    ({"source": "loop"}, "65432"),
    ({"run_id": "r"}, "3"),
    ({"run_id": "r'; --"}, "5"),
    ({"writes": None}, "4"),
    ({"deep": {"a": [1, {"b": "é\0"}]}}, "4"),
    ({"deep": {"a": [1]}}, ""),
    ({"score": 0.5}, "5"),
    ({"empty": ""}, "6"),
    ({"$where": "x"}, "6"),
    ({"a.b": 1}, "6"),
    ({"a": {"b": 1}}, ""),
    ({"missing": 1}, ""),
]


@pytest.mark.parametrize(("given", "found"), FILTERS, ids=[f"{number}" for number in range(len(FILTERS))])
async def test_filters_compare_whole_values(saver: GroupCommitSaver, given: dict[str, Any], found: str) -> None:
    for name, facts in FACTS.items():
        await put(saver, name, {}, **facts)
    assert "".join([one.checkpoint["id"] async for one in saver.alist(config(), filter=given)]) == found
    assert "".join([one.checkpoint["id"] async for one in saver.alist(None, filter=given)]) == found


async def test_filters_before_and_limits_go_together(saver: GroupCommitSaver) -> None:
    for number in range(1, 8):
        await put(saver, f"{number}", {}, parents={"": f"{number % 2}"})
        await put(saver, f"{number}", {}, parents={"": "1"}, ns="child")
    odd = {"parents": {"": "1"}}
    found = saver.alist(config(), filter=odd, before=config("t", "6"), limit=2)
    assert [one.checkpoint["id"] async for one in found] == ["5", "3"]
    everywhere = saver.alist({"configurable": {"thread_id": "t"}}, filter=odd, before=config("t", "4"))
    assert [(one.checkpoint["id"], one.config["configurable"]["checkpoint_ns"]) async for one in everywhere] == [
        ("3", "child"),
        ("3", ""),
        ("2", "child"),
        ("1", "child"),
        ("1", ""),
    ]
    assert [one async for one in saver.alist(config(), filter=odd, limit=0)] == []
