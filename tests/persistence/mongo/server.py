"""A MongoDB server for the tests: an emulator from a wheel, or one's own.

The emulator (SecantusDB) speaks the wire protocol, in a process of its own, over MongoDB's storage engine: documents,
indexes, unique keys, transactions and their conflicts are real there. What it cannot show: a replica set of several
members (elections, majorities, rolled back writes), the query planner's choices, the speed, and what survives the loss
of power.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pymongo import MongoClient

if TYPE_CHECKING:
    from collections.abc import Iterator

OWN_URL = "ACTORGRAPH_TEST_MONGODB_URL"
"""The environment variable that names a server to use instead of starting one; collections of the tests are dropped."""


class MongoServer:
    """A running server; each test has collections with a prefix of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._numbers = itertools.count()
        self.client: Any = MongoClient(url, serverSelectionTimeoutMS=10_000)
        self.database = self.client.get_default_database("actorgraph_test")
        self.settings: dict[str, Any] = {"database": self.database.name}

    @contextmanager
    def prefix(self) -> Iterator[str]:
        """Yield a prefix that no collection has, and none has afterwards."""
        name = f"test_{os.getpid()}_{next(self._numbers)}"
        try:
            yield name
        finally:
            for collection in self.collections(name):
                self.database.drop_collection(collection)

    def collections(self, prefix: str) -> list[str]:
        """Return the collections with a prefix."""
        return [name for name in self.database.list_collection_names() if name.startswith(f"{prefix}_")]

    def kinds(self, prefix: str, name: str = "threads") -> dict[str, int]:
        """Return how many documents there are of each kind."""
        found = self.database[f"{prefix}_{name}"].aggregate([{"$group": {"_id": "$kind", "count": {"$sum": 1}}}])
        return {each["_id"]: each["count"] for each in found if each["_id"] is not None}


class StartedMongo(MongoServer):
    """The emulator, which may be killed and started again."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._folder = folder
        self._words = words
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self.start()
        super().__init__(f"mongodb://127.0.0.1:{self._port}/actorgraph_test")

    def start(self) -> None:
        """Start it, with the data and port that it had, and wait until it listens."""
        log = self._folder / "log"
        log.write_bytes(b"")
        words = ["--port", str(self._port), "--storage-path", str(self._folder / "data"), *self._words]
        with log.open("ab") as file:
            self._process = subprocess.Popen([sys.executable, "-m", "secantus", *words], stdout=file, stderr=file)
        while (told := re.search(r"listening on \S+:(\d+)", log.read_text())) is None:
            if self._process.poll() is not None:
                raise RuntimeError(log.read_text())
            time.sleep(0.01)
        self._port = int(told[1])

    def kill(self) -> None:
        """End it without a word."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def serving_mongo(*words: str) -> Iterator[MongoServer]:
    """Yield the server that the environment names, or a new one."""
    own = os.environ.get(OWN_URL)
    if own:
        server = MongoServer(own)
        try:
            yield server
        finally:
            server.client.close()
        return
    with tempfile.TemporaryDirectory(prefix="mongo") as folder:
        started = StartedMongo(Path(folder), *words)
        try:
            yield started
        finally:
            started.client.close()
            started.kill()
