"""Where threads are kept, described so that a child process can open it too."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from persistence.memory import InMemorySaver
from persistence.postgres import PostgresSaver
from persistence.sqlite import SqliteSaver
from persistence.writer.limits import DEFAULT_LIMITS, Limits
from tests.crash.places import throwaway_folder
from tests.persistence.postgres.server import Server, running

Around = Callable[[Any], Any]

Kind = Literal["memory", "sqlite", "postgres"]

KINDS: Final[tuple[Kind, ...]] = ("memory", "sqlite", "postgres")
SHARED: Final[tuple[Kind, ...]] = ("sqlite", "postgres")
"""What several processes can use."""


@dataclass(frozen=True)
class Place:
    """A database that is used by nobody else."""

    kind: Kind
    where: str = ""
    """A path or a URL."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of the saver, by name."""

    @asynccontextmanager
    async def opened(self, limits: Limits = DEFAULT_LIMITS, around: Around | None = None) -> AsyncIterator[Any]:
        """Yield an open saver; ``around`` puts something between it and its database."""
        if self.kind == "memory":
            yield InMemorySaver()
            return
        kind = SqliteSaver if self.kind == "sqlite" else PostgresSaver
        saver = kind(self.where, limits=limits, **self.settings)
        if around is not None:
            saver._backend = around(saver._backend)
        async with saver as opened:
            yield opened


class Places:
    """Makes places, and servers when they are first asked for."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        self._server: Server | None = None
        self._made = 0

    @property
    def server(self) -> Server:
        if self._server is None:
            self._server = self._stack.enter_context(running())
        return self._server

    def file(self, name: str) -> Path:
        """Return a path that nobody uses."""
        self._made += 1
        return self.folder / f"{self._made}.{name}"

    @contextmanager
    def place(self, kind: Kind, **settings: Any) -> Iterator[Place]:
        """Yield an empty place, gone afterwards."""
        if kind == "memory":
            yield Place(kind)
        elif kind == "postgres":
            with self.server.schema() as url:
                yield Place(kind, url, settings)
        else:
            path = self.file("sqlite")
            try:
                yield Place(kind, str(path), settings)
            finally:
                for file in self.folder.glob(f"{path.name}*"):
                    file.unlink()


@contextmanager
def places() -> Iterator[Places]:
    """Yield what makes places."""
    with throwaway_folder() as folder, ExitStack() as stack:
        yield Places(folder, stack)
