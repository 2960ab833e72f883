"""Checks of the contract: sound answers to whatever text, the same however they are asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from pytest_dstfuzz.dialogue.dialogues import Context, Exchange
from pytest_dstfuzz.dialogue.outcome import REPLY, TOOL_CALLS, Outcome
from pytest_dstfuzz.errors import DstFuzzError
from pytest_dstfuzz.trackers.conformance.findings import (
    CheckOutcome,
    failed,
    first_few,
    passed,
    warned,
)
from pytest_dstfuzz.trackers.conformance.probe import (
    Answer,
    ProbeTurn,
    Sized,
    TrackerProbe,
    state_of,
)
from pytest_dstfuzz.trackers.tracker import VOTE, Prediction
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
#: What to do, by what is tested.
_NOTHING_SAID = {
    "state": "Users send these. Answer with the state so far where there is nothing to understand.",
    REPLY: (
        "Users send these. Where there is nothing to understand, reply with a text that says so."
    ),
    TOOL_CALLS: "Users send these. Where there is nothing to understand, call nothing and say so.",
}
_RETURNED = {
    "state": (
        "predict(contexts) returns one Prediction, or one mapping slot -> value, for each context; "
        "slots and values are strings."
    ),
    REPLY: "A reply is a text that is not empty.",
    TOOL_CALLS: 'A message has "content", "tool_calls" or both, as in OpenAI\'s API.',
}


def odd_utterances(probe: TrackerProbe) -> CheckOutcome:
    """Odd utterances are answered, as the first turn and as a later one, alone and together."""
    turns = _turns(probe.few[0].context.exchanges[0])
    kinds = len({turn.name for turn in turns})
    refused: dict[str, str] = {}
    for turn in turns:
        try:
            probe.ask([turn])
        except DstFuzzError as error:
            refused.setdefault(turn.name, f"{turn.name} ({error})")
    if refused:
        shown = first_few([*refused.values()], ", ")
        return failed(
            f"no answer to {len(refused)} of {kinds} odd utterances: {shown}",
            _NOTHING_SAID[probe.kind.name],
        )
    try:
        probe.ask([*turns, *probe.few])
    except DstFuzzError as error:
        return failed(
            f"odd utterances are answered alone, and not in one batch with others: {error}",
            "Look at the padding of what comes out empty, and at the longest context.",
        )
    return passed(f"{kinds} odd utterances are answered")


def _turns(opening: Exchange) -> list[ProbeTurn]:
    """Return each odd utterance as a first turn and as the one after ``opening``."""
    said: list[tuple[str, Exchange, tuple[Exchange, ...]]] = [
        (name, Exchange(system, text), before)
        for system, before in (("", ()), ("Anything else?", (opening,)))
        for name, text in UTTERANCES.items()
    ]
    said.append(("an empty system utterance", Exchange("", "a cheap one, please"), (opening,)))
    return [ProbeTurn(name, "", Context((*before, last))) for name, last, before in said]


def eval_mode(probe: TrackerProbe) -> CheckOutcome:
    """No module that the tracker keeps is in training mode."""
    if in_training_mode(probe.tracker):
        return failed(
            f"{probe.kind.words.who} is in training mode, where dropout changes its answers",
            "Call .eval() on the model once it is loaded.",
        )
    return passed(f"nothing that {probe.kind.words.who} keeps says that it is training")


def clean_turns(probe: TrackerProbe) -> CheckOutcome:
    """Every turn of the data has a sound answer."""
    errors = [(place, a) for place, a in probe.survey.items() if not isinstance(a, Answer)]
    total = len(probe.survey)
    if not errors:
        return passed(f"one sound prediction for each of {total} clean turns")
    place, error = errors[0]
    which = f"all {total}" if len(errors) == total else f"{len(errors)} of {total}"
    return failed(
        f"no answer to {which} clean turns; to {probe.turns[place].name}: {error}",
        f"A run counts such a turn as an error. {_RETURNED[probe.kind.name]}",
    )


def batch_sizes(probe: TrackerProbe) -> CheckOutcome:
    """Batches of every size have one answer for each context."""
    broken = {size: e for size, e in probe.sized.items() if isinstance(e, DstFuzzError)}
    if broken:
        what = "; ".join(f"of {size}: {error}" for size, error in broken.items())
        return failed(
            f"batches are not answered, {what}",
            "Return as many predictions as there are contexts, for whatever number of contexts; "
            "where memory is short, cut the batch into smaller ones yourself.",
        )
    sizes = ", ".join(str(size) for size in probe.sized)
    return passed(f"one prediction for each context in batches of {sizes}")


def input_kept(probe: TrackerProbe) -> CheckOutcome:
    """The batch is as it was, and may be a tuple as well as a list."""
    contexts = [turn.context for turn in probe.few]
    before = [context.exchanges for context in contexts]
    batch = list(contexts)
    probe.raw(batch)
    if batch != contexts or [context.exchanges for context in contexts] != before:
        return failed(
            f"{probe.kind.words.who} changes the batch that it is given",
            "Leave the contexts and their sequence alone: sort with sorted(), do not pop() or "
            "sort() in place.",
        )
    try:
        probe.raw(tuple(contexts))
    except DstFuzzError as error:
        return failed(
            f"a batch that is a tuple is not answered: {error}",
            "A batch is a sequence: take a list and a tuple alike.",
        )
    return passed("the batch is left as it was, a list or a tuple")


def own_states(probe: TrackerProbe) -> CheckOutcome:
    """An answer is nobody else's: no two contexts share one, and later calls change none."""
    answers = probe.raw([turn.context for turn in probe.few])
    kept = [probe.checked(answer) for answer in answers]
    states = [state_of(answer) for answer in answers]
    advice = "Return a new mapping for each context: Prediction(BeliefState(state)) copies."
    for second, state in enumerate(states):
        for first in range(second):
            if (
                states[first] is state
                and not isinstance(state, Outcome)
                and probe.few_alone[first].state != probe.few_alone[second].state
            ):
                names = f"{probe.few[first].name} and {probe.few[second].name}"
                return failed(f"the answers to {names} are one and the same object", advice)
    probe.ask(probe.few[::-1])
    later = [probe.checked(answer) for answer in answers]
    if moved := difference(kept, later, (turn.name for turn in probe.few)):
        return failed(f"a later call changes an answer given before ({moved})", advice)
    return passed("no answer is changed after it was given")


def deterministic(probe: TrackerProbe) -> CheckOutcome:
    """The same batch has the same answers, however often it is asked for.

    The first answers may differ from the others for another reason: `memory` looks at them.
    """
    _, second, *others = probe.repeats
    if not probe.repeatable:
        return _disagreement(probe)
    for other in others:
        if moved := _moved(second, other, probe.few):
            return failed(
                f"the same batch twice in a row has different answers ({moved})",
                "Switch off dropout and sampling (temperature 0), and seed what is random. Of a "
                f"tracker that cannot repeat itself, {VOTE}.",
            )
    again = f"{len(probe.repeats)} times in a row"
    return passed(f"a batch of {len(probe.few)} has the same answers {again}")


def _disagreement(probe: TrackerProbe) -> CheckOutcome:
    """Say how often a tracker that need not be repeatable disagrees with itself."""
    states = [{p.state for p in answers} for answers in zip(*probe.repeats, strict=True)]
    differed = sum(len(answers) > 1 for answers in states)
    times = f"asked {len(probe.repeats)} times"
    if not differed:
        return passed(f"{len(states)} contexts, {times}, have the same answers")
    return warned(
        f"{differed} of {len(states)} contexts, {times}, have several answers; the tracker says "
        "that it need not be repeatable",
        "A run asks such a tracker several times. Where it can be made to repeat itself "
        "(temperature 0, a seed), do that.",
    )


def batch_order(probe: TrackerProbe) -> CheckOutcome:
    """The answers to a batch come in the order of its contexts."""
    alone, together = probe.few_alone, probe.repeats[-1]
    moved = sum(one.state != other.state for one, other in zip(alone, together, strict=True))
    if moved and _states(alone) == _states(together):
        return failed(
            f"the answers to a batch of {len(probe.few)} are the right ones in another order: "
            f"{moved} of them stand at another context's place",
            "Where a batch is sorted, by length for instance, put the answers back into the "
            "order of the contexts.",
        )
    return passed("answers come in the order of the contexts")


def memory(probe: TrackerProbe) -> CheckOutcome:
    """An answer does not depend on what was asked before it."""
    turns = probe.few
    forwards = [probe.ask([turn])[0] for turn in turns]
    backwards = probe.ask(turns[::-1])[::-1]
    first, again = probe.repeats[0], probe.repeats[-1]
    for what, one, other in (
        ("one by one in two orders", forwards, probe.few_alone),
        ("in a batch and in the same batch backwards", again, backwards),
        ("in a batch and in the same batch again", first, again),
    ):
        if moved := _moved(one, other, turns):
            return failed(
                f"the answer depends on what was asked before: {len(turns)} contexts, {what}, "
                f"have different answers ({moved})",
                "Keep nothing from one context to the next. An object with reset() and "
                "update(system, user) may keep its state; reset() must clear all of it.",
            )
    return passed(f"{len(turns)} contexts have the same answers in other orders")


def batch_alone(probe: TrackerProbe) -> CheckOutcome:
    """A context has the same answer alone, in batches of any size, and beside a long one."""
    advice = (
        "Mask the padding in attention, recurrence and pooling, and cut no context for the sake "
        "of the longest one."
    )
    sizes = {size: found for size, found in probe.sized.items() if isinstance(found, Sized)}
    alone = sizes[min(sizes)].predictions if sizes else []
    for size, found in sizes.items():
        count = min(len(alone), len(found.predictions))
        if moved := _moved(found.predictions[:count], alone[:count], probe.many[:count]):
            return failed(
                f"in batches of {size} a context has another answer than alone ({moved})",
                advice,
            )
    long = ProbeTurn("2,000 characters", "", Context((Exchange("", LONG),)))
    try:
        beside = probe.ask([*probe.few, long])[:-1]
    except DstFuzzError:
        # That the tracker fails on it is for the check of odd utterances to say.
        beside = probe.few_alone
    if moved := _moved(beside, probe.few_alone, probe.few):
        return failed(
            f"beside a context of 2,000 characters a context has another answer ({moved})",
            advice,
        )
    shown = ", ".join(str(size) for size in sizes if size > 1)
    return passed(f"the same answers alone and in batches of {shown}")


def _moved(one: list[Prediction], other: list[Prediction], turns: Sequence[ProbeTurn]) -> str:
    return difference(one, other, (turn.name for turn in turns))


def _states(predictions: Iterable[Prediction]) -> Counter[object]:
    return Counter(prediction.state for prediction in predictions)
