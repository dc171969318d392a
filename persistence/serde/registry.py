"""Which classes may be rebuilt from stored bytes.

Stored bytes name classes. Whoever can write to the database can write any name, so a name is only ever looked up here,
among the classes that the program registered; it is never imported.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

_SCRIPT: Final = "__main__"


def _script_module() -> str | None:
    """Return the name under which others import the running script."""
    script = sys.modules.get(_SCRIPT)
    spec, file = getattr(script, "__spec__", None), getattr(script, "__file__", None)
    return spec.name if spec is not None else None if file is None else Path(file).stem


def _own_name(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


class Registry:
    """The allow-list: types that may be rebuilt from stored bytes, by stored name.

    Registering adds; it never takes away what others registered.
    """

    def __init__(self) -> None:
        """Start empty."""
        self.changes: int = 0
        """Grows with every change, so that what was derived from the registry can be kept until then."""
        self._by_name: dict[str, type] = {}
        self._by_type: dict[type, str] = {}

    def register(self, *types: type, name: str | None = None) -> None:
        """Allow these types; ``name`` gives a single one a stored name other than ``module:qualname``.

        Registering again changes nothing. A type with a ``name`` stays readable under ``module:qualname`` and under
        earlier names, so a class can be moved or renamed. A class that was defined again (a notebook cell run twice)
        takes the place of its older definition.

        Raises:
            TypeError: not a class.
            ValueError: the name already belongs to another class.
        """
        if name is not None and len(types) != 1:
            msg = f"A stored name belongs to one type; register(name={name!r}) got {len(types)}."
            raise ValueError(msg)
        for cls in types:
            if not isinstance(cls, type):
                msg = f"Only classes can be registered, not {cls!r}."
                raise TypeError(msg)
            self._add(cls, name)

    def lookup(self, stored_name: str) -> type | None:
        """Return the type that values of this stored name are rebuilt as; None if there is none.

        A class of a script is stored as ``__main__:Name``, and under the script's module where that is imported. Each
        is found under the other name, if no other registered class could be meant.
        """
        found = self._by_name.get(stored_name)
        return self._of_script(stored_name) if found is None else found

    def name_of(self, cls: type) -> str | None:
        """Return the name under which values of the type are stored; None if it is not registered."""
        return self._by_type.get(cls)

    def knows(self, cls: type) -> bool:
        """Whether the type is registered."""
        return cls in self._by_type

    def copy(self) -> Registry:
        """Return an independent registry with the same entries."""
        twin = Registry()
        twin.changes = self.changes
        twin._by_name = dict(self._by_name)
        twin._by_type = dict(self._by_type)
        return twin

    def __repr__(self) -> str:
        """Say how many types are registered."""
        return f"<Registry of {len(self._by_type)} types>"

    def _of_script(self, stored_name: str) -> type | None:
        module, _, qualname = stored_name.partition(":")
        if module == _SCRIPT:
            meant = {cls for name, cls in self._by_name.items() if name.partition(":")[2] == qualname}
            return meant.pop() if len(meant) == 1 else None
        return self._by_name.get(f"{_SCRIPT}:{qualname}") if module == _script_module() else None

    def _add(self, cls: type, name: str | None) -> None:
        if name is None and cls in self._by_type:
            return
        own = _own_name(cls)
        self._refuse_clash(own if name is None else name, cls)
        older = self._by_name.get(own)
        if older is not None and older is not cls and _own_name(older) == own:
            self._replace(older, cls)
        if name is None:
            self._by_name[own] = cls
            self._by_type.setdefault(cls, own)
        else:
            self._by_name[name] = cls
            self._by_name.setdefault(own, cls)
            self._by_type[cls] = name
        self.changes += 1

    def _refuse_clash(self, name: str, cls: type) -> None:
        holder = self._by_name.get(name)
        if holder is not None and holder is not cls and _own_name(holder) != _own_name(cls):
            msg = (
                f"The stored name {name!r} already belongs to {holder.__module__}.{holder.__qualname__}; "
                f"register {cls.__module__}.{cls.__qualname__} under another name."
            )
            raise ValueError(msg)

    def _replace(self, older: type, newer: type) -> None:
        """Let the newer definition of a class take over all names of the older one."""
        for name, cls in list(self._by_name.items()):
            if cls is older:
                self._by_name[name] = newer
        written = self._by_type.pop(older, None)
        if written is not None:
            self._by_type[newer] = written


SHARED = Registry()
"""What every serializer of the process consults after its own registry."""


def register_types(*types: type) -> None:
    """Allow values of these types to be stored and rebuilt by every serializer of the process.

    Types found in a graph's schemas are registered without this.

    Raises:
        TypeError: not a class.
        ValueError: a name already belongs to another class.
    """
    SHARED.register(*types)
