"""What units that show leases do to the stored ones, together as one by one; who their owners are."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from persistence.contracts.backend import Beat, Rows
from persistence.contracts.lease import Lease
from persistence.errors import LeaseLostError
from persistence.writer import owners
from persistence.writer.keeping import Holdings
from persistence.writer.leasing import Stored, moves, settled
from persistence.writer.owners import in_words, is_gone, new_owner

THREADS = ["t", "u"]


def unit(thread_id: str, lease: Lease | None, checkpoint_id: str | None = None) -> Rows:
    checkpoint = None if checkpoint_id is None else (thread_id, "", checkpoint_id, None, "", "", "")
    return Rows(thread_id, "", checkpoint, (), (), (), 0, None, lease)


def apply(batch: list[Rows], stored: dict[str, Stored], free: dict[str, bool]) -> None:
    for move in settled(moves(batch), stored, lambda _key: False):
        stored[move.thread_id] = (move.new_epoch, move.new_owner)
        free[move.thread_id] = not move.held


LEASES = st.builds(
    lambda epoch, owner, seen, fresh, ends: Lease(epoch, owner, "g", epoch - 1, seen if epoch > 1 else "", fresh, ends),
    st.integers(1, 4),
    st.sampled_from("abc"),
    st.sampled_from("abc"),
    st.booleans(),
    st.booleans(),
)


@example([("t", Lease(1, "a", "g", fresh=True, ends=True)), ("t", Lease(1, "a", "g"))])  # an end, and one that is late
@given(st.lists(st.tuples(st.sampled_from(THREADS), st.none() | LEASES), max_size=8))
def test_a_batch_of_units_does_what_they_do_one_by_one(shown: list[tuple[str, Lease | None]]) -> None:
    batch = [unit(thread_id, lease) for thread_id, lease in shown]
    one_by_one: tuple[dict[str, Stored], dict[str, bool]] = ({}, {})
    refused = False
    for each in batch:
        try:
            apply([each], *one_by_one)
        except LeaseLostError:
            refused = True
            break
    together: tuple[dict[str, Stored], dict[str, bool]] = ({}, {})
    if refused:
        with pytest.raises(LeaseLostError):
            apply(batch, *together)
        assert together == ({}, {})
    else:
        apply(batch, *together)
        assert together == one_by_one


def test_every_thread_that_was_lost_is_named() -> None:
    batch = [unit(thread_id, Lease(1, "me", "g")) for thread_id in ("t", "u", "v")]
    with pytest.raises(LeaseLostError, match="epoch 2, owner 'other'") as caught:
        apply(batch, {"t": (2, "other"), "u": (1, "me")}, {})
    assert caught.value.thread_ids == {"t", "v"}


def test_a_batch_that_was_stored_already_passes_though_another_has_the_thread_now() -> None:
    asked = moves([unit("t", Lease(1, "me", "g", 0, "", fresh=True), "1"), unit("t", Lease(1, "me", "g"))])
    assert settled(asked, {"t": (2, "other")}, lambda key: key == ("t", "", "1")) == []
    with pytest.raises(LeaseLostError):
        settled(asked, {"t": (2, "other")}, lambda _key: False)


def test_the_end_of_one_run_and_the_start_of_the_next_share_a_batch() -> None:
    batch = [
        unit("t", Lease(1, "me", "g", ends=True)),
        unit("t", Lease(2, "me", "h", 1, "me", fresh=True)),
        unit("t", Lease(2, "me", "h", 1, "me", fresh=True)),
    ]
    (move,) = settled(moves(batch), {"t": (1, "me")}, lambda _key: False)
    assert (move.new_epoch, move.graph, move.held, move.writes) == (2, "h", True, True)


def test_a_plain_unit_of_the_holder_changes_nothing() -> None:
    assert settled(moves([unit("t", Lease(3, "me", "g"))]), {"t": (3, "me")}, lambda _key: False) == []


def holding(*shown: tuple[int, bool]) -> Holdings:
    """Return what a saver holds after units with these (epoch, ends) were accepted."""
    holdings = Holdings(9)
    for epoch, ends in shown:
        holdings.accepted(unit("t", Lease(epoch, holdings.owner, "g", ends=ends)))
    holdings.beaten(0)
    return holdings


def test_a_beat_is_late_only_while_something_is_held() -> None:
    assert holding((1, False)).late(3)
    assert not holding((1, False)).late(2)
    assert not holding((1, False), (1, True)).late(3)


def test_what_an_earlier_run_could_not_let_go_of_is_not_taken_from_a_later_one() -> None:
    holdings = holding((1, False), (1, True))
    ending = unit("t", Lease(1, holdings.owner, "g", ends=True))
    holdings.failed(ending, lost=False)
    assert [kept.lease for kept in holdings.stuck.values()] == [ending.lease]
    holdings.accepted(unit("t", Lease(2, holdings.owner, "g")))
    holdings.accepted(ending)  # the keeper tries again, too late
    holdings.failed(ending, lost=True)
    assert holdings.late(3)


def test_no_two_owners_share_a_name() -> None:
    assert new_owner() != new_owner()


@pytest.mark.slow
def test_an_owner_is_gone_once_its_process_has_ended() -> None:
    program = "from persistence.writer.owners import new_owner; print(new_owner(), flush=True); input()"
    child: subprocess.Popen[Any] = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with child:
        assert child.stdout is not None
        owner = child.stdout.readline().strip()
        assert not is_gone(owner)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert is_gone(owner)  # though its parent has not asked yet how it ended
    assert is_gone(owner)


def test_an_owner_that_cannot_be_known_is_not_called_gone() -> None:
    boot, space, pid, started, token, *_ = new_owner().split("/")
    assert not is_gone(f"{boot}/{space}/{pid}/{started}/{token}")
    assert is_gone(f"{boot}/{space}/{pid}/1/{token}")
    assert not is_gone(f"another boot/{space}/{pid}/1/{token}")
    assert not is_gone(f"{boot}/7/{pid}/1/{token}")
    assert not is_gone(f"{boot}/{space}/{pid}/-/{token}")
    assert not is_gone(f"{boot}/{space}/one/{started}/{token}")
    assert is_gone(f"{boot}/{space}/{10**30}/{started}/{token}")
    assert not is_gone("somebody")
    assert is_gone(f"{boot}/{space}/{pid}/1/{token}/host/2026-01-02T03:04:05+00:00")
    assert not is_gone(f"{boot}/{space}/{pid}/1/{token}/of/some/later/version")


MACHINE = "boot/4026531836"


@pytest.mark.parametrize(
    ("owner", "told"),
    [
        (
            f"{MACHINE}/77/100/f00/web%2F1/2026-01-02T04:04:05+01:00",
            "process 77 on host 'web/1', whose saver was opened at 2026-01-02 03:04:05 UTC",
        ),
        (f"{MACHINE}/77/100/f00", "process 77"),  # as older versions called it
        (f"{MACHINE}/77/100/f00/%1B[31m/?", "process 77 on host '\\x1b[31m', whose saver was opened at '?'"),
        (
            f"{MACHINE}/5/100/f00/web/2026-01-02T03:04:05+00:00",
            "another saver of this process, which was opened at 2026-01-02 03:04:05 UTC",
        ),
        (f"{MACHINE}/5/100/f00", "another saver of this process"),
        ("-/-/5/-/f00/web/2026-01-02T03:04:05+00:00", "process 5 on host 'web', whose saver was opened at 2026-01-02"),
        ("somebody", "owner 'somebody'"),
        ("a/b/c/d/e", "owner 'a/b/c/d/e'"),
    ],
)
def test_an_owner_is_named_so_that_its_process_is_found(owner: str, told: str) -> None:
    assert in_words(owner, f"{MACHINE}/5/100/beef/web/2026-01-02T03:04:05+00:00").startswith(told)
    assert in_words(owner, "-/-/5/-/beef").startswith("process" if "/" in owner and "/c/" not in owner else "owner")


def test_an_owners_name_tells_its_own_process() -> None:
    told = in_words(new_owner())
    assert told.startswith(f"process {os.getpid()} on host {socket.gethostname()!r}, whose saver was opened at 20")


def test_a_process_that_may_not_be_looked_at_is_not_called_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some systems show each user only his own processes."""
    owner = new_owner()
    monkeypatch.setattr(owners, "_started", lambda _pid: None)
    assert not is_gone(owner)
    monkeypatch.setattr(os, "kill", refuse(PermissionError()))
    assert not is_gone(owner)
    monkeypatch.setattr(os, "kill", refuse(ProcessLookupError()))
    assert is_gone(owner)


def refuse(error: OSError) -> Any:
    def kill(_pid: int, _signal: int) -> None:
        raise error

    return kill


def test_what_is_held_in_the_end_is_let_go_of() -> None:
    holdings = Holdings(9)
    assert holdings.closing() == []  # the database has never heard of it
    holdings.accepted(unit("t", Lease(1, holdings.owner, "g", fresh=True)))
    holdings.accepted(unit("u", Lease(1, holdings.owner, "g", fresh=True)))
    holdings.accepted(unit("u", Lease(1, holdings.owner, "g", ends=True)))
    last, beat = holdings.closing()
    assert isinstance(last, Rows)
    assert (last.thread_id, last.lease) == ("t", Lease(1, holdings.owner, "g", ends=True))
    assert isinstance(beat, Beat)
    assert beat.seconds == 0
