"""What a check is, how checks run, and what a run of them says."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
from anyio.lowlevel import checkpoint as breathe

from persistence.errors import CheckpointConflictError, PersistenceError

if TYPE_CHECKING:
    from persistence.contracts.saver import Ack, BaseCheckpointSaver
    from persistence.contracts.store import BaseStore

OpenSaver = Callable[[], AbstractAsyncContextManager["BaseCheckpointSaver"]]
OpenStore = Callable[[], AbstractAsyncContextManager["BaseStore"]]


class ConformanceError(PersistenceError, AssertionError):
    """A saver or store does not do what the contract says; tells what was expected and what came."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that the contract promises."""

    title: str
    act: Callable[[Any, str], Awaitable[None]]
    needs: str = ""
    """The optional method that it is about; empty if every saver or store must pass."""

    async def __call__(self, subject: Any) -> None:
        """Try it on an open saver or store, under names that nobody else has.

        Raises:
            ConformanceError: The promise is not kept.
            UnsupportedOperationError: The subject does not offer what the check is about.
        """
        await self.act(subject, f"conformance/{uuid.uuid4().hex}")


@dataclass(frozen=True, slots=True)
class Report:
    """How the checks went, by title."""

    passed: tuple[str, ...]
    missing: tuple[str, ...]
    """Checks of optional methods that are not offered."""
    failed: dict[str, Exception] = field(default_factory=dict)

    def raise_failures(self) -> None:
        """Raise an ExceptionGroup of all failures, if there are any."""
        if self.failed:
            errors = []
            for title, error in self.failed.items():
                error.add_note(f"In the check: {title}")
                errors.append(error)
            message = f"{len(errors)} of {len(errors) + len(self.passed)} checks failed"
            raise ExceptionGroup(message, errors)

    def __str__(self) -> str:
        """Tell the numbers, and each failure in a line."""
        lines = [f"{len(self.passed)} passed, {len(self.failed)} failed, {len(self.missing)} not offered"]
        lines += [f"FAILED {title}: {error}" for title, error in self.failed.items()]
        return "\n".join(lines)


async def run_checks(checks: Iterable[Check], subject: Any) -> Report:
    """Run checks one after the other; a failure does not keep the others from being made."""
    passed: list[str] = []
    missing: list[str] = []
    failed: dict[str, Exception] = {}
    for check in checks:
        try:
            await check(subject)
        except NotImplementedError as error:
            if check.needs:
                missing.append(check.title)
            else:
                failed[check.title] = error
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the subject's
            failed[check.title] = error
        else:
            passed.append(check.title)
    return Report(tuple(passed), tuple(missing), failed)


def expect(found: object, wanted: object, what: str) -> None:
    """Raise ConformanceError unless both are equal and of one type."""
    if found != wanted or type(found) is not type(wanted):
        message = f"{what}: expected {wanted!r:.400}, got {found!r:.400}"
        raise ConformanceError(message)


async def expect_refusal(
    act: Awaitable[object], errors: type[BaseException] | tuple[type[BaseException], ...], what: str
) -> None:
    """Raise ConformanceError unless the call raises one of these."""
    try:
        result = await act
    except errors:
        return
    message = f"{what}: expected a refusal, got {result!r:.400}"
    raise ConformanceError(message)


async def expect_conflict(ack: Ack, what: str) -> None:
    """Raise ConformanceError unless a unit that was sent is refused, because the thread is another by now."""
    try:
        await ack.wait()
    except CheckpointConflictError:
        return
    message = f"{what} was stored"
    raise ConformanceError(message)


async def cut_off(act: Callable[[], Awaitable[object]], after: int) -> bool:
    """Start something and cancel it once the event loop has gone round so often; tell whether it had ended by then."""
    ended = False

    async def run() -> None:
        nonlocal ended
        await act()
        ended = True

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        for _ in range(after):
            await breathe()
        if not ended:
            group.cancel_scope.cancel()
    return ended
