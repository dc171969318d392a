"""A pooler that hands out server connections per transaction, as PgBouncer and its like do, and is unkind about it.

A client gets a server connection with its first message and keeps it until the server says that no transaction is open
and nothing is left to answer. The next transaction goes to another connection whenever there is one, so whoever relies
on anything of a session (a prepared statement, a setting, a lock, a temporary table) fails here at once.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import deque
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from anyio.from_thread import start_blocking_portal

from tests.persistence.postgres.proxy import READY, SOCKET

if TYPE_CHECKING:
    from collections.abc import Iterator

SSL, CANCEL = 80877103, 80877102
"""Requests that come in place of a protocol's version."""
ASKING: Final = frozenset(b"QSF")
"""Client messages that the server answers with ReadyForQuery: Query, Sync, function call."""
TERMINATE: Final = ord("X")
FAULT: Final = ord("E")
BETWEEN: Final = b"I"
"""The state of a session in which no transaction is open."""
MOST: Final = 6
"""Server connections for one kind of client."""

Message = tuple[int, bytes]
"""What kind it is, and all of it."""


class Server:
    """A connection to the server, lent to one client at a time."""

    def __init__(self, pool: Pool, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.pool = pool
        self.reader = reader
        self.writer = writer
        self.client: Client | None = None
        self.greeting = b""

    async def start(self, startup: bytes) -> None:
        """Log in, as the client did."""
        self.writer.write(startup)
        kind = 0
        while kind != READY:
            kind, message = await _message(self.reader)
            self.greeting += message
            if kind == FAULT:
                raise ConnectionRefusedError(message)

    async def answer(self) -> None:
        """Hand every message to whoever has this connection; take it back when a transaction is over."""
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                kind, message = await _message(self.reader)
                client = self.client
                if client is None:
                    continue  # a notice to nobody
                client.writer.write(message)
                client.owed -= kind == READY
                if kind == READY and not client.owed and message[5:] == BETWEEN:
                    self.client = client.server = None
                    self.pool.take_back(self)
        if self.client is not None:
            self.client.writer.transport.abort()
        self.pool.forget(self)


class Client:
    """A connection that a client made."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.server: Server | None = None
        self.owed = 0
        """Answers that the server has not given yet."""
        self.last: Server | None = None
        self.moves = 0

    async def ask(self, pool: Pool) -> None:
        """Pass on what the client says, until it says goodbye."""
        self.writer.write((await pool.greeter()).greeting)
        while True:
            kind, message = await _message(self.reader)
            if kind == TERMINATE:
                return
            if self.server is None:
                server = await pool.lend(self.last)
                self.moves += server is not self.last is not None
                self.server = self.last = server
                server.client = self
            self.owed += kind in ASKING
            self.server.writer.write(message)

    def leave(self) -> None:
        """Close a connection that is left in the middle of something."""
        if self.server is not None:
            self.server.client = None
            self.server.writer.close()
        self.writer.close()


class Pool:
    """The server connections for clients that start alike; the one that waited longest is lent first."""

    def __init__(self, target: Path, startup: bytes, tasks: set[asyncio.Task[Any]]) -> None:
        self._target = target
        self._startup = startup
        self._tasks = tasks
        self._all: list[Server] = []
        self._making = 0
        self._idle: deque[Server] = deque()
        self._returned = asyncio.Event()

    async def greeter(self) -> Server:
        """Return a connection that has logged in."""
        return self._all[0] if self._all else await self._made(idle=True)

    async def lend(self, last: Server | None) -> Server:
        """Return a connection, another than the last one."""
        while True:
            other = next((server for server in self._idle if server is not last), None)
            if other is not None:
                self._idle.remove(other)
                return other
            if len(self._all) + self._making < MOST:
                return await self._made(idle=False)
            self._returned.clear()
            await self._returned.wait()

    def take_back(self, server: Server) -> None:
        """Have a connection to lend again."""
        self._idle.append(server)
        self._returned.set()

    def forget(self, server: Server) -> None:
        """Lend a connection no more."""
        server.writer.close()
        self._all.remove(server)
        if server in self._idle:
            self._idle.remove(server)
        self._returned.set()

    def close(self) -> None:
        """Close every connection."""
        for server in self._all:
            server.writer.close()

    async def _made(self, *, idle: bool) -> Server:
        self._making += 1
        try:
            server = Server(self, *await asyncio.open_unix_connection(str(self._target)))
            await server.start(self._startup)
        finally:
            self._making -= 1
        self._all.append(server)
        if idle:
            self.take_back(server)
        task = asyncio.create_task(server.answer())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return server


class Pooler:
    """Stands between clients and a server."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._pools: dict[bytes, Pool] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self.moves = 0
        """How often a client's next transaction went to another server connection."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        client = Client(reader, writer)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            startup = await _startup(reader, writer)
            if startup is not None:
                if startup not in self._pools:
                    self._pools[startup] = Pool(self._target, startup, self._tasks)
                try:
                    await client.ask(self._pools[startup])
                finally:
                    self.moves += client.moves
        client.leave()

    async def settle(self) -> None:
        """End what goes on."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for pool in self._pools.values():
            pool.close()


async def _startup(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes | None:
    """Return a client's first message, None if it wants something to be cancelled."""
    while True:
        length = await reader.readexactly(4)
        rest = await reader.readexactly(int.from_bytes(length, "big") - 4)
        version = int.from_bytes(rest[:4], "big")
        if version == SSL:
            writer.write(b"N")
        elif version == CANCEL:
            return None
        else:
            return length + rest


async def _message(reader: asyncio.StreamReader) -> Message:
    head = await reader.readexactly(5)
    return head[0], head + await reader.readexactly(int.from_bytes(head[1:], "big") - 4)


@contextmanager
def pooling(target: Path) -> Iterator[tuple[Pooler, Path]]:
    """Yield a pooler before the server whose socket is in a folder, and the folder of its own socket."""
    with tempfile.TemporaryDirectory(prefix="pooler") as folder, start_blocking_portal("asyncio") as portal:
        pooler = Pooler(target / SOCKET)

        async def listen() -> asyncio.AbstractServer:
            return await asyncio.start_unix_server(pooler.serve, str(Path(folder) / SOCKET))

        listener = portal.call(listen)
        try:
            yield pooler, Path(folder)
        finally:
            portal.call(listener.close)
            portal.call(pooler.settle)
