"""``python -m extender``: the same as the command dra-extender."""

import sys

from extender.cli import main

if __name__ == "__main__":
    sys.exit(main())
