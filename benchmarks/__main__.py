"""``python -m benchmarks``: see ``--help``, and the docstring of the package for the method."""

from __future__ import annotations

import sys

from benchmarks.commands import main

if __name__ == "__main__":
    sys.exit(main())
