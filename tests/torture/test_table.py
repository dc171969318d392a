"""The table in CONTRIBUTING.md: it has every part, as many cases as were promised, and no violation."""

from __future__ import annotations

from pathlib import Path

from tests.torture.catalog import parts

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"

AT_LEAST = {"kills": 500, "cancellation": 2_000, "power": 5_000, "two-processes": 200, "bytes": 10_000}
"""Cases of the parts that say how often they were tried."""


def rows() -> dict[str, list[str]]:
    """Return the table's rows, by part."""
    table = CONTRIBUTING.read_text("utf-8").partition("| part | what must hold")[2]
    lines = table.partition("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return {name: rest for name, *rest in cells}


def test_every_part_is_there() -> None:
    assert sorted(rows()) == sorted(each.name for each in parts())


def test_each_was_tried_often_enough_and_held() -> None:
    for name, (_, cases, violations, *_rest) in rows().items():
        assert int(cases.replace(",", "")) >= AT_LEAST.get(name, 1), name
        assert violations == "0", name
