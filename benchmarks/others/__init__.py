"""Engines of other kinds that take part where they are installed: each in the way its own documentation shows."""
