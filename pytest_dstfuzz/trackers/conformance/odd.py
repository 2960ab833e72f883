"""The check of odd utterances: what users send that no data set has."""

from __future__ import annotations

from pytest_dstfuzz.dialogue.dialogues import Context, Exchange
from pytest_dstfuzz.errors import DstFuzzError
from pytest_dstfuzz.trackers.conformance.findings import CheckOutcome
from pytest_dstfuzz.trackers.conformance.probe import ProbeTurn, TrackerProbe

#: An utterance of 2,000 characters.
LONG = ("we would like a quiet table near the window, and then a taxi; " * 40)[:2000]
#: What messages call it -> the utterance.
UTTERANCES = {
    "an empty utterance": "",
    "blanks alone": " \t ",
    "emoji alone": "👍🏽 🍕🎉 👨‍👩‍👧",
    "2,000 characters": LONG,
    "control characters": "cheap\x00 food\x07 \x1b[31mplease\x7f",
    "text from right to left": "أريد فندقًا رخيصًا في الشمال",
    "several lines": "a cheap hotel\r\nin the north\n\nplease\n",
    "capitals": "I NEED A CHEAP HOTEL IN THE NORTH",
    "punctuation alone": "?!... --",
}
_SHOWN = 3


def odd_utterances(probe: TrackerProbe) -> CheckOutcome:
    """Odd utterances are answered, as the first turn and as a later one, alone and together."""
    turns = _turns(probe.few[0].context.exchanges[0])
    failed: dict[str, str] = {}
    for turn in turns:
        try:
            probe.ask([turn])
        except DstFuzzError as error:
            failed.setdefault(turn.name, f"{turn.name} ({error})")
    if failed:
        kinds = len({turn.name for turn in turns})
        shown = ", ".join(list(failed.values())[:_SHOWN])
        more = f", and {len(failed) - _SHOWN} more" if len(failed) > _SHOWN else ""
        return CheckOutcome(
            "failed",
            f"no answer to {len(failed)} of {kinds} odd utterances: {shown}{more}",
            "Users send these. Answer with the state so far where there is nothing to understand.",
        )
    try:
        probe.ask([*turns, *probe.few])
    except DstFuzzError as error:
        return CheckOutcome(
            "failed",
            f"odd utterances are answered alone, and not in one batch with others: {error}",
            "Look at the padding of what comes out empty, and at the longest context.",
        )
    return CheckOutcome(
        "passed", f"{len({turn.name for turn in turns})} odd utterances are answered"
    )


def _turns(opening: Exchange) -> list[ProbeTurn]:
    """Return each odd utterance as a first turn and as the one after ``opening``."""
    later = [
        ProbeTurn(name, "", Context((opening, Exchange("Anything else?", text))))
        for name, text in UTTERANCES.items()
    ]
    first = [
        ProbeTurn(name, "", Context((Exchange("", text),))) for name, text in UTTERANCES.items()
    ]
    silent = Context((opening, Exchange("", "a cheap one, please")))
    return [*first, *later, ProbeTurn("an empty system utterance", "", silent)]
