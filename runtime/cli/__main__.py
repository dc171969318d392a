"""``python -m runtime.cli`` is the ``actorgraph`` command."""

import sys

from runtime.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
