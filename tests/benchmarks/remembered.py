"""A tracker that has its answers in a file: what asking a service costs without a tracker.

``bench_web.py`` writes the file and serves this.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.trackers.tracker import Prediction
from pytest_dstfuzz.trackers.web.contract import read_answer, read_request


class Remembered:
    """Answers what ``$REMEMBERED`` holds: pairs of a request and its answer."""

    def __init__(self) -> None:
        pairs = json.loads(Path(os.environ["REMEMBERED"]).read_text(encoding="utf-8"))
        self._answers = {read_request(asked): read_answer(answer) for asked, answer in pairs}

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        return [self._answers[context] for context in contexts]
