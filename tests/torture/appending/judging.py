"""The model: what may be found in storage after a history, and what may not; pure.

An acknowledged operation is there. One whose outcome nobody knows may be there, or a beginning of it, now or after
somebody went on with it. One that was refused is not. A fork may leave any later work on a branch that is not the
newest; pruning may then drop that branch; deleting drops everything that was there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tests.torture.appending.operations import Operation


@dataclass(frozen=True)
class Step:
    """A stored checkpoint."""

    id: str
    parent: str | None
    items: tuple[int, ...]
    epoch: int | None = None
    """Of the writer that stored it, where writers have one."""


@dataclass(frozen=True)
class Found:
    """What is stored of one thread."""

    steps: Mapping[str, Step] = field(default_factory=dict)
    troubles: tuple[str, ...] = ()
    """What could not be read, or stands where nothing can use it."""

    @property
    def tip(self) -> Step | None:
        return self.steps[max(self.steps)] if self.steps else None


def objections(thread: str, history: Sequence[Operation], found: Found) -> list[str]:
    """Return everything about a thread that its history does not allow; empty if all is well."""
    done = [each for each in history if each.thread == thread and not each.refused]
    refused = [each for each in history if each.thread == thread and each.refused]
    said = [
        *found.troubles,
        *_shape(done, found),
        *_growth(found),
        *_lists(done, refused, found),
        *_kept(done, found),
        *_gone(done, found),
    ]
    return [f"thread {thread}: {each}" for each in dict.fromkeys(said)]


def _shape(done: Sequence[Operation], found: Found) -> Iterator[str]:
    """One child per parent, unless somebody asked for another; nothing hangs in the air."""
    pruned = any(each.kind == "prune" for each in done)
    forks = Counter(each.base for each in done if each.kind == "fork")
    children: Counter[str | None] = Counter(step.parent for step in found.steps.values())
    for parent, count in children.items():
        if parent is None:
            if count > 1:
                yield f"it begins {count} times"
        elif parent not in found.steps and not pruned:
            yield f"checkpoint {parent} is gone, and {count} rest on it"
        elif count > 1 + forks[parent]:
            yield f"it forked at {parent}: {count} children, {forks[parent]} forks asked for"


def _growth(found: Found) -> Iterator[str]:
    """A checkpoint is newer than its parent, begins with all that its parent had, and has no older epoch."""
    for step in found.steps.values():
        parent = None if step.parent is None else found.steps.get(step.parent)
        if parent is None:
            continue
        if step.id <= parent.id:
            yield f"checkpoint {step.id} is sorted before its parent {parent.id}"
        if step.items[: len(parent.items)] != parent.items:
            yield f"checkpoint {step.id} has {step.items}, its parent {parent.items}"
        if step.epoch is not None and parent.epoch is not None and step.epoch < parent.epoch:
            yield f"the epoch falls from {parent.epoch} to {step.epoch} at {step.id}"


def _lists(done: Sequence[Operation], refused: Sequence[Operation], found: Found) -> Iterator[str]:
    """No number twice, none that nobody appended, and each in its place."""
    known = {item: each for each in done for item in each.items}
    never = {item for each in refused for item in each.items}
    for items in {step.items for step in found.steps.values()}:
        for item, count in Counter(items).items():
            if count > 1:
                yield f"{item} is there {count} times: {items}"
            if item in never:
                yield f"{item} is there, and its caller was told that nothing happened: {items}"
            elif item not in known:
                yield f"{item} is there, and nobody appended it"
        yield from _order(items, known)


def _order(items: Sequence[int], known: Mapping[int, Operation]) -> Iterator[str]:
    place = {item: at for at, item in enumerate(items)}
    present = list({id(known[item]): known[item] for item in items if item in known}.values())
    for each in present:
        there = [item for item in each.items if item in place]
        if there != list(each.items[: len(there)]):
            yield f"{each.kind} appended {each.items}, and there is {there} alone: {items}"
        if any(place[one] > place[other] for one, other in pairwise(there)):
            yield f"{each.kind} appended {each.items} in this order, and it is another: {items}"
    for one in present:
        for other in present:
            # Who was told that all is done before the other began, stands before it.
            if one.acknowledged and one.over_before(other.invoked):
                last = max(place[item] for item in one.items if item in place)
                first = min(place[item] for item in other.items if item in place)
                if last > first:
                    yield f"{one.items} was acknowledged before {other.items} began, and stands behind it: {items}"


def _kept(done: Sequence[Operation], found: Found) -> Iterator[str]:
    """What was acknowledged is there, at the tip if no fork can have left it."""
    for each in done:
        if not (each.acknowledged and each.items):
            continue
        since = [other.kind for other in done if not other.over_before(each.invoked) and other is not each]
        if "delete" in since:
            continue
        forked = "fork" in since
        if forked and "prune" in since:
            continue
        wanted = set(each.items)
        if forked:
            if not any(wanted <= set(step.items) for step in found.steps.values()):
                yield f"{each.kind} of {each.items} was acknowledged, and is on no branch"
        elif found.tip is None or not wanted <= set(found.tip.items):
            there = () if found.tip is None else found.tip.items
            yield f"{each.kind} of {each.items} was acknowledged, and is not at the tip: {there}"


def _gone(done: Sequence[Operation], found: Found) -> Iterator[str]:
    """Nothing that was over when the thread was deleted comes back."""
    stored = {item for step in found.steps.values() for item in step.items}
    for delete in done:
        if delete.kind != "delete" or not delete.acknowledged:
            continue
        for each in done:
            if each.over_before(delete.invoked) and stored.intersection(each.items):
                yield f"{each.items} was deleted with its thread, and is back"
