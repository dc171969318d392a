"""The checker is checked: histories in which something went wrong, and what it says of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.torture.appending.judging import Found, Step, objections
from tests.torture.appending.operations import Kind, Operation


def done(kind: Kind, *items: int, at: int, until: int | None = None, base: str | None = None) -> Operation:
    """Return an operation that was acknowledged."""
    return Operation(kind, "t", items, base, at, at + 1 if until is None else until, "acknowledged")


def unknown(kind: Kind, *items: int, at: int, until: int | None = None) -> Operation:
    """Return an operation that nobody heard the end of, or that ended with nobody knowing what came of it."""
    return Operation(kind, "t", items, None, at, until)


def refused(kind: Kind, *items: int, at: int) -> Operation:
    return Operation(kind, "t", items, None, at, at + 1, "refused")


def chain(*lists: tuple[int, ...]) -> Found:
    """Return a thread whose checkpoints hold these lists, each the child of the one before."""
    return branches(*((str(at), str(at - 1) if at else None, items) for at, items in enumerate(lists)))


def branches(*steps: tuple[str, str | None, tuple[int, ...]]) -> Found:
    return Found({one: Step(one, parent, items) for one, parent, items in steps})


TWO = [done("invoke", 1, 2, at=0), done("invoke", 3, 4, at=10)]
FINE = chain((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4))


def test_a_sound_history_is_allowed() -> None:
    assert objections("t", TWO, FINE) == []


@pytest.mark.parametrize(
    ("found", "said"),
    [
        pytest.param(chain((), (1,), (1, 2)), "is not at the tip", id="lost"),
        pytest.param(chain((), (1,), (1, 2), (1, 2, 3)), "is not at the tip", id="lost in part"),
        pytest.param(Found(), "is not at the tip", id="all lost"),
        pytest.param(chain((), (1, 2), (1, 2, 2), (1, 2, 2, 3, 4)), "2 is there 2 times", id="doubled"),
        pytest.param(chain((), (1, 2), (1, 2, 3, 4), (1, 2, 3, 4, 3)), "3 is there 2 times", id="doubled later"),
        pytest.param(chain((), (2, 1), (2, 1, 3, 4)), "in this order, and it is another", id="reordered inside"),
        pytest.param(chain((), (3, 4), (3, 4, 1, 2)), "stands behind it", id="reordered"),
        pytest.param(chain((), (1, 2), (3, 4, 1, 2)), "its parent (1, 2)", id="rewritten"),
        pytest.param(chain((), (1, 2), (1, 2, 3, 4, 9)), "nobody appended it", id="invented"),
        pytest.param(branches(("0", None, ()), ("1", "0", (1, 2)), ("2", "0", (3, 4))), "forked at 0", id="forked"),
        pytest.param(branches(("1", None, (1, 2)), ("2", None, (1, 2, 3, 4))), "begins 2 times", id="begun twice"),
        pytest.param(branches(("1", "0", (1, 2)), ("2", "1", (1, 2, 3, 4))), "0 is gone", id="a hole"),
        pytest.param(
            branches(("0", "5", ()), ("5", None, (1, 2)), ("6", "5", (1, 2, 3, 4))), "sorted before", id="older child"
        ),
        pytest.param(Found(FINE.steps, ("3 cannot be read",)), "3 cannot be read", id="unreadable"),
    ],
)
def test_what_storage_may_not_do_is_objected_to(found: Found, said: str) -> None:
    assert any(said in each for each in objections("t", TWO, found)), objections("t", TWO, found)


def test_an_unknown_outcome_may_be_there_or_not_or_in_part_but_from_its_beginning() -> None:
    history = [done("invoke", 1, at=0), unknown("cancel", 2, 3, at=5), done("update", 4, at=20)]
    for between in ((), (2,), (2, 3)):
        assert objections("t", history, chain((), (1,), (1, *between), (1, *between, 4))) == []
    # Somebody may go on with it later.
    assert objections("t", history, chain((), (1,), (1, 2), (1, 2, 4), (1, 2, 4, 3))) == []
    assert any("there is [3] alone" in each for each in objections("t", history, chain((1,), (1, 3), (1, 3, 4))))


def test_what_was_refused_is_not_there() -> None:
    history = [done("invoke", 1, at=0), refused("update", 2, at=5)]
    assert objections("t", history, chain((), (1,))) == []
    assert any("nothing happened" in each for each in objections("t", history, chain((1,), (1, 2))))


def test_concurrent_operations_have_no_order() -> None:
    history = [done("invoke", 1, 2, at=0, until=30), done("update", 3, at=10)]
    for order in ((1, 2, 3), (3, 1, 2)):
        assert objections("t", history, chain((), order[:1], order[:2], order)) == []


FORK = done("fork", 5, at=20, base="1")
FORKED = branches(
    ("0", None, ()), ("1", "0", (1, 2)), ("2", "1", (1, 2, 3, 4)), ("3", "1", (1, 2)), ("4", "3", (1, 2, 5))
)


def test_a_fork_that_was_asked_for_may_leave_work_on_its_own_branch() -> None:
    assert objections("t", [*TWO, FORK], FORKED) == []
    # The same rows, if the fork was asked for elsewhere, or was over before what it would have left began.
    assert any("forked at 1" in each for each in objections("t", [*TWO, replace(FORK, base="0")], FORKED))
    early = replace(FORK, invoked=5, ended=6)
    assert any("is not at the tip" in each for each in objections("t", [*TWO, early], FORKED))


def test_a_fork_becomes_the_tip() -> None:
    older = branches(("0", None, ()), ("1", "0", (1, 2)), ("3", "1", (1, 2, 3, 4)), ("2", "1", (1, 2, 5)))
    assert any("(5,) was acknowledged, and is not at the tip" in each for each in objections("t", [*TWO, FORK], older))


def test_a_fork_loses_nothing() -> None:
    lost = branches(("0", None, ()), ("1", "0", (1, 2)), ("3", "1", (1, 2)), ("4", "3", (1, 2, 5)))
    assert any("is on no branch" in each for each in objections("t", [*TWO, FORK], lost))
    # Unless the branches that are not the newest were pruned.
    assert objections("t", [*TWO, FORK, done("prune", at=30)], lost) == []


def test_pruning_cuts_the_past_and_keeps_the_tip() -> None:
    history = [*TWO, done("prune", at=30)]
    assert objections("t", history, branches(("4", "3", (1, 2, 3, 4)))) == []
    assert any("is not at the tip" in each for each in objections("t", history, branches(("2", "1", (1, 2)))))
    assert any("is gone" in each for each in objections("t", TWO, branches(("4", "3", (1, 2, 3, 4)))))


def test_nothing_of_a_deleted_thread_comes_back() -> None:
    history = [*TWO, done("delete", at=30), done("invoke", 7, at=40)]
    assert objections("t", history, chain((), (7,))) == []
    assert any("is back" in each for each in objections("t", history, chain((), (1, 2), (1, 2, 7))))
    assert any("is not at the tip" in each for each in objections("t", history, Found()))
    # What was under way while it was deleted may be there or not.
    running = [done("invoke", 1, at=0, until=35), done("delete", at=30)]
    assert objections("t", running, Found()) == []
    assert objections("t", running, chain((), (1,))) == []
    # A delete that was not acknowledged may have happened.
    assert objections("t", [*TWO, unknown("delete", at=30)], Found()) == []
    assert objections("t", [*TWO, unknown("delete", at=30)], FINE) == []


def test_epochs_never_fall() -> None:
    def found(*epochs: int | None) -> Found:
        return Found({str(at): Step(str(at), str(at - 1) if at else None, (), each) for at, each in enumerate(epochs)})

    assert objections("t", [], found(1, 1, 2, None, 2)) == []
    assert any("falls from 2 to 1" in each for each in objections("t", [], found(1, 2, 1)))


def test_threads_are_judged_by_what_was_done_to_them() -> None:
    assert objections("other", TWO, Found()) == []
