"""LangGraph's stored values: MessagePack with extensions, or JSON. Pickles are never looked into."""

from __future__ import annotations

import json
from typing import Any, Final, TypeAlias

import msgspec

from persistence.migration.constructors import MODEL_2, NAMED, POSITIONAL, SINGLE, Constructors
from persistence.migration.records import Uncarried
from persistence.serde.serializer import ENCRYPTED

Part: TypeAlias = tuple[str, Any]
"""A type and data in it; of the type ``ready``, a value as it is."""

_ARRAY, _SNAPSHOT = 6, 7
_ENVELOPES: Final = (1, 2)


class ForeignDecoder:
    """Rebuilds values; what it does not know it names, all of it at once."""

    def __init__(self, constructors: Constructors) -> None:
        """Rebuild instances by these names only."""
        self._constructors = constructors
        self._reasons: dict[str, None] = {}
        self._findings = 0
        self._decode = msgspec.msgpack.Decoder(ext_hook=self._extension).decode

    def value(self, typed: Part) -> Any:
        """Return the value. Raises Uncarried with every reason against it."""
        kind, data = typed
        self._reasons = {}
        try:
            found = self._of_kind(kind, data)
        except Uncarried as finding:
            self._note(*finding.reasons)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            self._note(f"it is damaged: {error}")
        if self._reasons:
            raise Uncarried(*self._reasons)
        return found

    def parts(self, typed: Part) -> dict[str, Part]:
        """Take a stored dict apart, its values still encoded. Raises Uncarried."""
        kind, data = typed
        if kind != "msgpack":
            return {str(key): ("ready", value) for key, value in self.value(typed).items()}
        try:
            held = msgspec.msgpack.decode(data, type=dict[str, msgspec.Raw])
        except msgspec.MsgspecError as error:
            msg = f"it is damaged: {error}"
            raise Uncarried(msg) from error
        return {key: ("msgpack", bytes(raw)) for key, raw in held.items()}

    def _of_kind(self, kind: str, data: Any) -> Any:
        if kind == "msgpack":
            return self._decode(data)
        if kind == "ready":
            return data
        if kind in {"null", "empty"}:
            return None
        if kind == "bytes":
            return bytes(data)
        if kind == "bytearray":
            return bytearray(data)
        if kind == "json":
            return json.loads(data, object_hook=self._object)
        if kind == "pickle":
            msg = "it is a pickle, which could run any code when it is read"
            raise Uncarried(msg)
        msg = "it is encrypted" if kind.endswith(ENCRYPTED) else f"it is stored as {kind!r}, which is not known here"
        raise Uncarried(msg)

    def _extension(self, code: int, data: memoryview) -> Any:
        try:
            before = self._findings
            inner = self._decode(data)
            if self._findings > before:
                # What is wrong inside is told, and it cannot be made without; but who else is unknown is news.
                return self._constructors.check(inner) if SINGLE <= code <= MODEL_2 else None
            if code == _SNAPSHOT:
                return inner
            if code == _ARRAY:
                return _array(*inner)
            return self._constructors.make(code, inner)
        except Uncarried as finding:
            self._note(*finding.reasons)
            return None

    def _object(self, held: dict[str, Any]) -> Any:
        """Rebuild what stands in JSON for an instance."""
        path = held.get("id")
        if held.get("lc") not in _ENVELOPES or held.get("type") != "constructor" or not isinstance(path, list):
            return held
        try:
            if held["lc"] == 1:
                return self._constructors.make_serialized(path, held.get("kwargs") or {})
            *module, name = path
            code, given = (POSITIONAL, held["args"]) if held.get("args") else (NAMED, held.get("kwargs") or {})
            return self._by_any_code(".".join(module), name, code, given)
        except Uncarried as finding:
            self._note(*finding.reasons)
            return None

    def _by_any_code(self, module: str, name: str, code: int, given: Any) -> Any:
        """Rebuild from JSON, which does not say of what kind the class is."""
        single = code == POSITIONAL and len(given) == 1
        for attempt, arguments in ((code, given), *(((0, given[0]),) if single else ()), (MODEL_2, given)):
            try:
                return self._constructors.make(attempt, [module, name, arguments])
            except Uncarried as finding:
                last = finding
        raise last

    def _note(self, *reasons: str) -> None:
        self._findings += 1
        self._reasons.update(dict.fromkeys(reasons))


def _array(kind: str, shape: list[int], order: Any, data: bytes) -> Any:
    try:
        import numpy as np  # noqa: PLC0415 - optional package
    except ModuleNotFoundError:
        msg = "a numpy array, and numpy is not installed"
        raise Uncarried(msg) from None
    try:
        return np.frombuffer(data, dtype=np.dtype(kind)).reshape(shape, order=order).copy(order="K")
    except (TypeError, ValueError) as error:
        msg = f"a numpy array that cannot be rebuilt: {error}"
        raise Uncarried(msg) from error
