"""A tracker that ends the process in which it is imported."""

from __future__ import annotations

import os

os._exit(1)
