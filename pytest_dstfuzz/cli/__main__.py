"""``python -m pytest_dstfuzz.cli``: the command without its script."""

import sys

from pytest_dstfuzz.cli import main

sys.exit(main())
