"""A question that a node put to the outside."""

from runtime.interrupts import Interrupt

__all__ = ["Interrupt"]
