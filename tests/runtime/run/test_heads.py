"""What a run's checkpoints rest on, where they follow none."""

from __future__ import annotations

from runtime.run.heads import Heads


def test_what_was_stored_is_expected_to_stay() -> None:
    heads = Heads()
    heads.found("", "")
    assert heads.get("") == ""
    heads.sent("", "2")
    heads.sent("", "1")  # a fork, of a clock that is behind
    assert heads.get("") == "2"
    for found in ("", "2", "3"):
        heads.found("", found)
        assert heads.get("") == "2"


def test_what_could_not_be_stored_is_looked_for() -> None:
    heads = Heads()
    heads.sent("n", "1")
    heads.failed("n")
    heads.found("n", "")
    assert heads.get("n") == ""
    heads.sent("n", "2")
    heads.found("n", "1")
    assert heads.get("n") == "2"


def test_only_what_the_runs_store_first_in_a_namespace_needs_another() -> None:
    heads = Heads()
    assert heads.anchor("") is None
    assert heads.anchor("n") is None  # the root stores elsewhere, or nothing
    heads.found("", "")
    heads.found("n", "")
    assert heads.anchor("") is None
    assert heads.anchor("n") == ("", "")
    heads.sent("n", "1")
    assert heads.anchor("n") is None
    assert heads.anchor("") == heads.anchor("m") == ("n", "1")
    heads.sent("", "2")
    assert heads.anchor("") is None
    assert heads.anchor("m") == ("", "2")


def test_what_was_found_is_not_the_runs_own() -> None:
    """It may be of who has begun the thread anew."""
    heads = Heads()
    heads.found("", "")
    heads.found("n", "2")
    assert heads.anchor("n") == heads.anchor("m") == ("", "")
    heads.sent("n", "3")
    assert heads.anchor("m") == ("n", "3")
    heads = Heads()
    heads.found("", "1")
    heads.found("n", "2")
    assert heads.anchor("n") == heads.anchor("m") == ("", "1")
