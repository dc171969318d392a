"""A wire between the driver and the server that counts, breaks and falls silent."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio.from_thread import start_blocking_portal

if TYPE_CHECKING:
    from collections.abc import Iterator

SOCKET = ".s.PGSQL.5432"
READY = ord("Z")


class Wire:
    """Forwards connections to a server's socket; controlled from any thread."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._writers: set[asyncio.StreamWriter] = set()
        self._silent: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._refuses = False
        self._loses = 0
        self._delay = 0.0
        self.answers = 0
        """How often the server said that it was ready for the next question: round trips."""
        self.accepted = 0
        self.portal: Any = None
        self._ended = asyncio.Event()

    def sever(self) -> None:
        """Reset every connection."""
        self.portal.call(self._sever)

    def silence(self) -> None:
        """Forward nothing more on the connections there are, and leave them open."""
        self.portal.call(self._silence)

    def refuse(self, refuses: bool) -> None:
        """Hang up on whoever connects from now on, or no longer."""
        self._refuses = refuses

    def half_close(self) -> None:
        """Say to both ends of every connection that nothing more will come, and go on listening to them."""
        self.portal.call(self._half_close)

    def delay(self, seconds: float) -> None:
        """Hold up whatever is forwarded from now on for so long."""
        self._delay = seconds

    def lose(self, answers: int) -> None:
        """Reset the connection instead of forwarding an answer, for the next ones: what was asked for is done."""
        self._loses = answers

    async def _half_close(self) -> None:
        for writer in list(self._writers):
            if not writer.is_closing():
                with suppress(OSError):
                    writer.write_eof()

    async def _sever(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    async def _silence(self) -> None:
        self._silent |= self._writers

    async def settle(self) -> None:
        """End what still forwards."""
        self._ended.set()
        await asyncio.sleep(0)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.accepted += 1
        if self._refuses:
            writer.transport.abort()
            return
        try:
            there_reader, there = await asyncio.open_unix_connection(str(self._target))
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, there}
        try:
            with suppress(asyncio.CancelledError):  # by settle; asyncio's own callback would print it
                await asyncio.gather(self._forward(reader, there, counts=False), self._forward(there_reader, writer))
        finally:
            self._writers -= {writer, there}
            for end in (writer, there):
                end.close()

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, counts: bool = True
    ) -> None:
        pending = b""
        with suppress(ConnectionError, RuntimeError):  # RuntimeError: it was half closed
            while data := await reader.read(2**16):
                if counts:
                    before = self.answers
                    pending = self._count(pending + data)
                    if self._loses and self.answers > before:
                        self._loses -= 1
                        writer.transport.abort()
                        break
                if writer in self._silent:
                    await self._ended.wait()
                    break
                if self._delay:
                    await asyncio.sleep(self._delay)
                writer.write(data)
                await writer.drain()
        writer.close()

    def _count(self, data: bytes) -> bytes:
        """Count the messages that end an answer; return what is not a whole message yet."""
        while len(data) >= 5:
            length = 1 + int.from_bytes(data[1:5], "big")
            if len(data) < length:
                break
            self.answers += data[0] == READY
            data = data[length:]
        return data


@contextmanager
def wire(target: Path, name: str) -> Iterator[tuple[Wire, Path]]:
    """Yield a wire to a server's socket, and the wire's own socket, which has a name in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="wire") as folder, start_blocking_portal("asyncio") as portal:
        made = Wire(target)
        made.portal = portal
        path = Path(folder) / name

        async def listen() -> asyncio.AbstractServer:
            return await asyncio.start_unix_server(made.serve, str(path))

        listener = portal.call(listen)
        try:
            yield made, path
        finally:
            made.sever()
            portal.call(listener.close)
            portal.call(made.settle)
