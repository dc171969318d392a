"""The stored form, byte for byte.

Databases hold these bytes. If one of these tests fails, the change that made it fail would leave stored threads
unreadable: add a new code and keep reading the old one instead.
"""

from __future__ import annotations

import ipaddress
import pathlib
import re
import uuid
from collections import Counter, OrderedDict, defaultdict, deque
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np
import pydantic
import pytest

from persistence.serde import tags
from tests.persistence.serde.samples import (
    PARIS,
    Color,
    Inner,
    Model,
    OpenRec,
    Pair,
    Perm,
    Point,
    Rec,
    Slotted,
    TaxError,
    UserId,
    registered_serializer,
    same,
)


def _with(value: Any, **attributes: object) -> Any:
    for name, item in attributes.items():
        setattr(value, name, item)
    return value


def _without(value: Any, name: str) -> Any:
    delattr(value, name)
    return value


GOLDEN: dict[str, tuple[Any, str, str]] = {
    "plain": (
        {"a": [1, None, True, 1.5, "x", b"y"], 2: {}}, "msgpack",
        "4333f82e82a1619601c0c3cb3ff8000000000000a178c401790280",
    ),
    "null": (None, "null", ""),
    "bytes": (b"ab", "bytes", "1e132f246162"),
    "TEXT": ("a\ud800", "msgpack", "fbb90c9ed60161eda080"),
    "INTEGER": (-(2**64), "msgpack", "b47395bdc709020000000000000000ff"),
    "COMPLEX": (complex(1, -2), "msgpack", "5a1f354cd803000000000000f03f00000000000000c0"),
    "BYTEARRAY": (bytearray(b"ab"), "msgpack", "a9ee71fdd5046162"),
    "ELLIPSIS": (..., "msgpack", "05b46c2dc70005"),
    "UNSET": (msgspec.UNSET, "msgpack", "bfe565b4c70006"),
    "TUPLE": ((1, "a"), "msgpack", "c8fbe113d60a9201a161"),
    "SET": ({1}, "msgpack", "cb782a36d50b9101"),
    "FROZENSET": (frozenset({1}), "msgpack", "4e6e6533d50c9101"),
    "MAPPING": ({(1,): "a"}, "msgpack", "d1f8920ec7070d92d50a9101a161"),
    "ORDERED_DICT": (OrderedDict(b=1, a=2), "msgpack", "3be245a1c7070e94a16201a16102"),
    "DEFAULT_DICT": (defaultdict(list, a=[1]), "msgpack", "fc5e5819c70a0f93a46c697374a1619101"),
    "COUNTER": (Counter(a=2), "msgpack", "27ce88ffd61092a16102"),
    "DEQUE": (deque([1], 3), "msgpack", "c8e84107c70311920301"),
    "RANGE": (range(1, 9, 2), "msgpack", "ed46a849d61293010902"),
    "SLICE": (slice(None, 3, None), "msgpack", "3cd8206bd61393c003c0"),
    "DATETIME": (
        datetime(2024, 1, 2, 3, 4, 5, 6), "msgpack",  # noqa: DTZ001 - a naive one
        "aee9df72c71c1491ba323032342d30312d30325430333a30343a30352e303030303036",
    ),
    "DATETIME in UTC": (
        datetime(2024, 1, 2, tzinfo=UTC), "msgpack",
        "6842b861c7161492b3323032342d30312d30325430303a30303a303000",
    ),
    "DATETIME with offset": (
        datetime(2024, 1, 2, tzinfo=timezone(timedelta(hours=-1))), "msgpack",
        "4466c939c71e1492b3323032342d30312d30325430303a30303a3030d3ffffffff296c5c00",
    ),
    "DATETIME with named offset": (
        datetime(2024, 1, 2, tzinfo=timezone(timedelta(0), "X")), "msgpack",
        "9fb8c26bc7191492b3323032342d30312d30325430303a30303a30309200a158",
    ),
    "DATETIME in a zone": (
        datetime(2024, 10, 27, 2, tzinfo=PARIS, fold=1), "msgpack",
        "1789dfdac7231493b3323032342d31302d32375430323a30303a3030ac4575726f70652f506172697301",
    ),
    "DATE": (date(2024, 1, 2), "msgpack", "5d37b7d1c70a15323032342d30312d3032"),
    "TIME": (time(1, 2, 3), "msgpack", "dc306209c70a1691a830313a30323a3033"),
    "TIMEDELTA": (timedelta(-1, 2, 3), "msgpack", "1a7ee1aad61793ff0203"),
    "TIMEZONE": (timezone(timedelta(hours=1)), "msgpack", "52386170c70518ced693a400"),
    "ZONE": (PARIS, "msgpack", "33c031f4c70c194575726f70652f5061726973"),
    "UUID": (uuid.UUID(int=1), "msgpack", "89547d44d81e00000000000000000000000000000001"),
    "UUID that is safe": (
        uuid.UUID(int=1, is_safe=uuid.SafeUUID.safe), "msgpack",
        "40b80f37c7111e0000000000000000000000000000000100",
    ),
    "DECIMAL": (Decimal("-1.50"), "msgpack", "d02abdcac7051f2d312e3530"),
    "FRACTION": (Fraction(1, 3), "msgpack", "a274ee93c70320920103"),
    "PATH": (pathlib.PurePosixPath("/a"), "msgpack", "01767e7dc70321002f61"),
    "IP": (ipaddress.ip_address("10.0.0.1"), "msgpack", "1381169cc709220031302e302e302e31"),
    "PATTERN": (re.compile("a+", re.IGNORECASE), "msgpack", "e3b859d8c7052392a2612b22"),
    "SECRET": (pydantic.SecretStr("s"), "msgpack", "f55f7664d524a173"),
    "ARRAY": (np.array([[1, 2]], "<i2"), "msgpack", "cb920742d82894a33c6932920102a143c40401000200"),
    "ARRAY with fields": (
        np.array([(1, 2)], [("a", "<i2"), ("b", "|u1")]), "msgpack",
        "2cc629a4c71f289492c7070a92a161a33c6932c7070a92a162a37c75319101a143c403010002",
    ),
    "ARRAY_SCALAR": (np.int16(3), "msgpack", "676ad4adc7092992a33c6932c4020300"),
    "ARRAY_SCALAR text": (np.str_("a"), "msgpack", "cc19ac66c7052992a155a161"),
    "ENUM": (
        Color.GREEN, "msgpack",
        (
            "1cb2e5e8c72e3292d92574657374732e70657273697374656e63652e73657264652e73616d706c65733a436f6c6f72a5"
            "475245454e"
        ),
    ),
    "ENUM of flags": (
        Perm.R | Perm.X, "msgpack",
        "6d9a26f1c7293293d92474657374732e70657273697374656e63652e73657264652e73616d706c65733a5065726dc005",
    ),
    "DATACLASS": (
        Slotted(1, 2), "msgpack",
        (
            "4317fe00c7313392d92774657374732e70657273697374656e63652e73657264652e73616d706c65733a536c6f747465"
            "6482a16101a16202"
        ),
    ),
    "DATACLASS with attributes": (
        _with(Point(1), more=2), "msgpack",
        (
            "5f396670c73c3393d92574657374732e70657273697374656e63652e73657264652e73616d706c65733a506f696e7483"
            "a17801a17900a4746167739081a46d6f726502"
        ),
    ),
    "DATACLASS with unset field": (
        _without(Point(1), "tags"), "msgpack",
        (
            "daa2e775c7363394d92574657374732e70657273697374656e63652e73657264652e73616d706c65733a506f696e7482"
            "a17801a179008091a474616773"
        ),
    ),
    "STRUCT": (
        Rec(1), "msgpack",
        (
            "ebbc79cac72f3492d92374657374732e70657273697374656e63652e73657264652e73616d706c65733a52656382a161"
            "01a162c70006"
        ),
    ),
    "STRUCT with attributes": (
        _with(OpenRec(1), more=2), "msgpack",
        (
            "4ad5788ec73d3493d92774657374732e70657273697374656e63652e73657264652e73616d706c65733a4f70656e5265"
            "6381a9736f6d655f6e616d650181a46d6f726502"
        ),
    ),
    "MODEL": (
        Inner(n=1), "msgpack",
        (
            "0d55fa72c72d3593d92574657374732e70657273697374656e63652e73657264652e73616d706c65733a496e6e657281"
            "a16e01c3"
        ),
    ),
    "MODEL with all": (
        _with(Model.model_construct(None, name="n", anything=5, more=6), _private=7), "msgpack",
        (
            "bbac73b3c76c3595d92574657374732e70657273697374656e63652e73657264652e73616d706c65733a4d6f64656c84"
            "a46e616d65a16ea5696e6e6572c0a6736563726574c0a8616e797468696e670592a8616e797468696e67a46e616d6591"
            "81a46d6f7265069181a85f7072697661746507"
        ),
    ),
    "MODEL with unset field": (
        Model.model_construct(set(), anything=5), "msgpack",
        (
            "47cea14ec7583597d92574657374732e70657273697374656e63652e73657264652e73616d706c65733a4d6f64656c83"
            "a5696e6e6572c0a6736563726574c0a8616e797468696e67059091809181a85f70726976617465008091a46e616d65"
        ),
    ),
    "NAMED_TUPLE": (
        Pair(1, 2), "msgpack",
        "a9623431c7293693d92474657374732e70657273697374656e63652e73657264652e73616d706c65733a506169720102",
    ),
    "EXCEPTION": (
        ValueError("bad", 3), "msgpack",
        "daad06b1c71b3792b36275696c74696e733a56616c75654572726f7292a362616403",
    ),
    "EXCEPTION with attributes": (
        TaxError(4), "msgpack",
        (
            "bb80ff16c7443793d92874657374732e70657273697374656e63652e73657264652e73616d706c65733a546178457272"
            "6f7291aa74617820636f6465203482a4636f646504a472617465c0"
        ),
    ),
    "SUBCLASS": (
        UserId("u"), "msgpack",
        (
            "807b9a71c72b3892d92674657374732e70657273697374656e63652e73657264652e73616d706c65733a557365724964"
            "a175"
        ),
    ),
    "SUBCLASS with attributes": (
        _with(UserId("u"), note="n"), "msgpack",
        (
            "4d41d118c7333893d92674657374732e70657273697374656e63652e73657264652e73616d706c65733a557365724964"
            "a17581a46e6f7465a16e"
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GOLDEN)
def test_the_stored_form_does_not_change(name: str) -> None:
    """A value is written as these bytes, and these bytes are read as the value."""
    value, kind, digits = GOLDEN[name]
    serializer = registered_serializer()
    stored_kind, data = serializer.dumps_typed(value)
    assert (stored_kind, data.hex()) == (kind, digits)
    assert same(serializer.loads_typed((kind, bytes.fromhex(digits))), value)


def test_every_code_has_its_bytes() -> None:
    """No code is without an example here, and no two codes are the same."""
    codes = {name: code for name, code in vars(tags).items() if name.isupper()}
    assert len(set(codes.values())) == len(codes)
    assert codes.keys() <= {name.split()[0] for name in GOLDEN}
