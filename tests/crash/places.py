"""Where databases that are made to be thrown away lie."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def throwaway_folder() -> Iterator[Path]:
    """Yield a folder; in memory where there is such a place.

    A killed process takes its buffers with it and leaves the kernel's, so a disk would prove no more than memory does,
    and every kill writes and opens a database.
    """
    memory = Path("/dev/shm")  # noqa: S108 - a fresh folder is made in it
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        yield Path(name)
