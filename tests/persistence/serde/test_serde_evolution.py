"""Classes change while their values lie in a database."""

from __future__ import annotations

import dataclasses
import enum
import os
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pydantic
import pytest

from persistence.errors import CorruptDataError
from persistence.serde import Serializer
from persistence.serde.registry import Registry

ROOT = Path(__file__).parents[3]


def _moved(old: Any, new: type) -> Any:
    """Store a value of an old class and read it as the new one."""
    before, after = Serializer(), Serializer()
    before.registry.register(type(old), name="thing")
    after.registry.register(new, name="thing")
    return after.loads_typed(before.dumps_typed(old))


@dataclasses.dataclass
class DataA:
    """A class of two fields."""

    kept: Any = 1
    lost: Any = 2


@dataclasses.dataclass
class DataB:
    """One lost, two gained."""

    kept: Any
    gained: int = 3
    made: list[int] = dataclasses.field(default_factory=lambda: [4])
    later: int = dataclasses.field(init=False)


@dataclasses.dataclass(slots=True)
class SlotsB:
    """The same without a dict."""

    kept: Any
    gained: int = 3
    made: list[int] = dataclasses.field(default_factory=lambda: [4])


@dataclasses.dataclass
class DataC:
    """One gained, without a default."""

    kept: Any
    needed: int


class StructA(msgspec.Struct):
    """A class of two fields."""

    kept: Any = 1
    lost: Any = 2


class StructB(msgspec.Struct):
    """One lost, two gained."""

    kept: Any
    gained: int = 3
    made: list[int] = []


class StructC(msgspec.Struct):
    """One gained, without a default."""

    kept: Any
    needed: int


class ModelA(pydantic.BaseModel):
    """A class of two fields."""

    kept: Any = 1
    lost: Any = 2


class ModelB(pydantic.BaseModel):
    """One lost, two gained, and a private attribute."""

    kept: Any
    gained: int = 3
    made: list[int] = pydantic.Field(default_factory=lambda: [4])
    follows: int = pydantic.Field(default_factory=lambda data: data["gained"] + 1)
    _private: int = 6
    _unset: int = pydantic.PrivateAttr()


class ModelC(pydantic.BaseModel):
    """One gained, without a default."""

    kept: Any
    needed: int


class PairA(NamedTuple):
    """A tuple of one."""

    kept: Any


class PairB(NamedTuple):
    """A tuple of two."""

    kept: Any
    gained: int = 3


PairC = namedtuple("PairC", "kept needed")  # noqa: PYI024 - it is what is tested


class ColorA(enum.Enum):
    """An enum."""

    RED = 1
    GONE = 2


class ColorB(enum.Enum):
    """The same with another value, and one member less."""

    RED = "red"


def test_dataclasses() -> None:
    """Lost fields are left out; gained ones get their default, or are named in the error."""
    moved = _moved(DataA(kept=(1,)), DataB)
    assert vars(moved) == {"kept": (1,), "gained": 3, "made": [4]}
    assert _moved(DataA(kept=(1,)), SlotsB) == SlotsB((1,))
    with pytest.raises(CorruptDataError, match="'needed'"):
        _moved(DataA(), DataC)


def test_structs() -> None:
    """As for dataclasses."""
    assert _moved(StructA(kept=(1,)), StructB) == StructB((1,))
    with pytest.raises(CorruptDataError, match="needed"):
        _moved(StructA(), StructC)


def test_models() -> None:
    """As for dataclasses, and what was set stays known."""
    moved = _moved(ModelA(kept=(1,), lost=3), ModelB)
    assert moved == ModelB(kept=(1,))
    assert moved.model_fields_set == {"kept"}
    assert (moved.made, moved.follows, moved._private) == ([4], 4, 6)
    with pytest.raises(CorruptDataError, match="'needed'"):
        _moved(ModelA(), ModelC)


def test_named_tuples() -> None:
    """Items may be added at the end, with a default; none may go."""
    assert _moved(PairA((1,)), PairB) == PairB((1,), 3)
    with pytest.raises(CorruptDataError, match="'needed'"):
        _moved(PairA(1), PairC)
    with pytest.raises(CorruptDataError, match="2 items"):
        _moved(PairB(1), PairA)


def test_enums() -> None:
    """Members are stored by name, so their values may change; one that is gone is an error."""
    assert _moved(ColorA.RED, ColorB) is ColorB.RED
    with pytest.raises(CorruptDataError, match="GONE"):
        _moved(ColorA.GONE, ColorB)


@pytest.mark.parametrize("new", [ColorA, StructA, ModelA, PairA, ValueError, int])
def test_another_kind_of_class(new: type) -> None:
    """A class that is now of another kind is an error that says so."""
    with pytest.raises(CorruptDataError, match=r"is now|cannot be stored"):
        _moved(DataA(), new)


# ---- scripts ---------------------------------------------------------------------------------------------------------

SCRIPT = """
import sys
from dataclasses import dataclass

from persistence.serde import Serializer, register_types


@dataclass
class Line:
    sku: str


register_types(Line)


def loaded(data):
    return Serializer().loads_typed(("msgpack", bytes.fromhex(data))) == Line("a")


if __name__ == "__main__":
    print(Serializer().dumps_typed(Line("a"))[1].hex() if len(sys.argv) == 1 else loaded(sys.argv[1]))
"""


def test_classes_of_a_script_are_read_where_it_is_imported_and_the_other_way_round(tmp_path: Path) -> None:
    script = tmp_path / "orders.py"
    script.write_text(SCRIPT)

    def said(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    by_script = said("orders.py")
    by_module = said("-c", "import orders; print(orders.Serializer().dumps_typed(orders.Line('a'))[1].hex())")
    assert by_script != by_module
    for data in (by_script, by_module):
        assert said("-c", f"import orders; print(orders.loaded({data!r}))") == "True"
        assert said("orders.py", data) == "True"
        assert said("-m", "orders", data) == "True"


def test_of_two_classes_that_a_script_may_have_meant_neither_is_taken() -> None:
    registry = Registry()
    lines = [type("Line", (), {"__module__": module}) for module in ("a", "b")]
    registry.register(lines[0])
    assert registry.lookup("__main__:Line") is lines[0]
    registry.register(lines[1])
    assert registry.lookup("__main__:Line") is None
    assert registry.lookup("elsewhere:Line") is None
