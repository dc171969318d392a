"""Managed values, under LangGraph's import path."""

from runtime.types.managed import IsLastStep, ManagedValue, RemainingSteps

__all__ = ["IsLastStep", "ManagedValue", "RemainingSteps"]
