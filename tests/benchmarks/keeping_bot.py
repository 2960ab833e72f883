"""A tracker with a fingerprint that takes its time and writes down what it is asked."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Sequence
from pathlib import Path

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context
from pytest_dstfuzz.trackers.tracker import Prediction


class Bot:
    """Believes what a checksum of the utterance says, ``$BOT_SECONDS`` after it was asked."""

    fingerprint = "1"

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        time.sleep(float(os.environ["BOT_SECONDS"]) * len(contexts))
        with Path(os.environ["BOT_ASKED"]).open("a", encoding="utf-8") as file:
            file.write("".join(f"{context.exchanges!r}\n" for context in contexts))
        return [self._answer(context.user) for context in contexts]

    def _answer(self, user: str) -> Prediction:
        number = zlib.crc32(user.encode())
        state = {"hotel-area": "north"} if number % 5 else {"hotel-area": "south"}
        return Prediction(BeliefState(state), {"hotel-area": number % 97 / 97})
