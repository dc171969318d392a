"""How the demo is told on a terminal."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from runtime.cli import demo_cost
from runtime.cli.showing import ID_WIDTH, Column

if TYPE_CHECKING:
    from runtime.cli.showing import Screen


def view(document: dict[str, Any], screen: Screen) -> None:
    """Tell the whole story; the summary comes last, where the eye is."""
    screen.title("A run is killed half way, and another process goes on")
    screen.say("START -> change_topic -> poem and joke, side by side -> output -> END")
    screen.say("SIGKILL hits the process inside joke, after poem has finished.")
    for mode in document["modes"]:
        _tell_mode(mode, screen)
    _tell_history(document, screen)
    if document["fork"] is None:
        screen.say("Saved only once, at the end: there is no earlier point to fork from.")
    else:
        _tell_fork(document["fork"], screen)
    _tell_summary(document, screen)


def _tell_mode(mode: dict[str, Any], screen: Screen) -> None:
    screen.title(f"durability={mode['mode']}")
    how = "resumed with None as input" if mode["resumed"] else "found nothing to resume (EmptyInputError), started over"
    screen.pairs(
        [
            ("finished at the kill", _names(mode["finished_before_kill"])),
            ("acknowledged by then", _names(mode["acknowledged_before_kill"])),
            ("kept in the file", _names(mode["kept"])),
            ("second process", how),
            ("ran again", _names(mode["ran_again"])),
        ]
    )


def _tell_history(document: dict[str, Any], screen: Screen) -> None:
    screen.title(f"The history of {document['travelled']}: every line is a point to go back to")
    columns = [
        Column("Step", number=True),
        Column("Source"),
        Column("Checkpoint", width=ID_WIDTH, style="cyan"),
        Column("Has"),
        Column("Next"),
    ]
    rows = [
        [row["step"], row["source"], row["checkpoint_id"], ", ".join(row["values"]), ", ".join(row["next"]) or "(done)"]
        for row in document["history"]
    ]
    screen.table(columns, rows)


def _tell_fork(fork: dict[str, Any], screen: Screen) -> None:
    screen.title(f"A fork at step {fork['step']}: the topic becomes {fork['update']['topic']!r}")
    screen.pairs([("old branch", fork["old_output"]), ("", ""), ("new branch", fork["output"])])


def _tell_summary(document: dict[str, Any], screen: Screen) -> None:
    screen.title("Summary")
    columns = [
        Column("Mode", whole=True, style="bold"),
        Column("Kept after SIGKILL"),
        Column("Ran again"),
        Column("Cost per step", number=True),
        Column("Promise"),
    ]
    rows = [
        [
            mode["mode"],
            _names(mode["kept"]),
            _names(mode["ran_again"]),
            f"{mode['cost_per_step_us']:,.0f} us",
            mode["promise"] if mode["promise_held"] else f"BROKEN: {mode['promise']}",
        ]
        for mode in document["modes"]
    ]
    screen.table(columns, rows)
    screen.say(
        f"Cost: median of {demo_cost.ROUNDS} uninterrupted runs of {demo_cost.STEPS} nodes in a row that do nothing, "
        f"in {document['measured_in']}; {document['cost_without_saver_us']:,.0f} us of it without any saver. "
        "The disk of the machine decides: measure where you run.",
        "dim",
    )
    screen.say(
        "A killed process is not a lost power supply: SqliteSaver also survives that (synchronous=FULL, its default).",
        "dim",
    )
    if document["db"] is not None:
        screen.command("Look around", shlex.join(["actorgraph", "threads", "--db", document["db"]]))
    for fault in document["contradictions"]:
        screen.say(f"Contradicts the promise: {fault}", "bold red")
    if not document["contradictions"]:
        screen.say(f"Every mode kept its promise. {document['seconds']} s.", "green")


def _names(nodes: list[str]) -> str:
    return ", ".join(nodes) or "nothing"
