"""Where threads are kept, described so that a child process can open it too."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import anyio

from persistence.memory import InMemorySaver
from persistence.postgres import PostgresSaver
from persistence.sqlite import SqliteSaver
from persistence.writer.limits import DEFAULT_LIMITS, Limits
from tests.crash.places import throwaway_folder
from tests.persistence.postgres.server import Server, running
from tests.torture.appending import epochs
from tests.torture.appending.epochs import Epochs, Noting

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
    notes: str = ""
    """A file in which whoever writes here notes the epochs of what it writes."""

    @asynccontextmanager
    async def opened(self, limits: Limits = DEFAULT_LIMITS, around: Around | None = None) -> AsyncIterator[Any]:
        """Yield an open saver; ``around`` puts something between it and its database."""
        if self.kind == "memory":
            yield InMemorySaver()
            return
        kind = SqliteSaver if self.kind == "sqlite" else PostgresSaver
        saver = kind(self.where, limits=limits, **self.settings)
        if self.notes:
            saver._backend = Noting(saver._backend, Path(self.notes))
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
    def watched(self, kind: Kind, **settings: Any) -> Iterator[Place]:
        """Yield an empty place where writers and the database note epochs; with tables already, unlike others."""
        with self.place(kind, **settings) as place:
            if kind == "memory":
                yield place
                return
            anyio.run(_open, place)
            if kind == "sqlite":
                epochs.watch_file(place.where)
            else:
                epochs.watch_server(partial(self.server.rows, url=place.where))
            yield replace(place, notes=str(self.file("epochs")))

    def epochs(self, place: Place) -> Epochs:
        """Return what was noted at a watched place."""
        if not place.notes:
            return epochs.NONE
        if place.kind == "sqlite":
            return epochs.told(Path(place.notes), epochs.read_file(place.where))
        return epochs.told(Path(place.notes), epochs.read_server(partial(self.server.rows, url=place.where)))


async def _open(place: Place) -> None:
    async with place.opened():
        pass


@contextmanager
def places() -> Iterator[Places]:
    """Yield what makes places."""
    with throwaway_folder() as folder, ExitStack() as stack:
        yield Places(folder, stack)
