"""``actorgraph demo``: what durability means, shown in a few seconds.

Nothing is staged: the runs are killed for real, what is shown is read from the file and the ledger, what is said to
cost is measured here, and a mode that does not keep its promise makes the command fail.
"""

from __future__ import annotations

import secrets
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from persistence.sqlite import SqliteSaver
from runtime.cli import demo_cost
from runtime.cli.demo_graph import GIVEN
from runtime.cli.demo_kill import PROMISES, Story, contradictions, tell_story
from runtime.cli.demo_travel import travel
from runtime.cli.demo_view import view
from runtime.cli.files import folder_of
from runtime.types.policy import DURABILITIES

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from runtime.cli.showing import Bar, Screen
    from runtime.types.policy import Durability


def demo(args: argparse.Namespace, screen: Screen) -> int:
    """Tell the story in every mode, measure, travel, and judge."""
    begun = time.monotonic()
    modes: Sequence[Durability] = DURABILITIES if args.mode is None else (args.mode,)
    with ExitStack() as stack:
        # Beside the file, so that what is measured is the disk that the file is on.
        near = None if args.db is None else folder_of(args.db)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="actorgraph-demo-", dir=near)))
        db = str(folder / "demo.db") if args.db is None else args.db
        bar = stack.enter_context(screen.progress("Starting", len(modes) + demo_cost.ROUNDS + 2))
        document = _play(modes, db, folder, bar)
        document["db"] = args.db
        document["measured_in"] = near or tempfile.gettempdir()
    document["seconds"] = round(time.monotonic() - begun, 1)
    if args.json:
        screen.document(document)
    else:
        view(document, screen)
    return 1 if document["contradictions"] else 0


def _play(modes: Sequence[Durability], db: str, folder: Path, bar: Bar) -> dict[str, Any]:
    # Once by itself: creates the tables, and tells at once if the file cannot be used.
    SqliteSaver(db).setup()
    tag = secrets.token_hex(2)
    stories: list[Story] = []
    for mode in modes:
        bar.now(f"Killing and resuming a run in mode {mode}")
        stories.append(tell_story(mode, db, f"demo-{mode}-{tag}", folder / f"ledger-{mode}"))
        bar.step()
    bar.now("Travelling through history")
    chosen = stories[-1]
    history, fork = anyio.run(travel, db, chosen.thread)
    bar.step("Measuring the cost of a step")
    costs = anyio.run(demo_cost.measure, folder, modes, bar.step)
    found = [fault for story in stories for fault in contradictions(story)]
    if fork is None and chosen.mode != "exit":
        found.append(f"{chosen.mode}: the history has no point to fork from")
    if fork is not None and not fork["old_branch_unchanged"]:
        found.append(f"{chosen.mode}: the fork changed the branch it was made from")
    return {
        "input": GIVEN,
        "modes": [_mode_document(story, costs) for story in stories],
        "cost_without_saver_us": round(costs["none"], 1),
        "travelled": chosen.thread,
        "history": history,
        "fork": fork,
        "contradictions": found,
    }


def _mode_document(story: Story, costs: dict[str, float]) -> dict[str, Any]:
    return {
        "mode": story.mode,
        "thread": story.thread,
        "promise": PROMISES[story.mode],
        "finished_before_kill": story.finished,
        "acknowledged_before_kill": story.acknowledged,
        "kept": story.kept,
        "resumed": story.resumed,
        "ran_again": story.ran_again,
        "cost_per_step_us": round(costs[story.mode], 1),
        "promise_held": not contradictions(story),
    }
