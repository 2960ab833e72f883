"""What the fixture ``tasks`` gives."""

from __future__ import annotations

from collections.abc import Callable

from pytest_dstfuzz.search.protocol import SearchTask

#: Builds the tasks of some dialogues: ``tasks(order, dialogues, only, validity)``.
Tasks = Callable[..., list[SearchTask]]
