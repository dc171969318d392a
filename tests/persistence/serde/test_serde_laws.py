"""Laws that hold for any value: it comes back the same, or it is refused; equal values need not look equal."""

from __future__ import annotations

import re
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from datetime import timedelta, timezone
from typing import Any

import ormsgpack
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from persistence.errors import SerializationError
from persistence.serde.serializer import Serializer
from persistence.serde.writing import (
    PLAIN_DEPTH,
    encode,
    is_plain,
    is_plain_by_items,
    is_plain_by_referents,
    plain_bytes,
)
from tests.persistence.serde.samples import (
    Box,
    Celsius,
    Color,
    Count,
    Derived,
    Frozen,
    FrozenModel,
    FrozenRec,
    IntPerm,
    Level,
    Mode,
    Model,
    OldPair,
    Pair,
    Perm,
    Point,
    Rec,
    RootList,
    Slotted,
    Stack,
    TaxError,
    Triple,
    UserId,
    registered_serializer,
    same,
)

SERIALIZER = registered_serializer()

text = st.text(st.characters(categories=["L", "N", "P", "S", "Z", "C"]))
offsets = st.builds(timezone, st.timedeltas(timedelta(hours=-23), timedelta(hours=23)))
zones = st.one_of(st.none(), st.timezones(), offsets, st.builds(timezone, st.just(timedelta(hours=1)), st.text()))

hashable_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**80), 2**80),
    st.floats(),
    st.complex_numbers(),
    text,
    st.binary(),
    st.datetimes(timezones=zones, allow_imaginary=True),
    st.dates(),
    st.times(timezones=st.one_of(st.none(), offsets)),
    st.timedeltas(),
    offsets,
    st.timezones(),
    st.uuids(),
    st.decimals(allow_nan=False),
    st.fractions(),
    st.ip_addresses(),
    st.sampled_from([*Color, *Level, *Mode, Perm(0), Perm.R | Perm.W, IntPerm(9), ...]),
    st.builds(range, st.integers(), st.integers(), st.integers(1)),
    st.builds(UserId, text),
    st.builds(Celsius, st.floats()),
    st.builds(Count, st.integers()),
)
scalars = st.one_of(
    hashable_scalars,
    st.builds(bytearray, st.binary()),
    st.decimals(),
    st.builds(slice, st.integers(), st.none(), text),
    st.sampled_from([re.compile("a", re.IGNORECASE), re.compile(rb"\x00")]),
    npst.arrays(npst.scalar_dtypes(), npst.array_shapes(min_dims=0, min_side=0, max_side=3)),
    npst.arrays(npst.array_dtypes(), 2),
)
keys = st.recursive(
    hashable_scalars,
    lambda inner: st.one_of(
        st.tuples(inner),
        st.builds(Triple, st.lists(inner, max_size=2)),
        st.frozensets(inner, max_size=3),
        st.builds(Frozen, inner),
        st.builds(Slotted, inner, inner),
        st.builds(FrozenRec, a=inner),
        st.builds(FrozenModel, a=inner),
        st.builds(Pair, inner, inner),
    ),
    max_leaves=4,
)


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    mappings = st.dictionaries(st.one_of(text, keys), inner, max_size=4)
    return st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        mappings,
        mappings.map(OrderedDict),
        mappings.map(lambda mapping: defaultdict(list, mapping)),
        st.dictionaries(keys, st.integers(), max_size=3).map(Counter),
        st.builds(deque, st.lists(inner, max_size=3), st.one_of(st.none(), st.integers(0, 5))),
        st.sets(keys, max_size=4),
        st.frozensets(keys, max_size=4),
        st.builds(Point, inner, inner),
        st.builds(Derived, inner, inner),
        st.builds(Slotted, inner),
        st.builds(Box, inner),
        st.builds(Rec, inner),
        st.builds(Pair, inner, inner),
        st.builds(OldPair, inner, inner),
        st.builds(Model, name=st.text(), anything=inner, more=inner),
        st.builds(Stack, st.lists(inner, max_size=3)),
        st.builds(RootList.model_construct, st.lists(inner, max_size=3)),
        st.builds(TaxError, st.integers(), rate=inner),
        st.builds(ValueError, inner, inner),
    )


values = st.recursive(scalars, _containers, max_leaves=12)
plain = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(), st.text(), st.binary()),
    lambda inner: st.one_of(
        st.lists(inner),
        st.dictionaries(st.one_of(st.text(), st.integers(-(2**63), 2**64 - 1), st.none(), st.binary()), inner),
    ),
    max_leaves=30,
)
relaxed = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None, max_examples=40
)


@relaxed
@given(values)
def test_what_goes_in_comes_out(value: Any) -> None:
    """Loading what was dumped gives the same value, of the same types, all the way down, or it was refused."""
    try:
        typed = SERIALIZER.dumps_typed(value)
    except SerializationError:
        assert "void" in repr(value) or "dtype" in repr(value)  # odd record types only
        return
    again = SERIALIZER.loads_typed(typed)
    assert same(value, again), f"{value!r} came back as {again!r}"


@relaxed
@given(values)
def test_storing_again_what_was_loaded_gives_the_same_value(value: Any) -> None:
    """A value survives any number of round trips, also through another serializer."""
    try:
        typed = SERIALIZER.dumps_typed([value])
    except SerializationError:
        return
    other = Serializer(registry=SERIALIZER.registry.copy())
    assert same([value], other.loads_typed(SERIALIZER.dumps_typed(other.loads_typed(typed))))


@relaxed
@given(plain)
def test_plain_values_need_no_tags(value: Any) -> None:
    """Exact builtins are written as msgspec writes them, whoever does it, and read back the same."""
    kind, data = SERIALIZER.dumps_typed(value)
    assert same(SERIALIZER.loads_typed((kind, data)), value)
    if isinstance(value, list | dict):
        assert is_plain(value)
        assert data[4:] == encode(value)


@relaxed
@given(st.one_of(st.lists(values, max_size=4), st.dictionaries(text, values, max_size=4)))
def test_what_is_called_plain_is_exact_builtins_only(value: Any) -> None:
    """The fast check never lets pass what msgspec would change."""
    try:
        encode(value)
    except Exception:  # noqa: BLE001 - the check is made after msgspec accepted a value
        return
    expected = _plain_by_definition(value)
    assert (plain_bytes(value) is not None) == expected
    assert is_plain(value) == expected
    assert is_plain_by_items(value) == expected
    if sys.version_info < (3, 13):
        assert is_plain_by_referents(value) == expected


class _Key(str):
    """A text that is not exactly one."""

    __slots__ = ()


@pytest.mark.parametrize("length", [0, 1, 2, 4, 8, 16, 20, 300, 70_000])
def test_what_the_encoder_takes_beside_exact_builtins_is_not_called_plain(length: int) -> None:
    """Whatever its size, and so the first byte that it is written with."""
    data = bytes(length)
    for value in (bytearray(data), memoryview(data), ormsgpack.Ext(5, data), _Key("k" * length)):
        for around in ([value], {"a": [1, value]}, [[{"b": value}], "c"]):
            assert plain_bytes(around) is None
    assert plain_bytes({_Key("k" * length): 1}) is None
    assert plain_bytes([data, {"a": data}]) == encode([data, {"a": data}])


@pytest.mark.parametrize("wrap", [lambda value: [value], lambda value: {1: value}], ids=["lists", "dicts"])
def test_both_looks_go_equally_deep(wrap: Any) -> None:
    value: Any = 1
    for _ in range(PLAIN_DEPTH):
        value = wrap(value)
    looks = [is_plain_by_items] + ([is_plain_by_referents] if sys.version_info < (3, 13) else [])
    assert all(look(value) for look in looks)
    assert not any(look(wrap(value)) for look in looks)


def _plain_by_definition(value: Any) -> bool:
    if type(value) is list:
        return all(map(_plain_by_definition, value))
    if type(value) is dict:
        return all(map(_plain_by_definition, value)) and all(map(_plain_by_definition, value.values()))
    return type(value) in {type(None), bool, int, float, str, bytes}
