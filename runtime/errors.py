"""Everything that the runtime can raise.

Errors (Exception)
RuntimeLibraryError
├── GraphDefinitionError (ValueError)    the graph as described cannot be compiled
│   ├── NotCallableError (TypeError)     a node, router or task that cannot be called
│   └── UnsupportedFunctionError (NotImplementedError)  a kind of function that cannot be run here
├── ConfigError (ValueError)             the call's config is wrong or in the wrong place
├── UnknownStreamModeError (ValueError)
├── StreamOverflowError                  a node floods a stream that nobody reads as fast
├── GraphRecursionError (RecursionError) more supersteps than recursion_limit
├── InvalidUpdateError                   writes that cannot be applied
│   └── UnknownNodeError (ValueError)    a route, Send, breakpoint or as_node names no node
├── EmptyChannelError                    an empty channel was read
├── EmptyInputError                      nothing to start from
├── CheckpointNotFoundError (LookupError)
├── OrphanedTaskError                    pending work for a node that no longer exists
├── ThreadBusyError                      another run holds the thread
├── ThreadConflictError                  another writer moved the thread on
│   └── FencedError                      a later run of another process took the thread over
├── BlockingCallError (RuntimeError)     waiting here would deadlock
├── UnknownInterruptError (ValueError, RuntimeError)   an answer that no pending question matches
├── NodeCancelledError                   a node cancelled itself
├── StoredNodeError                      a failure that another process had stored
├── NodeTimeoutError                     a node attempt took too long
└── GraphDrained                         a requested drain stopped the run

Signals (BaseException: `except Exception` in user code does not swallow a pause)
GraphBubbleUp
├── GraphInterrupt
│   └── NodeInterrupt
├── ChildCommand
└── ParentCommand
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from persistence import errors as stored
from runtime.interrupts import Interrupt

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class NodeError:
    """What an error handler is told: which node failed, and how. Not itself an exception."""

    node: str
    error: BaseException


class ErrorCode(Enum):
    """Stable codes that messages carry."""

    GRAPH_RECURSION_LIMIT = "GRAPH_RECURSION_LIMIT"
    INVALID_CONCURRENT_GRAPH_UPDATE = "INVALID_CONCURRENT_GRAPH_UPDATE"
    INVALID_GRAPH_NODE_RETURN_VALUE = "INVALID_GRAPH_NODE_RETURN_VALUE"
    MULTIPLE_SUBGRAPHS = "MULTIPLE_SUBGRAPHS"
    INVALID_CHAT_HISTORY = "INVALID_CHAT_HISTORY"


def create_error_message(*, message: str, error_code: ErrorCode) -> str:
    """Return the message with its code, so that it can be searched for."""
    return f"{message} [{error_code.value}]"


def _anew(kind: type[BaseException], *args: object) -> BaseException:
    """Make an error from what it holds, past its constructor, whose arguments were others."""
    return kind.__new__(kind, *args)


class _Travelling(BaseException):
    """Can be pickled and copied whatever its constructor takes: worker processes hand errors back so."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _anew, (type(self), *self.args), self.__dict__


class RuntimeLibraryError(_Travelling, Exception):
    """Root of every error that the runtime raises."""


class GraphDefinitionError(RuntimeLibraryError, ValueError):
    """The graph as described cannot be built or compiled."""


class NotCallableError(GraphDefinitionError, TypeError):
    """What is given as a node, router or task cannot be called."""


class UnsupportedFunctionError(GraphDefinitionError, NotImplementedError):
    """A kind of function that cannot be run here, such as a generator as an entrypoint."""


class ConfigError(RuntimeLibraryError, ValueError):
    """The config of a call is wrong, incomplete or has a setting in the wrong place."""


class UnknownStreamModeError(RuntimeLibraryError, ValueError):
    """A stream mode that does not exist; the message lists those that do."""


class StreamOverflowError(RuntimeLibraryError):
    """A node wrote to its stream faster than it is read, without ever waiting."""


class GraphRecursionError(RuntimeLibraryError, RecursionError):
    """The run took ``recursion_limit`` supersteps and was not done; its state is saved and can be resumed."""


class InvalidUpdateError(RuntimeLibraryError):
    """Writes that the channels cannot take; nothing of them was stored."""


class UnknownNodeError(InvalidUpdateError, ValueError):
    """A name that is no node of this graph; the message lists the known ones."""


class EmptyChannelError(RuntimeLibraryError, stored.EmptyChannelError):
    """The channel holds no value."""


class EmptyInputError(RuntimeLibraryError):
    """There is neither input nor a saved point to continue from."""


class CheckpointNotFoundError(RuntimeLibraryError, LookupError):
    """The addressed checkpoint does not exist on this thread."""


class OrphanedTaskError(RuntimeLibraryError):
    """Saved work belongs to a node that this graph does not have; alias the old name with ``node_aliases``."""


class ThreadBusyError(RuntimeLibraryError):
    """Another run, of this process or another, holds the thread, and ``multitask_strategy`` is ``reject``."""


class ThreadConflictError(RuntimeLibraryError):
    """Another writer moved the thread on since this run read it; nothing of this write was stored."""


class FencedError(ThreadConflictError):
    """The thread is not this run's any more: another process took it over, or it was deleted; the run has stopped.

    Nothing that the run sent from then on was stored, and whoever has the thread now is not disturbed.
    """


class BlockingCallError(RuntimeLibraryError, RuntimeError):
    """A method that waits was called where that would deadlock; the message says why, or names the async method."""


class UnknownInterruptError(RuntimeLibraryError, ValueError, RuntimeError):
    """An answer names a question that is not pending; nothing was stored."""

    def __init__(
        self, message: str, *, reason: str, interrupt_ids: Sequence[str] = (), pending_ids: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.reason = reason
        """``not_pending``, ``empty_map`` or ``ambiguous``."""
        self.interrupt_ids = tuple(interrupt_ids)
        self.pending_ids = tuple(pending_ids)

    def on(self, thread_id: str, ns: str) -> UnknownInterruptError:
        """Return it with the thread named, and the namespace inside a subgraph."""
        where = f"Thread {thread_id!r}" + (f", namespace {ns!r}" if ns else "")
        return UnknownInterruptError(
            f"{where}: {self}",
            reason=self.reason,
            interrupt_ids=self.interrupt_ids,
            pending_ids=self.pending_ids,
        )


UNFIT_ANSWER = "This answer does not fit the question's response_schema; the question still waits."
"""Noted on the validating library's own error."""


KEPT_ANSWER = "The node had been given an answer and keeps it: resumed, it gets the same one."
"""How the note begins that a failed node gets which had been answered."""


def is_invalid_resume(error: BaseException) -> bool:
    """Tell whether a run failed because the answer it was resumed with does not fit its question."""
    return UNFIT_ANSWER in getattr(error, "__notes__", ())


class NodeCancelledError(RuntimeLibraryError):
    """A node raised the event loop's cancellation error although nobody had cancelled it."""

    def __init__(self, node: str | None, message: str | None = None) -> None:
        super().__init__(message or f"Node {node!r} raised its event loop's cancellation error.")
        self.node = node
        """Its name, or that of the @task function; None if it cannot be told."""


class StoredNodeError(RuntimeLibraryError):
    """What an error handler that runs in a later process finds in ``NodeError.error``.

    The node's exception itself is not stored: ``str()`` of this is the ``repr()`` of it. Nothing raises it.
    """


_LATE = (
    "Give it longer (timeout=TimeoutPolicy(run_timeout=...) where it is defined, or timeout= of the Send), make it "
    "quicker, or let a retry_policy try it again."
)
_SILENT = (
    "Have it call runtime.heartbeat() while it works, give it longer (timeout=TimeoutPolicy(idle_timeout=...) where it "
    "is defined, or timeout= of the Send), or let a retry_policy try it again."
)


class NodeTimeoutError(RuntimeLibraryError):
    """One attempt of a node exceeded its timeout and was cancelled."""

    def __init__(
        self,
        node: str,
        elapsed: float,
        *,
        kind: str,
        idle_timeout: float | None = None,
        run_timeout: float | None = None,
    ) -> None:
        timeout = {"run": run_timeout, "idle": idle_timeout}.get(kind)
        if timeout is None:
            msg = f"kind is 'run' or 'idle', and the timeout of that kind must be given; it is {kind!r}."
            raise ValueError(msg)
        silent = ", in which it gave no sign of life" if kind == "idle" else ""
        advice = _LATE if kind == "run" else _SILENT
        super().__init__(
            f"Node {node!r} exceeded its {kind} timeout of {timeout:g} s{silent}: this attempt was cancelled after "
            f"{elapsed:.3f} s. {advice}"
        )
        self.node = node
        self.elapsed = elapsed
        """Seconds since the attempt began."""
        self.kind = kind
        """``run`` or ``idle``."""
        self.timeout = timeout
        """Seconds."""
        self.run_timeout = run_timeout
        """The timeout, if it was for the whole attempt."""
        self.idle_timeout = idle_timeout
        """The timeout, if it was for a time without a sign of life."""


class GraphDrained(RuntimeLibraryError):  # noqa: N818 - LangGraph's public name
    """A drain was requested; the current superstep was finished and saved. Resume with None."""

    def __init__(self, reason: str = "shutdown", thread_id: str | None = None) -> None:
        where = "" if thread_id is None else f" of thread {thread_id!r}"
        super().__init__(f"The run{where} was drained: {reason}. Resume it with None as input.")
        self.reason = reason


class GraphBubbleUp(_Travelling):
    """Root of the signals that travel through user code."""


class GraphInterrupt(GraphBubbleUp):
    """A node asked a question; raised by ``interrupt()``."""

    def __init__(self, interrupts: Sequence[Any] = ()) -> None:
        super().__init__(interrupts)
        self.interrupts = tuple(interrupts)


class NodeInterrupt(GraphInterrupt):
    """A question raised by hand; kept for programs that use the old form."""

    def __init__(self, value: Any, id: str | None = None) -> None:  # noqa: A002 - LangGraph's public name
        super().__init__((Interrupt(value=value, id=id or ""),))


class ChildCommand(GraphBubbleUp):
    """A subgraph addressed the graph whose node runs it: the command is what that node returns."""

    def __init__(self, command: Any) -> None:
        super().__init__(command)
        self.command = command


class ParentCommand(GraphBubbleUp):
    """A Command addressed to the parent graph on its way up."""

    def __init__(self, command: Any) -> None:
        super().__init__(command)
        self.command = command
