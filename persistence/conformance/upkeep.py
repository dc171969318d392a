"""Checks of the methods that a saver may leave out: copying, pruning, deleting by run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from persistence.conformance.samples import config, everything, fill, put, values
from persistence.conformance.suite import Check, expect, expect_refusal

if TYPE_CHECKING:
    from persistence.contracts.saver import BaseCheckpointSaver as Saver


async def copying(saver: Saver, thread: str) -> None:
    """A copy is equal and independent."""
    copy = f"{thread}/copy"
    await fill(saver, thread)
    before = await everything(saver, thread)
    await saver.acopy_thread(thread, copy)
    expect(await everything(saver, copy), before, "the copy")
    await put(saver, copy, "9", {"a": [9]}, parent="3")
    await saver.aput_writes(config(copy, "3"), [("n", 9)], "another task")
    expect(await everything(saver, thread), before, "the original, once the copy went on")
    await saver.adelete_thread(thread)
    expect(await values(saver, copy, "2"), {"a": [1, 2], "n": 2}, "the copy, once the original is deleted")


async def copying_nothing(saver: Saver, thread: str) -> None:
    """Copying a thread that does not exist makes none."""
    await saver.acopy_thread(f"{thread}/unknown", f"{thread}/copy")
    expect(await everything(saver, f"{thread}/copy"), [], "the copy of nothing")


async def pruning_to_the_newest(saver: Saver, thread: str) -> None:
    """Pruning keeps the newest checkpoint of each namespace, whole and ready to go on."""
    other = f"{thread}/other"
    await fill(saver, thread)
    await fill(saver, other)
    before = await everything(saver, thread)
    untouched = await everything(saver, other)
    await saver.aprune([thread, f"{thread}/never existed"])
    kept = [one for one in before if one[1]["id"] in ("3", "4")]
    expect(await everything(saver, thread), kept, "the pruned thread")
    expect(await everything(saver, other), untouched, "the other thread")
    await put(saver, thread, "5", {"a": [5]}, parent="3")
    expect(await values(saver, thread), {"a": [5]}, "the thread that went on")


async def pruning_everything(saver: Saver, thread: str) -> None:
    """Pruning with ``delete`` leaves nothing; an unknown strategy is refused."""
    await fill(saver, thread)
    await expect_refusal(saver.aprune([thread], strategy="keep_some"), ValueError, "an unknown strategy")
    await saver.aprune([thread], strategy="delete")
    expect(await everything(saver, thread), [], "the pruned thread")


async def deleting_runs(saver: Saver, thread: str) -> None:
    """The checkpoints of a run go, with their writes; their children stay readable."""
    await fill(saver, thread)
    before = await everything(saver, thread)
    await saver.adelete_for_runs([f"{thread} first", "no such run"])
    kept = [one for one in before if one[1]["id"] in ("3", "4")]
    expect(await everything(saver, thread), kept, "what is left of the thread")


CHECKS: Final = (
    Check("copying", copying, "acopy_thread"),
    Check("copying nothing", copying_nothing, "acopy_thread"),
    Check("pruning to the newest", pruning_to_the_newest, "aprune"),
    Check("pruning everything", pruning_everything, "aprune"),
    Check("deleting runs", deleting_runs, "adelete_for_runs"),
)
