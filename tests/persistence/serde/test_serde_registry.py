"""The allow-list: registering adds, strictness is another switch, a redefined class replaces its older self."""

from __future__ import annotations

import dataclasses
import enum
import itertools
from typing import Any

import pytest

from persistence.errors import CorruptDataError, SerializationError, UnknownTypeError
from persistence.serde import SHARED, Registry, Serializer, register_types


@dataclasses.dataclass
class Known:
    """A class that is registered."""

    x: Any = 1


@dataclasses.dataclass
class Other:
    """A class that is not."""

    x: Any = 1


class OnlyShared(enum.Enum):
    """A class registered for the whole process."""

    A = 1


def _defined(name: str = "Cell", module: str = "__main__", **fields: Any) -> Any:
    cls = dataclasses.make_dataclass(name, list(fields))
    cls.__module__ = module
    return cls


def test_names_and_lookups() -> None:
    """A class is known by module and qualified name, or by the name it was given."""
    registry = Registry()
    registry.register(Known, Other)
    name = f"{__name__}:Known"
    assert registry.name_of(Known) == name
    assert registry.lookup(name) is Known
    assert registry.knows(Known)
    assert registry.lookup("nothing") is None
    assert registry.name_of(int) is None
    assert not registry.knows(int)
    assert "2 types" in repr(registry)


def test_registering_again_changes_nothing() -> None:
    """Registration is idempotent, and keeps a given name."""
    registry = Registry()
    registry.register(Known, name="known")
    changes = registry.changes
    registry.register(Known)
    registry.register()
    assert registry.name_of(Known) == "known"
    assert registry.changes == changes


def test_a_given_name_leaves_the_others_readable() -> None:
    """What was stored before a class got a name of its own stays readable."""
    registry = Registry()
    registry.register(Known)
    registry.register(Known, name="v1")
    registry.register(Known, name="v2")
    assert registry.name_of(Known) == "v2"
    assert [registry.lookup(name) for name in (f"{__name__}:Known", "v1", "v2")] == [Known] * 3


def test_a_moved_class_reads_what_was_stored_under_its_old_name() -> None:
    """Giving the old name to the new class is all that a move needs."""
    before = Serializer()
    before.registry.register(Known, name="app.old:Known")
    after = Serializer()
    after.registry.register(Other, name="app.old:Known")
    assert after.loads_typed(before.dumps_typed(Known(5))) == Other(5)


def test_two_classes_cannot_have_one_name() -> None:
    """A clash is an error that names both, and changes nothing."""
    registry = Registry()
    registry.register(Known, name="thing")
    with pytest.raises(ValueError, match=r"thing.*Known.*Other"):
        registry.register(Other, name="thing")
    assert registry.lookup("thing") is Known
    assert not registry.knows(Other)


def test_only_classes_can_be_registered() -> None:
    """Anything else is an error, as is one name for several classes."""
    registry = Registry()
    for wrong in (list[int], "Known", Known()):
        with pytest.raises(TypeError, match="Only classes"):
            registry.register(wrong)  # type: ignore[arg-type]
    for count in (0, 2):
        with pytest.raises(ValueError, match=f"got {count}"):
            registry.register(*[Known, Other][:count], name="n")


def test_a_copy_is_independent() -> None:
    """A copy starts equal and goes its own way."""
    registry = Registry()
    registry.register(Known)
    twin = registry.copy()
    twin.register(Other)
    assert twin.knows(Known)
    assert not registry.knows(Other)


def test_a_redefined_class_takes_over() -> None:
    """A notebook cell run twice: values of the first class come back as the second, under all its names."""
    first, second = _defined(x=1), _defined(x=1, y=2)
    serializer = Serializer()
    serializer.registry.register(first, name="cell")
    typed = serializer.dumps_typed(first(1))
    serializer.register_types([second])
    assert serializer.registry.name_of(second) == "cell"
    assert serializer.registry.lookup("__main__:Cell") is serializer.registry.lookup("cell") is second
    assert not serializer.registry.knows(first)
    with pytest.raises(CorruptDataError, match="'y'"):
        serializer.loads_typed(typed)
    third = dataclasses.make_dataclass("Cell", ["x", ("y", int, 7)])
    third.__module__ = "__main__"
    serializer.register_types([third])
    assert serializer.loads_typed(typed) == third(1, 7)


def test_an_instance_of_the_older_class_is_refused() -> None:
    """It could not come back as what it is; the error says what happened."""
    first, second = _defined(x=1), _defined(x=1)
    serializer = Serializer()
    serializer.register_types([first, second])
    with pytest.raises(SerializationError, match="defined again"):
        serializer.dumps_typed(first(1))
    assert serializer.loads_typed(serializer.dumps_typed(second(1))) == second(1)


def test_the_own_registry_goes_before_the_shared_one() -> None:
    """A class of the shared registry whose name is taken by another class here is refused, not confused."""
    shared, own = _defined(module="of_this_test_only", x=1), _defined(module="of_this_test_only", x=1)
    register_types(shared)
    serializer = Serializer()
    typed = serializer.dumps_typed(shared(1))
    serializer.register_types([own])
    assert serializer.loads_typed(typed) == own(1)
    with pytest.raises(SerializationError, match="belongs to another class"):
        serializer.dumps_typed(shared(1))


def test_shared_types_are_known_to_every_serializer() -> None:
    """Also to those that were made before."""
    serializer = Serializer()
    with pytest.raises(SerializationError):
        serializer.dumps_typed(OnlyShared.A)
    register_types(OnlyShared)
    typed = serializer.dumps_typed(OnlyShared.A)
    assert Serializer(registry=Registry()).loads_typed(typed) is OnlyShared.A
    assert SHARED.knows(OnlyShared)
    assert not serializer.registry.knows(OnlyShared)


@pytest.mark.parametrize(("registered", "strict"), list(itertools.product([True, False], repeat=2)))
def test_registration_and_strictness(*, registered: bool, strict: bool) -> None:
    """Registering one class never stands in the way of another; strictness alone decides on the unregistered."""
    serializer = Serializer(strict=strict)
    serializer.register_types([Known] if registered else [])
    for value, fine in ((Known(1), registered or not strict), (Other(1), not strict), ({"a": (1,)}, True)):
        if fine:
            assert serializer.loads_typed(serializer.dumps_typed([value])) == [value]
        else:
            with pytest.raises(SerializationError, match="not registered"):
                serializer.dumps_typed([value])


@pytest.mark.parametrize("strict", [True, False])
def test_an_unknown_class_is_an_error_when_read(*, strict: bool) -> None:
    """Strict or not, reading registers nothing, and another process has to register for itself."""
    writer = Serializer(strict=False)
    typed = writer.dumps_typed({"a": Other(1)})
    reader = Serializer(strict=strict)
    with pytest.raises(UnknownTypeError, match="Other"):
        reader.loads_typed(typed)
    assert not reader.registry.knows(Other)
    reader.register_types([Other])
    assert reader.loads_typed(typed) == {"a": Other(1)}


def test_a_class_may_be_registered_after_a_refusal() -> None:
    """The refusal is forgotten as soon as the class is registered."""
    serializer = Serializer()
    with pytest.raises(SerializationError):
        serializer.dumps_typed(Known())
    serializer.register_types([Known])
    assert serializer.loads_typed(serializer.dumps_typed(Known())) == Known()


def test_registering_builtins_is_harmless() -> None:
    """Whoever registers all types of a schema need not sort out the builtins."""
    serializer = Serializer()
    serializer.register_types([int, str, dict, list, type(None), object])
    assert serializer.loads_typed(serializer.dumps_typed({"a": 1})) == {"a": 1}
    with pytest.raises(SerializationError, match="no stored form"):
        serializer.dumps_typed(object())
