"""The ``actorgraph`` command: run graphs and look after the threads they leave in a database.

The only room that picks a concrete saver. Everything it does can be done from Python, with the same calls.
"""

from runtime.cli.main import main

__all__ = ["main"]
