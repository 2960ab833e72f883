"""The conformance kit: checks that a tracker fulfils its contract."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import compress
from typing import Any, Final, Literal, NamedTuple, TypeVar, cast

from rapidfuzz.distance import DamerauLevenshtein

from pytest_dstfuzz.dialogue.calls import REPLY, TOOL_CALLS, Outcome, OutcomeKind
from pytest_dstfuzz.dialogue.dialogues import DONTCARE, Context, Dialogue, DialogueSet, Exchange
from pytest_dstfuzz.dialogue.normalise import normalise_slot, normalise_value
from pytest_dstfuzz.errors import DstFuzzError, UserError
from pytest_dstfuzz.json_data import to_json
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.printable import format_count
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.trackers.calls import EQUAL_CALLS, CallEvaluation, CallJudge, score_calls
from pytest_dstfuzz.trackers.evaluate import Evaluation, score, similar_lengths
from pytest_dstfuzz.trackers.replies import ReplyEvaluation, ReplyJudge, score_replies
from pytest_dstfuzz.trackers.tracker import VOTE, Prediction, Tracker, is_repeatable
from pytest_dstfuzz.trackers.validation import (
    ask_raw,
    check_prediction,
    difference,
    in_training_mode,
    unknown_slot,
)

__all__ = ["CHECKS", "Check", "Conformance", "Finding", "check_tracker"]


#: ``warned`` is not a failure. ``skipped`` means that the check does not apply.
Status = Literal["passed", "failed", "warned", "skipped"]


class CheckOutcome(NamedTuple):
    """The result of one check."""

    status: Status
    #: The observation, in one sentence.
    message: str
    #: Advice for the user, or ``""`` if nothing has to be done.
    advice: str = ""


passed: Final = partial(CheckOutcome, "passed")
failed: Final = partial(CheckOutcome, "failed")
warned: Final = partial(CheckOutcome, "warned")
skipped: Final = partial(CheckOutcome, "skipped")

#: Maximum number of findings of the same kind that a message lists.
_SHOWN: Final = 3


def first_few(texts: Sequence[str], sign: str = "; ") -> str:
    """Join the first few texts. Append how many others there are."""
    more = [f"and {len(texts) - _SHOWN} more"] if len(texts) > _SHOWN else []
    return sign.join([*texts[:_SHOWN], *more])


@dataclass(frozen=True, slots=True)
class Finding:
    """The named result of one check of a tracker."""

    check: str
    status: Status
    message: str
    advice: str = ""

    def to_json(self) -> dict[str, str]:
        """Return a plain dictionary."""
        found: dict[str, str] = to_json(self)
        return found

    def __str__(self) -> str:
        return f"{self.check}: {self.message}" + (f"\n  {self.advice}" if self.advice else "")


@dataclass(frozen=True, slots=True)
class Conformance:
    """The results of all checks of one tracker."""

    findings: tuple[Finding, ...]
    #: Batch size -> contexts answered per second, by wall-clock time on this machine.
    throughput: Mapping[int, float]
    #: Accuracy on the labels. ``None`` if the data has no labels or a turn has no answer.
    evaluation: Evaluation | ReplyEvaluation | CallEvaluation | None
    #: Number of contexts sent to the tracker, including repetitions.
    asked: int

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings of the checks that failed."""
        return tuple(finding for finding in self.findings if finding.status == "failed")

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return not self.failures

    def headline(self) -> str:
        """Return the numbers of checks by status, such as failed and passed."""
        counts = Counter(finding.status for finding in self.findings)
        parts = [
            f"{counts[status]} {status}"
            for status in ("failed", "warned", "passed", "skipped")
            if counts[status] or status == "passed"
        ]
        return f"{len(self.findings)} checks: {', '.join(parts)}"

    def assert_passed(self) -> None:
        """Raise an `AssertionError` with the reason and advice if a check failed."""
        if not self.passed:
            raise AssertionError(self.explain())

    def explain(self) -> str:
        """Return the failed checks with their advice, one per line."""
        return "\n".join([self.headline(), *map(str, self.failures)])

    def to_json(self) -> dict[str, Any]:
        """Return the findings and the figures as a plain dictionary."""
        accuracy = self.evaluation
        figures: dict[str, Any] = {"turns": accuracy and accuracy.turns}
        if isinstance(accuracy, ReplyEvaluation):
            figures["right_replies"] = round(accuracy.right_replies, 4)
        elif isinstance(accuracy, CallEvaluation):
            figures["right_messages"] = round(accuracy.right_messages, 4)
        else:
            figures["joint_goal_accuracy"] = accuracy and round(accuracy.joint_goal_accuracy, 4)
            figures["slot_accuracy"] = accuracy and round(accuracy.slot_accuracy, 4)
        return {
            "passed": self.passed,
            "findings": [finding.to_json() for finding in self.findings],
            "figures": {
                "asked": self.asked,
                "contexts_per_second": {
                    str(size): round(rate, 1) for size, rate in self.throughput.items()
                },
                **figures,
            },
        }


#: Batch sizes to try in addition to the configured one. 7 does not divide the usual sizes.
SIZES = (1, 2, 7, 64)
#: Number of dialogues, and of turns of each, that are asked repeatedly.
_DIALOGUES, _TURNS = 4, 4
#: Number of times that the same batch is asked. If a tracker remembers other contexts, its second
#: answer may differ from its first. Later differences are due to chance.
REPEATS = 4

_Item = TypeVar("_Item")


class ProbeTurn(NamedTuple):
    """A turn of the data as a context for the tracker."""

    #: The name in messages.
    name: str
    dialogue: str
    context: Context


class Answer(NamedTuple):
    """A valid answer."""

    prediction: Prediction
    #: Slots and values in the tracker's own spelling.
    written: Mapping[str, str]


class BatchAnswers(NamedTuple):
    """The answers of a tracker to batches of one size."""

    predictions: list[Prediction]
    seconds: float


class TrackerProbe:
    """A tracker under test with its answers so far. See `check_tracker` for the arguments."""

    def __init__(
        self,
        tracker: Tracker,
        data: DialogueSet,
        batch_size: int,
        progress: Callable[[int], None],
        *,
        repeatable: bool | None = None,
        outcome: OutcomeKind = "state",
        judge: ReplyJudge | CallJudge | None = None,
    ) -> None:
        self.tracker = tracker
        self.judge = judge
        self.kind = KINDS[outcome]
        self.repeatable = is_repeatable(tracker, repeatable, outcome)
        self.data = data
        self.batch_size = batch_size
        self.asked = 0
        self.turns = [
            ProbeTurn(f"dialogue {d.id} turn {t.index}", d.id, d.context(t.index))
            for d in data.dialogues
            for t in d.turns
        ]
        self._progress = progress

    def raw(self, batch: Sequence[Context]) -> list[object]:
        """Return one unchecked answer for each context, see `ask_raw`."""
        self.asked += len(batch)
        answers = ask_raw(self.tracker, batch, self.kind.name)
        self._progress(self.asked)
        return answers

    def checked(self, answer: object) -> Prediction:
        """Return an answer as a valid prediction, see `check_prediction`."""
        how = self.data.normalisation
        return check_prediction(answer, normalisation=how, outcome=self.kind.name)

    def ask(self, turns: Sequence[ProbeTurn]) -> list[Prediction]:
        """Return the answers to turns that are sent in one batch."""
        # Pass a new list, because a tracker may modify it.
        return [self.checked(answer) for answer in self.raw([turn.context for turn in turns])]

    @cached_property
    def survey(self) -> dict[int, Answer | DstFuzzError]:
        """Each turn's answer or error, by the position of the turn.

        If a batch fails, its contexts are sent one by one. If the first batch has no valid answer,
        the survey stops, because each request to a dead service would take many seconds.
        """
        found: dict[int, Answer | DstFuzzError] = {}
        contexts = [turn.context for turn in self.turns]
        for places in similar_lengths(contexts, self.batch_size):
            answers = self._survey([contexts[place] for place in places])
            found.update(zip(places, answers, strict=True))
            if not any(isinstance(answer, Answer) for answer in found.values()):
                break
        return dict(sorted(found.items()))

    def _survey(self, batch: list[Context]) -> list[Answer | DstFuzzError]:
        try:
            return list(map(self._answer, self.raw(list(batch))))
        except DstFuzzError as error:
            if len(batch) == 1:
                return [error]
        return [answer for context in batch for answer in self._survey([context])]

    def _answer(self, raw: object) -> Answer | DstFuzzError:
        try:
            prediction = self.checked(raw)
        except DstFuzzError as error:
            return error
        return Answer(prediction, dict(state_of(raw)))

    @cached_property
    def answers(self) -> dict[int, Answer]:
        """The valid answers by the position of the turn."""
        return {place: a for place, a in self.survey.items() if isinstance(a, Answer)}

    @cached_property
    def few(self) -> list[ProbeTurn]:
        """Turns of the dialogues with the most different answers.

        A tracker for one domain gives the same answer to most turns of other domains. Those turns
        would reveal nothing.
        """
        by_dialogue: dict[str, list[int]] = {}
        for place in self.answers:
            by_dialogue.setdefault(self.turns[place].dialogue, []).append(place)

        def variety(places: list[int]) -> int:
            return len({self.answers[place].prediction.state for place in places})

        rich = sorted(by_dialogue.values(), key=variety, reverse=True)[:_DIALOGUES]
        return [self.turns[place] for places in rich for place in spread(places, _TURNS)]

    @cached_property
    def few_alone(self) -> list[Prediction]:
        """The answers to ``few``, sent one by one in a shuffled order."""
        order = stream(0, "conformance", "order").permutation(len(self.few)).tolist()
        found = {place: self.ask([self.few[place]])[0] for place in order}
        return [found[place] for place in range(len(self.few))]

    @cached_property
    def repeats(self) -> list[list[Prediction]]:
        """The answers to ``few``, sent as one batch ``REPEATS`` times in a row."""
        return [self.ask(self.few) for _ in range(REPEATS)]

    @cached_property
    def many(self) -> list[ProbeTurn]:
        """Turns from all parts of the data, enough for the largest batch."""
        most = max(*SIZES, self.batch_size)
        return [self.turns[place] for place in spread(list(self.answers), most)]

    @cached_property
    def sized(self) -> dict[int, BatchAnswers | DstFuzzError]:
        """Map each batch size to the answers to ``many`` in such batches, or to the error."""
        sizes = {min(size, len(self.many)) for size in (*SIZES, self.batch_size)}
        return {size: self._in_batches(size) for size in sorted(sizes)}

    def _in_batches(self, size: int) -> BatchAnswers | DstFuzzError:
        turns = self.many[: max(size, *SIZES)]
        predictions: list[Prediction] = []
        began = time.perf_counter()
        for start in range(0, len(turns), size):
            try:
                predictions += self.ask(turns[start : start + size])
            except DstFuzzError as error:
                return error
        return BatchAnswers(predictions, time.perf_counter() - began)

    def throughput(self) -> dict[int, float]:
        """Map each batch size without an error to contexts answered per second."""
        return {
            size: len(found.predictions) / max(found.seconds, 1e-9)
            for size, found in self.sized.items()
            if isinstance(found, BatchAnswers)
        }


def state_of(answer: object) -> Mapping[str, str]:
    """Return the state of a valid answer without copying it.

    A plain text reply has no state.
    """
    if isinstance(answer, str):
        return {}
    return answer.state if isinstance(answer, Prediction) else cast("Mapping[str, str]", answer)


def spread(items: Sequence[_Item], count: int) -> list[_Item]:
    """Return at most ``count`` evenly spaced items, including the last one."""
    count = min(count, len(items))
    return [items[(number + 1) * len(items) // count - 1] for number in range(count)]


#: Two similar words with fewer letters than this are different words (``east``, ``west``).
_LETTERS = 5
#: If a misspelling is in fewer dialogues than this, the tracker probably copied a user's typo.
_SYSTEMATIC = 2


def slots(probe: TrackerProbe) -> CheckOutcome:
    """Check that all slots of the answers exist in the data."""
    ontology = probe.data.ontology
    if ontology is None or not ontology.complete:
        return skipped("the data does not list its slots")
    named = sorted({slot for a in probe.answers.values() for slot in a.prediction.state})
    problems = [problem for slot in named if (problem := unknown_slot({slot: ""}, ontology))]
    if problems:
        return failed(
            f"the tracker returns {first_few(problems)}",
            "Use the slot names of the data, or give an ontology with the slots of the tracker.",
        )
    return passed(
        f"{len(named)} of {format_count(len(ontology.slots), 'slot')} predicted, none unknown"
    )


def values(probe: TrackerProbe) -> CheckOutcome:
    """Check that values are spelled as in the data."""
    ontology = probe.data.ontology
    if ontology is None:
        return skipped("the data has no known values")
    dialogues: dict[tuple[str, str], set[str]] = {}
    for place, answer in probe.answers.items():
        for pair in answer.prediction.state.items():
            dialogues.setdefault(pair, set()).add(probe.turns[place].dialogue)
    often: list[str] = []
    seldom: list[str] = []
    for (slot, value), where in sorted(dialogues.items(), key=lambda item: -len(item[1])):
        known = ontology.values.get(slot, ())
        meant = None if value == DONTCARE or value in known else find_meant_value(value, known)
        if meant is not None:
            # If the tracker sometimes writes the right spelling, it only copies typos of users.
            copied = len(where) < _SYSTEMATIC or (slot, meant) in dialogues
            count = format_count(len(where), "dialogue")
            shown = f"{slot} {value!r} instead of {meant!r} (in {count})"
            (seldom if copied else often).append(shown)
    if often:
        return failed(
            f"values are spelled otherwise than in the data: {first_few(often)}",
            "Spell values as the ontology of the data does. Another spelling counts as a wrong "
            "value.",
        )
    if seldom:
        return warned(
            f"some values are misspelt: {first_few(seldom)}",
            "Such a value counts as wrong. If the tracker copies it from a typo of the user, its "
            "adapter is fine.",
        )
    if rewritten := list(dict.fromkeys(_rewritten(probe))):
        return warned(
            f"values are converted to the spelling of the data: {first_few(rewritten)}",
            "Nothing has to be done.",
        )
    return passed(f"{format_count(len(dialogues), 'value')}, all spelled as in the data")


def find_meant_value(value: str, known: Iterable[str]) -> str | None:
    """Return the known value with the spelling variant ``value``, or ``None``.

    Two spellings match if they have the same letters and digits (``09.30``, ``guest-house``). They
    also match if they have the same number of words, and each word is equal or a long word with one
    typo. Numbers never match by similarity.
    """
    for candidate in known:
        if _letters(candidate) == _letters(value) != "":
            return candidate
    words = value.split()
    for candidate in known:
        others = candidate.split()
        if len(words) == len(others) and all(map(_alike, words, others)):
            return candidate
    return None


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _alike(one: str, other: str) -> bool:
    """Return whether two words are equal, or are long and differ by one typo (``cheep``)."""
    if one == other:
        return True
    if min(len(one), len(other)) < _LETTERS or not (one + other).isalpha():
        return False
    return DamerauLevenshtein.distance(one, other) == 1


def _rewritten(probe: TrackerProbe) -> Iterator[str]:
    """Yield values that are not in the data's normal form. Skip values that mean absence."""
    rules = probe.data.normalisation
    for answer in probe.answers.values():
        for slot, value in answer.written.items():
            name = normalise_slot(slot, rules)
            read = None if name is None else normalise_value(name, value, rules)
            if name is not None and read is not None and (name, read) != (slot, value):
                yield f"{slot} {value!r} as {name} {read!r}"


#: An utterance of 2,000 characters.
LONG = ("we would like a quiet table near the window, and then a taxi; " * 40)[:2000]
#: Name in messages -> utterance.
UTTERANCES = {
    "an empty utterance": "",
    "only blanks": " \t ",
    "only emoji": "👍🏽 🍕🎉 👨‍👩‍👧",
    "2,000 characters": LONG,
    "control characters": "cheap\x00 food\x07 \x1b[31mplease\x7f",
    "right-to-left text": "أريد فندقًا رخيصًا في الشمال",
    "several lines": "a cheap hotel\r\nin the north\n\nplease\n",
    "capitals": "I NEED A CHEAP HOTEL IN THE NORTH",
    "only punctuation": "?!... --",
}
#: Advice by outcome.
_NOTHING_SAID = {
    "state": (
        "Users send such utterances. If there is nothing to understand, answer with the state so "
        "far."
    ),
    REPLY: (
        "Users send such utterances. If there is nothing to understand, reply with a text that "
        "says so."
    ),
    TOOL_CALLS: (
        "Users send such utterances. If there is nothing to understand, call no tool, and say so "
        "in a text."
    ),
}
_RETURNED = {
    "state": (
        "predict(contexts) must return one Prediction, or one mapping slot -> value, for each "
        "context; slots and values must be strings."
    ),
    REPLY: "A reply must be a text that is not empty.",
    TOOL_CALLS: 'A message must have "content", "tool_calls" or both, as in OpenAI\'s API.',
}


def odd_utterances(probe: TrackerProbe) -> CheckOutcome:
    """Check that odd utterances get answers, as first and later turns, alone and in a batch."""
    turns = _odd_turns(probe.few[0].context.exchanges[0])
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
            f"odd utterances get answers alone, but not in a batch: {error}",
            "Check the padding of empty inputs, and the longest context.",
        )
    return passed(f"{kinds} odd utterances are answered")


def _odd_turns(opening: Exchange) -> list[ProbeTurn]:
    """Return each odd utterance as a first turn and as a turn after ``opening``."""
    said: list[tuple[str, Exchange, tuple[Exchange, ...]]] = [
        (name, Exchange(system, text), before)
        for system, before in (("", ()), ("Anything else?", (opening,)))
        for name, text in UTTERANCES.items()
    ]
    said.append(("an empty system utterance", Exchange("", "a cheap one, please"), (opening,)))
    return [ProbeTurn(name, "", Context((*before, last))) for name, last, before in said]


def eval_mode(probe: TrackerProbe) -> CheckOutcome:
    """Check that no module of the tracker is in training mode."""
    if in_training_mode(probe.tracker):
        return failed(
            f"{probe.kind.words.who} is in training mode, in which dropout changes its answers",
            "Call .eval() on the model after loading it.",
        )
    return passed(f"no model of {probe.kind.words.who} is in training mode")


def clean_turns(probe: TrackerProbe) -> CheckOutcome:
    """Check that every turn of the data has a valid answer."""
    errors = [(place, a) for place, a in probe.survey.items() if not isinstance(a, Answer)]
    total = len(probe.survey)
    if not errors:
        return passed(f"one valid prediction for each of {format_count(total, 'clean turn')}")
    place, error = errors[0]
    which = f"all {total}" if len(errors) == total else f"{len(errors)} of {total}"
    return failed(
        f"no valid answer to {which} clean turns, such as {probe.turns[place].name}: {error}",
        f"A run counts such a turn as an error. {_RETURNED[probe.kind.name]}",
    )


def batch_sizes(probe: TrackerProbe) -> CheckOutcome:
    """Check that batches of every size have one answer for each context."""
    broken = {size: e for size, e in probe.sized.items() if isinstance(e, DstFuzzError)}
    if broken:
        what = "; ".join(f"batches of {size} fail: {error}" for size, error in broken.items())
        return failed(
            what,
            "Return one prediction for each context, for any number of contexts. If memory is "
            "short, split the batch inside the tracker.",
        )
    sizes = ", ".join(str(size) for size in probe.sized)
    return passed(f"one prediction for each context in batches of {sizes}")


def input_kept(probe: TrackerProbe) -> CheckOutcome:
    """Check that the tracker does not modify the batch, and accepts a tuple as well as a list."""
    contexts = [turn.context for turn in probe.few]
    before = [context.exchanges for context in contexts]
    batch = list(contexts)
    probe.raw(batch)
    if batch != contexts or [context.exchanges for context in contexts] != before:
        return failed(
            f"{probe.kind.words.who} modifies the batch",
            "Do not modify the contexts or their sequence: use sorted() instead of sort(), and do "
            "not use pop().",
        )
    try:
        probe.raw(tuple(contexts))
    except DstFuzzError as error:
        return failed(
            f"a batch that is a tuple has no answer: {error}",
            "A batch is a sequence: accept tuples as well as lists.",
        )
    return passed("the batch is not modified, and may be a list or a tuple")


def own_states(probe: TrackerProbe) -> CheckOutcome:
    """Check that contexts do not share answer objects, and that later calls change no answer."""
    answers = probe.raw([turn.context for turn in probe.few])
    kept = [probe.checked(answer) for answer in answers]
    states = [state_of(answer) for answer in answers]
    advice = "Return a new mapping for each context. Prediction(BeliefState(state)) makes a copy."
    for second, state in enumerate(states):
        for first in range(second):
            if (
                states[first] is state
                and not isinstance(state, Outcome)
                and probe.few_alone[first].state != probe.few_alone[second].state
            ):
                names = f"{probe.few[first].name} and {probe.few[second].name}"
                return failed(f"the answers to {names} are the same object", advice)
    probe.ask(probe.few[::-1])
    later = [probe.checked(answer) for answer in answers]
    if moved := difference(kept, later, (turn.name for turn in probe.few)):
        return failed(f"a later call changes an earlier answer ({moved})", advice)
    return passed("no answer changes after it was returned")


def deterministic(probe: TrackerProbe) -> CheckOutcome:
    """Check that the same batch always has the same answers.

    If only the first answers differ, the check `memory` reports that.
    """
    _, second, *others = probe.repeats
    if not probe.repeatable:
        return _disagreement(probe)
    for other in others:
        if moved := _moved(second, other, probe.few):
            return failed(
                f"a repeated batch has different answers ({moved})",
                "Switch off dropout and sampling (temperature 0), and seed random numbers. If that "
                f"is not possible, {VOTE}.",
            )
    again = f"{len(probe.repeats)} times in a row"
    return passed(f"a batch of {len(probe.few)} has the same answers {again}")


def _disagreement(probe: TrackerProbe) -> CheckOutcome:
    """Report how often a tracker gives different answers, if it need not be repeatable."""
    states = [{p.state for p in answers} for answers in zip(*probe.repeats, strict=True)]
    differed = sum(len(answers) > 1 for answers in states)
    times = f"asked {len(probe.repeats)} times"
    if not differed:
        return passed(f"{format_count(len(states), 'context')}, {times}, have the same answers")
    return warned(
        f"{differed} of {format_count(len(states), 'context')}, {times}, have different answers; "
        "that is allowed, because the tracker need not be repeatable",
        "A run asks such a tracker several times and takes a majority vote. If it can be made "
        "repeatable (temperature 0, a seed), do so.",
    )


def batch_order(probe: TrackerProbe) -> CheckOutcome:
    """Check that the answers to a batch are in the order of its contexts."""
    alone, together = probe.few_alone, probe.repeats[-1]
    moved = sum(one.state != other.state for one, other in zip(alone, together, strict=True))
    if moved and _states(alone) == _states(together):
        return failed(
            f"the answers to a batch of {len(probe.few)} are in the wrong order: "
            f"{moved} are at the place of another context",
            "If the tracker sorts the batch, for example by length, return the answers in the "
            "order of the contexts.",
        )
    return passed("the answers are in the order of the contexts")


def memory(probe: TrackerProbe) -> CheckOutcome:
    """Check that an answer does not depend on earlier contexts."""
    turns = probe.few
    forwards = [probe.ask([turn])[0] for turn in turns]
    backwards = probe.ask(turns[::-1])[::-1]
    first, again = probe.repeats[0], probe.repeats[-1]
    for what, one, other in (
        ("asked one by one in two orders", forwards, probe.few_alone),
        ("asked in a batch and in reverse order", again, backwards),
        ("asked in a batch and in the same batch again", first, again),
    ):
        if moved := _moved(one, other, turns):
            return failed(
                f"answers depend on earlier contexts: {format_count(len(turns), 'context')}, "
                f"{what}, have different answers ({moved})",
                "Keep no data between contexts. An object with reset() and update(system, user) "
                "may keep its state, and reset() must clear it completely.",
            )
    return passed(f"{format_count(len(turns), 'context')}: the same answers in any order")


def batch_alone(probe: TrackerProbe) -> CheckOutcome:
    """Check that a context has the same answer alone, in any batch, and with a long context."""
    advice = (
        "Mask the padding in attention, recurrence and pooling, and do not truncate a context "
        "because of a longer one."
    )
    sizes = {size: found for size, found in probe.sized.items() if isinstance(found, BatchAnswers)}
    alone = sizes[min(sizes)].predictions if sizes else []
    for size, found in sizes.items():
        count = min(len(alone), len(found.predictions))
        if moved := _moved(found.predictions[:count], alone[:count], probe.many[:count]):
            return failed(
                f"in batches of {size}, a context gets another answer than alone ({moved})",
                advice,
            )
    long = ProbeTurn("2,000 characters", "", Context((Exchange("", LONG),)))
    try:
        beside = probe.ask([*probe.few, long])[:-1]
    except DstFuzzError:
        # The check of odd utterances reports this failure.
        beside = probe.few_alone
    if moved := _moved(beside, probe.few_alone, probe.few):
        return failed(
            f"in a batch with one of 2,000 characters, a context has another answer ({moved})",
            advice,
        )
    shown = ", ".join(str(size) for size in sizes if size > 1)
    return passed(f"the same answers alone and in batches of {shown}")


def _moved(one: list[Prediction], other: list[Prediction], turns: Sequence[ProbeTurn]) -> str:
    return difference(one, other, (turn.name for turn in turns))


def _states(predictions: Iterable[Prediction]) -> Counter[object]:
    return Counter(prediction.state for prediction in predictions)


#: Advice if states are tested, and if replies or calls are tested.
_READS = (
    (
        "Check its input (context.user is the newest utterance, context.exchanges has all turns) "
        "and the slots that it returns, or choose other data with --data."
    ),
    (
        "Check its input (messages, the newest one last) and its output, or choose other data with "
        "--data."
    ),
)


def evaluation(probe: TrackerProbe) -> Evaluation | ReplyEvaluation | CallEvaluation | None:
    """Return the accuracy on the labelled turns, or ``None`` if a turn has no answer."""
    if not _has_labels(probe) or len(probe.answers) < len(probe.turns):
        return None
    answers = [answer.prediction for answer in probe.answers.values()]
    labelled = [_label(probe, turn) is not None for turn in _all_turns(probe)]
    own = [*compress(answers, labelled)]
    if probe.kind.has_tools:
        judge = probe.judge if isinstance(probe.judge, CallJudge) else EQUAL_CALLS
        return score_calls(probe.data, own, judge)
    if probe.kind.words.values:
        return score(probe.data, answers)
    return (
        score_replies(probe.data, own, probe.judge) if isinstance(probe.judge, ReplyJudge) else None
    )


def accuracy(probe: TrackerProbe) -> CheckOutcome:
    """Check that the tracker predicts something, varies its answers, and is sometimes right."""
    states = {answer.prediction.state for answer in probe.answers.values()}
    turns = format_count(len(probe.answers), "turn")
    words, reads = probe.kind.words, _READS[not probe.kind.has_slots]
    if not any(states):
        return warned(f"{words.who} {words.nothing} at any of {turns}", reads)
    if len(states) == 1 and len(probe.answers) > 1:
        return warned(f"{words.who} gives the same answer at all of {turns}", reads)
    found = evaluation(probe)
    if found is None:
        why = (
            "some turns have no answer" if _has_labels(probe) else f"the data has no {words.labels}"
        )
        return skipped(f"{why}; {format_count(len(states), 'different answer')} at {turns}")
    of = format_count(found.turns, "turn")
    if found.unlabelled:
        of = f"{of} with {words.labels} ({found.unlabelled} have none)"
    right = f"right at {found.right} of {of}"
    return passed(right) if found.right else warned(right, reads)


def _has_labels(probe: TrackerProbe) -> bool:
    return any(_label(probe, turn) is not None for turn in _all_turns(probe))


def _all_turns(probe: TrackerProbe) -> Iterator[tuple[Dialogue, int]]:
    return ((dialogue, turn.index) for dialogue in probe.data.dialogues for turn in dialogue.turns)


def _label(probe: TrackerProbe, turn: tuple[Dialogue, int]) -> Outcome | None:
    return probe.kind.label(*turn)


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a tracker."""

    name: str
    run: Callable[[TrackerProbe], CheckOutcome]
    #: Earlier checks. If one of them fails, this check fails, too.
    explained_by: tuple[str, ...] = ()
    #: Whether the check applies to a tracker without any valid answer.
    unanswered: bool = False
    #: Whether the check is about slots and values.
    of_slots: bool = False


_BATCHES = ("batch-sizes",)
_OBJECTS = (*_BATCHES, "input-kept", "own-states")
_CHANCE = (*_OBJECTS, "eval-mode", "deterministic")

#: All checks. If a tracker answers at random, several checks fail. A failure that an earlier check
#: explains is not counted again.
CHECKS = (
    Check("eval-mode", eval_mode, unanswered=True),
    Check("clean-turns", clean_turns, unanswered=True),
    Check("batch-sizes", batch_sizes),
    Check("input-kept", input_kept, _BATCHES),
    Check("own-states", own_states, (*_BATCHES, "input-kept")),
    Check("deterministic", deterministic, (*_OBJECTS, "eval-mode")),
    Check("batch-order", batch_order, _CHANCE),
    Check("memory", memory, (*_CHANCE, "batch-order")),
    Check("batch-alone", batch_alone, (*_CHANCE, "batch-order", "memory")),
    Check("odd-utterances", odd_utterances, (*_BATCHES, "input-kept")),
    Check("slots", slots, of_slots=True),
    Check("values", values, of_slots=True),
    Check("accuracy", accuracy),
)


def check_tracker(
    tracker: Tracker,
    data: DialogueSet,
    batch_size: int = 64,
    progress: Callable[[int], None] = lambda _: None,
    *,
    repeatable: bool | None = None,
    outcome: OutcomeKind = "state",
    judge: ReplyJudge | CallJudge | None = None,
) -> Conformance:
    """Run every check on a tracker.

    The tracker gets each turn of the data once, and about 500 more contexts in repeated calls.

    ``progress`` receives the number of contexts so far. ``repeatable`` is the user's own statement,
    see `is_repeatable`. ``judge`` compares replies or calls with the recorded ones. If it is
    ``None``, replies are not compared, and calls are compared by equality.
    """
    probe = TrackerProbe(
        tracker, data, batch_size, progress, repeatable=repeatable, outcome=outcome, judge=judge
    )
    if not probe.turns:
        raise UserError(f"{data.name!r} has no turns in its split {data.split!r}")
    findings: list[Finding] = []
    for check in CHECKS:
        if check.of_slots and not probe.kind.has_slots:
            continue
        findings.append(_judged(check, probe, findings))
    rates = probe.throughput() if probe.answers else {}
    return Conformance(tuple(findings), rates, evaluation(probe), probe.asked)


def _judged(check: Check, probe: TrackerProbe, before: Sequence[Finding]) -> Finding:
    """Return the result of a check. Skip it if an earlier finding explains its failure."""
    if not (check.unanswered or probe.answers):
        return Finding(check.name, "skipped", "not tested, because no clean turn has an answer")
    try:
        finding = Finding(check.name, *check.run(probe))
    except DstFuzzError as error:
        advice = "It answered the same contexts before, so look for a cause that varies."
        finding = Finding(check.name, "failed", f"{probe.kind.words.who} failed: {error}", advice)
    # A warning also explains failures: a tracker that is not deterministic may get only a warning.
    found = {earlier.check for earlier in before if earlier.status in ("failed", "warned")}
    cause = next((name for name in check.explained_by if name in found), None)
    if finding.status == "failed" and cause is not None:
        message = f"not judged, because the check {cause} failed and explains it"
        return replace(finding, status="skipped", message=message, advice="")
    return finding
