"""What the crash tests share: the process that forks the ones to be killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.register_assert_rewrite(
    "tests.crash.examining", "tests.crash.killing", "tests.crash.launching", "tests.crash.stored", "tests.crash.zygote"
)

from persistence.sqlite import opening  # noqa: E402 - the rewriting is asked for first
from tests.crash.launching import Launcher  # noqa: E402 - likewise
from tests.crash.places import throwaway_folder  # noqa: E402 - likewise


@pytest.fixture(scope="session")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    """A running zygote, ended with the session."""
    with Launcher(tmp_path_factory.mktemp("zygote") / "stderr") as started:
        yield started


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder for databases."""
    with throwaway_folder() as path:
        yield path


@pytest.fixture(autouse=True)
def short_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not give every database that is examined a log of working size."""
    monkeypatch.setattr(opening, "GROWN_LOG", 0)
