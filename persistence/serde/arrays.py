"""How numpy arrays and scalars are stored.

numpy is imported when the first one is read; by its fixed name, as the code of a value says that it is an array.
"""

from __future__ import annotations

import math
import re
import sys
from typing import TYPE_CHECKING, Any, Final, Literal

from persistence.errors import CorruptDataError
from persistence.serde import tags
from persistence.serde.parts import exactly
from persistence.serde.writing import Refusal, Write, Writer, pack

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from msgspec.msgpack import Ext

    from persistence.serde.reading import Reader

_PLAIN_DTYPE: Final = re.compile(r"[<>|][biufcmMSUV]\d+(\[\w+\])?|[<>][mM]8|[bBhHiIlLqQ]", re.ASCII)

_TITLE_AND_NAME: Final = 2
_DTYPE_AND_SHAPE: Final = 2


def array_writer(cls: type) -> Write | None:
    """Return how a numpy array or scalar is written; None for any other class."""
    numpy = sys.modules.get("numpy")
    if numpy is None or cls.__module__ != "numpy":
        return None
    if cls is numpy.ndarray:
        return _write_array
    return _write_scalar if issubclass(cls, numpy.generic) else None


def _description(dtype: np.dtype[Any]) -> object:
    """Return what a dtype can be made from again: its text, or the list of its fields."""
    from numpy.lib import format as npy  # noqa: PLC0415 - optional package

    if dtype.hasobject:
        msg = f"its dtype {dtype} holds Python objects; convert it to numbers or text, or to a list"
        raise Refusal(msg)
    described: Any = npy.dtype_to_descr(dtype) if dtype.names or dtype.subdtype else dtype.str
    for candidate in (described, dtype.char):
        again = _dtype(candidate) if _is_description(candidate) else None
        if again == dtype and again.type is dtype.type:
            return candidate
    msg = f"its dtype {dtype!r} has no stored form"
    raise Refusal(msg)


def _is_description(described: object) -> bool:
    """Whether a dtype is stored like this; numpy takes more than that, and has Python's parser look at some texts."""
    if type(described) is str:
        return _PLAIN_DTYPE.fullmatch(described) is not None
    if type(described) is list:
        return all(map(_is_field, described))
    return type(described) is tuple and _is_sized(described)


def _is_field(field: object) -> bool:
    """Whether this is a name, or a title and a name, then a dtype and perhaps a shape."""
    if type(field) is not tuple or not field:
        return False
    name, *rest = field
    names = name if type(name) is tuple and len(name) == _TITLE_AND_NAME else (name,)
    if not all(type(each) is str for each in names):
        return False
    return _is_description(rest[0]) if len(rest) == 1 else _is_sized(rest)


def _is_sized(described: Sequence[object]) -> bool:
    """Whether this is a dtype and a shape."""
    if len(described) != _DTYPE_AND_SHAPE:
        return False
    dtype, shape = described
    return type(shape) is tuple and all(type(size) is int for size in shape) and _is_description(dtype)


def _dtype(described: Any) -> np.dtype[Any]:
    from numpy.lib import format as npy  # noqa: PLC0415 - optional package

    if not _is_description(described):
        what = f"{described!r:.80}" if type(described) is str else f"a {type(described).__name__} of parts"
        msg = f"A stored array has as its dtype {what}, which is never stored."
        raise CorruptDataError(msg)
    dtype = npy.descr_to_dtype(described)
    if dtype.hasobject:
        msg = "A stored array claims to hold Python objects."
        raise CorruptDataError(msg)
    return dtype


def _write_array(writer: Writer, value: np.ndarray[Any, Any], depth: int) -> Ext:
    order: Literal["C", "F"] = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
    described = writer.convert(_description(value.dtype), depth)
    return pack(tags.ARRAY, [described, list(value.shape), order, value.tobytes(order)])


def _write_scalar(writer: Writer, value: np.generic[Any], depth: int) -> Ext:
    if isinstance(value, str | bytes):  # a dtype would drop trailing NULs
        kind, plain = ("U", str.__str__(value)) if isinstance(value, str) else ("S", bytes(memoryview(value)))
        return pack(tags.ARRAY_SCALAR, [kind, writer.convert(plain, depth)])
    described = writer.convert(_description(value.dtype), depth)
    return pack(tags.ARRAY_SCALAR, [described, value.tobytes()])


def read_array(reader: Reader, data: memoryview) -> object:
    """Return a new, writable array."""
    import numpy as np  # noqa: PLC0415 - optional package

    described, shape, order, raw = reader.array(data)
    for size in exactly(list, shape, "The shape of a stored array"):
        exactly(int, size, "A size in the shape of a stored array")
    exactly(bytes, raw, "The data of a stored array")
    dtype = _dtype(described)
    if order not in {"C", "F"} or math.prod(shape) * dtype.itemsize != len(raw) or min(shape, default=0) < 0:
        msg = f"A stored array of shape {shape} and dtype {dtype} comes with {len(raw)} bytes."
        raise CorruptDataError(msg)
    if not raw:
        return np.ndarray(shape, dtype, order=order)  # np.empty would make texts of no characters longer
    return np.frombuffer(bytearray(raw), dtype).reshape(shape, order=order)


def read_scalar(reader: Reader, data: memoryview) -> object:
    """Return a scalar."""
    import numpy as np  # noqa: PLC0415 - optional package

    described, raw = reader.array(data)
    if described == "U":
        return np.str_(exactly(str, raw, "A stored numpy text"))
    exactly(bytes, raw, "The data of a stored numpy scalar")
    if described == "S":
        return np.bytes_(raw)
    (scalar,) = np.frombuffer(raw, _dtype(described))
    return scalar
