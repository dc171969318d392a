"""Copies, so that what one node changes in place is seen by nobody else.

A node receives its containers copied one level deep. That is what programs change in place (append, update, add), and
copying it costs little; a whole deep copy would cost more than the superstep. ``fingerprint`` finds deeper changes
where someone asks for it (``debug=True``).
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Callable
from typing import Any, Final

from runtime.channels import detached as view

__all__ = ["fingerprint", "view"]

_SIZE: Final = 16


def fingerprint(value: Any) -> bytes | None:
    """Return a digest that changes when anything inside the value is changed in place; None if there is none.

    Compare only digests of the same object, taken before and after: equal values need not have equal digests.
    """
    written = io.BytesIO()
    try:
        _Tracer(written, protocol=5).dump(value)
    except Exception:  # noqa: BLE001 - values pickle themselves, and may fail in any way; there is then no digest
        return None
    return hashlib.blake2b(written.getbuffer(), digest_size=_SIZE).digest()


class _Tracer(pickle.Pickler):
    """Walks a value with pickle's traversal; what cannot be pickled (functions, locks, sockets) is its identity.

    What it writes is hashed and never loaded.
    """

    def reducer_override(self, obj: Any) -> Any:
        if obj is _same:
            return NotImplemented
        if isinstance(obj, type):
            return _same, (id(obj),)
        try:
            reduced = obj.__reduce_ex__(5)
        except Exception:  # noqa: BLE001 - see the class
            return _same, (id(obj),)
        return (_same, (id(obj),)) if isinstance(reduced, str) else reduced


def _same(identity: int) -> Callable[[], None]:
    """Stand for an object that is only compared by identity."""
    raise pickle.UnpicklingError(identity)
