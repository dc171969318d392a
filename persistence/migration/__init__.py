"""Threads and items that another library stored, carried over to the savers and stores of this one.

Knows how LangGraph's databases are laid out and how its values are written; nothing of graphs. What its engine meant by
a checkpoint is told by an ``Adopter``, which the caller brings.
"""
