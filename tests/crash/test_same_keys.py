"""A task has one idempotency key, whatever process executes it, and no other task has it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.keys import COPY, TASKS, THREADS, run
from tests.crash.ledger import Account
from tests.crash.zygote import Zygote
from tests.torture.seeded import LOOPS


@pytest.fixture(scope="module")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """What forks the processes."""
    with Zygote(tmp_path_factory.mktemp("zygote") / "errors", ["tests.crash.keys"]) as started:
        yield started


@pytest.mark.slow
@pytest.mark.parametrize("loop", LOOPS)
def test_a_task_has_the_same_key_before_and_after_a_crash(zygote: Zygote, folder: Path, loop: str) -> None:
    """Both processes have loops of their own; the second one has another than the first."""
    where, before, after = (str(folder / name) for name in ("threads.sqlite", "before", "after"))
    other = LOOPS[1 - LOOPS.index(loop)]
    assert zygote.start(run, where=where, ledger=before, loop=loop, dies=True).was_killed()
    zygote.start(run, where=where, ledger=after, loop=other, dies=False).succeed()
    first = {line[:2]: line[2] for line in Account.of(Path(before)).lines}
    assert first.keys() == {(name, what.replace(" ", "_")) for name in THREADS for what in TASKS}
    assert len(set(first.values())) == len(first)
    lines = Account.of(Path(after)).lines
    second = {line[:2]: line[2] for line in lines}
    assert len(lines) == len(second) == len(set(second.values())) == len(TASKS) * len((*THREADS, COPY))
    assert second.items() >= first.items()
