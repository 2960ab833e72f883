"""Checks of the contract: sound answers, to whatever text, that nobody touches afterwards."""

from __future__ import annotations

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, Exchange
from pytest_dstfuzz.errors import DstFuzzError
from pytest_dstfuzz.trackers.conformance.findings import CheckOutcome
from pytest_dstfuzz.trackers.conformance.probe import Answer, ProbeTurn, TrackerProbe, state_of
from pytest_dstfuzz.trackers.validation import difference, in_training_mode

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


_SHAPE = (
    "predict(contexts) returns one Prediction, or one mapping slot -> value, for each context; "
    "slots and values are strings."
)


def eval_mode(probe: TrackerProbe) -> CheckOutcome:
    """No module that the tracker keeps is in training mode."""
    if in_training_mode(probe.tracker):
        return CheckOutcome(
            "failed",
            "the tracker is in training mode, where dropout changes its answers",
            "Call .eval() on the model once it is loaded.",
        )
    return CheckOutcome("passed", "nothing that the tracker keeps says that it is training")


def clean_turns(probe: TrackerProbe) -> CheckOutcome:
    """Every turn of the data has a sound answer."""
    errors = [(place, a) for place, a in probe.survey.items() if not isinstance(a, Answer)]
    total = len(probe.survey)
    if not errors:
        return CheckOutcome("passed", f"one sound prediction for each of {total} clean turns")
    place, error = errors[0]
    which = f"all {total}" if len(errors) == total else f"{len(errors)} of {total}"
    return CheckOutcome(
        "failed",
        f"no answer to {which} clean turns; to {probe.turns[place].name}: {error}",
        f"A run counts such a turn as an error. {_SHAPE}",
    )


def batch_sizes(probe: TrackerProbe) -> CheckOutcome:
    """Batches of every size have one answer for each context."""
    broken = {size: e for size, e in probe.sized.items() if isinstance(e, DstFuzzError)}
    if broken:
        what = "; ".join(f"of {size}: {error}" for size, error in broken.items())
        return CheckOutcome(
            "failed",
            f"batches are not answered, {what}",
            "Return as many predictions as there are contexts, for whatever number of contexts; "
            "where memory is short, cut the batch into smaller ones yourself.",
        )
    sizes = ", ".join(str(size) for size in probe.sized)
    return CheckOutcome("passed", f"one prediction for each context in batches of {sizes}")


def input_kept(probe: TrackerProbe) -> CheckOutcome:
    """The batch is as it was, and may be a tuple as well as a list."""
    contexts = [turn.context for turn in probe.few]
    before = [context.exchanges for context in contexts]
    batch = list(contexts)
    probe.raw(batch)
    if batch != contexts or [context.exchanges for context in contexts] != before:
        return CheckOutcome(
            "failed",
            "the tracker changes the batch that it is given",
            "Leave the contexts and their sequence alone: sort with sorted(), do not pop() or "
            "sort() in place.",
        )
    try:
        probe.raw(tuple(contexts))
    except DstFuzzError as error:
        return CheckOutcome(
            "failed",
            f"a batch that is a tuple is not answered: {error}",
            "A batch is a sequence: take a list and a tuple alike.",
        )
    return CheckOutcome("passed", "the batch is left as it was, a list or a tuple")


def own_states(probe: TrackerProbe) -> CheckOutcome:
    """An answer is nobody else's: no two contexts share one, and later calls change none."""
    answers = probe.raw([turn.context for turn in probe.few])
    kept = [probe.checked(answer) for answer in answers]
    states = [state_of(answer) for answer in answers]
    advice = "Return a new mapping for each context: Prediction(BeliefState(state)) copies."
    shared = [
        (first, second)
        for second in range(len(states))
        for first in range(second)
        if states[first] is states[second]
        and not isinstance(states[first], BeliefState)
        and probe.few_alone[first].state != probe.few_alone[second].state
    ]
    if shared:
        one, other = (probe.few[place].name for place in shared[0])
        return CheckOutcome(
            "failed", f"the answers to {one} and {other} are one and the same object", advice
        )
    probe.ask(probe.few[::-1])
    later = [probe.checked(answer) for answer in answers]
    if moved := difference(kept, later, (turn.name for turn in probe.few)):
        return CheckOutcome(
            "failed", f"a later call changes an answer given before ({moved})", advice
        )
    return CheckOutcome("passed", "no answer is changed after it was given")
