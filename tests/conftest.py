"""What all tests share: pytest's own tool to test plugins."""

from __future__ import annotations

pytest_plugins = ["pytester"]
