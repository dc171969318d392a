"""Managed values: state keys that the engine computes for a node; they can be read, never written or stored."""

from __future__ import annotations

from typing import Annotated, Any, Protocol


class StepView(Protocol):
    """Where the run is."""

    step: int
    """The superstep about to run."""
    stop: int
    """The first superstep that may not run any more."""


class ManagedValue:
    """Marker base: ``Annotated[T, SubclassOfThis]`` in a state schema."""

    @staticmethod
    def get(view: StepView) -> Any:
        """Return the value that a node sees in this superstep."""
        raise TypeError(view)


class IsLastStepManager(ManagedValue):
    """Whether the step limit ends the run after this superstep."""

    @staticmethod
    def get(view: StepView) -> bool:
        """Return whether this is the last superstep allowed."""
        return view.step == view.stop - 1


class RemainingStepsManager(ManagedValue):
    """How many supersteps the step limit still allows, this one included."""

    @staticmethod
    def get(view: StepView) -> int:
        """Return the number of supersteps left."""
        return view.stop - view.step


IsLastStep = Annotated[bool, IsLastStepManager]
RemainingSteps = Annotated[int, RemainingStepsManager]
