"""One timed pytest campaign and one timed prediction of the same contexts, as JSON.

Run by ``bench_campaign.py`` in a process of its own: pytest must not run inside pytest.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_dstfuzz.dialogue.dialogues import Again, Context
from pytest_dstfuzz.models.tokenise import tokenise
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.perturb.words import Action, Variant
from pytest_dstfuzz.trackers.registry import resolve_tracker
from pytest_dstfuzz.trackers.tracker import Prediction

BATCH = 64
#: Plugins that are there for other tests, and that import a lot.
OTHERS = [f"-pno:{name}" for name in ("hypothesispytest", "anyio", "xdist")]
OPTIONS = ["--dst-variants=5", f"--dst-batch-size={BATCH}", "--dst-max-failure-rate=100%", "-q"]
OPTIONS += OTHERS


#: Seconds of the processor: other work of the machine adds nothing to them.
seconds = time.process_time
spent = {"perturbation": 0.0, "tracker": 0.0}


class Recorder:
    """The shipped TRADE, with a note of every context that it was asked for."""

    def __init__(self) -> None:
        self.trade = resolve_tracker("trade", batch_size=BATCH)
        self.asked: list[Context] = []

    def predict(self, contexts: Sequence[Context]) -> Sequence[Prediction]:
        self.asked += contexts
        start = seconds()
        found = self.trade.predict(contexts)
        # Whoever asked waits meanwhile.
        spent["tracker"] += seconds() - start
        return found


tracker = Recorder()
_apply, _prepare = Perturber.apply, Perturber.prepare


def timed_apply(self: Perturber, source: object, action: Action) -> Variant:
    start = seconds()
    try:
        return _apply(self, source, action)  # type: ignore[arg-type]  # passed on as it came
    finally:
        spent["perturbation"] += seconds() - start


def timed_prepare(self: Perturber, *arguments: object, **named: object) -> object:
    start = seconds()
    try:
        return _prepare(self, *arguments, **named)  # type: ignore[arg-type]  # likewise
    finally:
        spent["perturbation"] += seconds() - start


def predicted(contexts: Sequence[Context]) -> float:
    """Return the seconds that TRADE takes for contexts in the order of their length."""
    start = seconds()
    for place in range(0, len(contexts), BATCH):
        tracker.trade.predict(contexts[place : place + BATCH])
    return seconds() - start


def main(data: str, turns: str) -> None:
    """Print seconds of the campaign, of its perturbation, and of the plain prediction.

    Those of the campaign are of the whole process, with its start-up: imports, the network, data.
    """
    Perturber.apply, Perturber.prepare = timed_apply, timed_prepare  # type: ignore[method-assign, assignment]  # timed
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        options = [*OPTIONS, f"--dst-data={data}", f"--dst-turns={turns}"]
        wall = time.perf_counter()
        status = pytest.main(
            ["-p", "no:cacheprovider", "--dst-model=campaign_run:tracker", *options, folder]
        )
        campaign, wall = seconds(), time.perf_counter() - wall
        inside = spent["tracker"]
    asked = sorted(dict.fromkeys(tracker.asked), key=Context.size)
    # What was asked once more, to see whether the answer is the same, is predicted once more: in
    # one batch with the first of the two, TRADE computes both at once.
    again = [context for context in asked if isinstance(context, Again)]
    once = [context for context in asked if not isinstance(context, Again)]
    tokenise.cache_clear()  # As in the campaign, no utterance was seen before.
    plain = predicted(once)
    repeated = predicted(again)
    figures = {
        "status": int(status),
        "contexts": len(asked),
        "wall": wall,
        "campaign": campaign,
        "perturbation": spent["perturbation"],
        # The same predictions as the plain ones, in other batches and at another moment.
        "tracker_in_campaign": inside,
        "prediction": plain + repeated,
        "prediction_of_repeats": repeated,
    }
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    # Under its own name, so that --dst-model finds this very recorder.
    sys.modules["campaign_run"] = sys.modules["__main__"]
    main(*sys.argv[1:])
