"""``Runtime``: what a run hands to its nodes beside the state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final, Generic, Self

from runtime.types.parameters import ContextT

if TYPE_CHECKING:
    from runtime.types.streams import StreamWriter


@dataclass(frozen=True, slots=True)
class ExecutionInfo:
    """Which execution this is."""

    checkpoint_id: str
    """The checkpoint that the superstep started from."""
    checkpoint_ns: str
    task_id: str
    thread_id: str | None = None
    run_id: str | None = None
    node_attempt: int = 1
    """1 for the first attempt."""
    node_first_attempt_time: float | None = None
    """Unix seconds."""

    @property
    def idempotency_key(self) -> str:
        """Equal for every execution of this task: give it to outside systems that ignore repeats."""
        return f"{self.thread_id or ''}/{self.checkpoint_ns}/{self.task_id}"

    def patch(self, **overrides: Any) -> Self:
        """Return a copy with other values in these fields."""
        return replace(self, **overrides)


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime(Generic[ContextT]):
    """Run-scoped values of a node; asked for with a parameter named ``runtime``."""

    context: ContextT = None  # type: ignore[assignment]
    """What the caller passed as ``context``; never stored."""
    store: Any = None
    stream_writer: StreamWriter = lambda _item: None
    heartbeat: Callable[[], None] = lambda: None
    """Restarts the idle timeout of this attempt."""
    previous: Any = None
    execution_info: ExecutionInfo | None = None
    control: RunControl | None = None
    server_info: Any = None
    """What a server around the graph tells; None, as there is none here."""

    def override(self, **overrides: Any) -> Self:
        """Return a copy with other values in these fields."""
        return replace(self, **overrides)

    def merge(self, other: Runtime[ContextT]) -> Self:
        """Return a copy with what the other one was given; what it was not stays."""
        given = {one.name: getattr(other, one.name) for one in fields(self)}
        return replace(self, **{name: value for name, value in given.items() if value is not _DEFAULTS[name]})

    def patch_execution_info(self, **overrides: Any) -> Self:
        """Return a copy with other values in these fields of ``execution_info``. Raises RuntimeError without one."""
        if self.execution_info is None:
            msg = "There is no execution_info to change: this runtime belongs to no node that runs."
            raise RuntimeError(msg)
        return replace(self, execution_info=self.execution_info.patch(**overrides))

    @property
    def drain_requested(self) -> bool:
        """Whether the run was asked to stop after this superstep."""
        return self.control is not None and self.control.drain_requested

    @property
    def drain_reason(self) -> str | None:
        """Why it was asked to."""
        return None if self.control is None else self.control.drain_reason


_DEFAULTS: Final = {one.name: one.default for one in fields(Runtime)}


class RunControl:
    """Handle with which the caller of a run can ask it to stop at the next superstep boundary."""

    __slots__ = ("drain_reason", "drain_requested")

    def __init__(self) -> None:
        self.drain_requested = False
        self.drain_reason: str | None = None

    def request_drain(self, reason: str = "shutdown") -> None:
        """Let the current superstep finish, save it, then raise GraphDrained to the caller."""
        self.drain_requested = True
        self.drain_reason = reason
