"""The conformance kit: checks of the contract of a tracker."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import compress
from typing import Any, Final, Literal, NamedTuple, TypeVar, cast

import jellyfish

from pytest_dstfuzz.dialogue.calls import REPLY, TOOL_CALLS, Outcome, OutcomeKind
from pytest_dstfuzz.dialogue.dialogues import DONTCARE, Context, Dialogue, DialogueSet, Exchange
from pytest_dstfuzz.dialogue.normalise import normalise_slot, normalise_value
from pytest_dstfuzz.errors import DstFuzzError, UserError
from pytest_dstfuzz.json_data import to_json
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.printable import counted
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


#: ``warned`` is no failure; ``skipped`` says nothing about the tracker.
Status = Literal["passed", "failed", "warned", "skipped"]


class CheckOutcome(NamedTuple):
    """What a check says of a tracker."""

    status: Status
    #: What was seen, in one sentence.
    message: str
    #: What to do about it; ``""`` where nothing has to be done.
    advice: str = ""


passed: Final = partial(CheckOutcome, "passed")
failed: Final = partial(CheckOutcome, "failed")
warned: Final = partial(CheckOutcome, "warned")
skipped: Final = partial(CheckOutcome, "skipped")

#: Of what a check finds several of, so many are shown.
_SHOWN: Final = 3


def first_few(texts: Sequence[str], sign: str = "; ") -> str:
    """Return some of what a check found, with a sign between, and how many more there are."""
    more = [f"and {len(texts) - _SHOWN} more"] if len(texts) > _SHOWN else []
    return sign.join([*texts[:_SHOWN], *more])


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check of a tracker."""

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
    """What all checks said of one tracker."""

    findings: tuple[Finding, ...]
    #: Batch size -> contexts answered in a second, as the clock had it on that machine.
    throughput: Mapping[int, float]
    #: Accuracy by the labels; ``None`` where the data has none, or a turn has no answer.
    evaluation: Evaluation | ReplyEvaluation | CallEvaluation | None
    #: Contexts that the tracker was asked for, repetitions included.
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
        """Return how many checks failed, warned, passed and could not be judged."""
        counts = Counter(finding.status for finding in self.findings)
        parts = [
            f"{counts[status]} {status}"
            for status in ("failed", "warned", "passed", "skipped")
            if counts[status] or status == "passed"
        ]
        return f"{len(self.findings)} checks: {', '.join(parts)}"

    def assert_passed(self) -> None:
        """Raise an `AssertionError` when a check failed: which, why, and what to do about it."""
        if not self.passed:
            raise AssertionError(self.explain())

    def explain(self) -> str:
        """Return the failed checks with their advice, one below the other."""
        return "\n".join([self.headline(), *map(str, self.failures)])

    def to_json(self) -> dict[str, Any]:
        """Return a plain dictionary: what was found, and the figures."""
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


#: Batch sizes that are tried, beside that of the run; 7 fills no batch of a usual size.
SIZES = (1, 2, 7, 64)
#: Dialogues, and turns of each, that are asked for again and again.
_DIALOGUES, _TURNS = 4, 4
#: How often the same batch is asked for. What a tracker remembers of other contexts may
#: change its second answer; after that only chance does.
REPEATS = 4

_Item = TypeVar("_Item")


class ProbeTurn(NamedTuple):
    """A turn of the data as a tracker is asked for it."""

    #: How messages call it.
    name: str
    dialogue: str
    context: Context


class Answer(NamedTuple):
    """A sound answer."""

    prediction: Prediction
    #: Slots and values as the tracker wrote them.
    written: Mapping[str, str]


class Sized(NamedTuple):
    """The answers of a tracker that was asked in batches of one size."""

    predictions: list[Prediction]
    seconds: float


class TrackerProbe:
    """Asks a tracker, and remembers what it said; for the arguments, see `check_tracker`."""

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
        """Return one unchecked answer for each context; see `ask_raw`."""
        self.asked += len(batch)
        answers = ask_raw(self.tracker, batch, self.kind.name)
        self._progress(self.asked)
        return answers

    def checked(self, answer: object) -> Prediction:
        """Return an answer as a sound prediction; see `check_prediction`."""
        how = self.data.normalisation
        return check_prediction(answer, normalisation=how, outcome=self.kind.name)

    def ask(self, turns: Sequence[ProbeTurn]) -> list[Prediction]:
        """Return the answers to turns that are asked for in one batch."""
        # A list of its own: a tracker may do to it what it likes.
        return [self.checked(answer) for answer in self.raw([turn.context for turn in turns])]

    @cached_property
    def survey(self) -> dict[int, Answer | DstFuzzError]:
        """Place of a turn -> the answer to it, alone where its batch failed as a whole.

        Where the whole first batch fails, no more is asked for: a service that is down would
        cost many seconds a turn.
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
        """Place of a turn -> the sound answer to it."""
        return {place: a for place, a in self.survey.items() if isinstance(a, Answer)}

    @cached_property
    def few(self) -> list[ProbeTurn]:
        """Turns of some dialogues: of those in which the answers change most.

        A tracker that knows one domain alone says the same to most turns, which shows
        nothing.
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
        """The answers to ``few`` one by one, asked for in a mixed order."""
        order = stream(0, "conformance", "order").permutation(len(self.few)).tolist()
        found = {place: self.ask([self.few[place]])[0] for place in order}
        return [found[place] for place in range(len(self.few))]

    @cached_property
    def repeats(self) -> list[list[Prediction]]:
        """The answers to ``few`` as one batch, asked for ``REPEATS`` times in a row."""
        return [self.ask(self.few) for _ in range(REPEATS)]

    @cached_property
    def many(self) -> list[ProbeTurn]:
        """Turns of all over the data, enough for the largest batch."""
        most = max(*SIZES, self.batch_size)
        return [self.turns[place] for place in spread(list(self.answers), most)]

    @cached_property
    def sized(self) -> dict[int, Sized | DstFuzzError]:
        """Batch size -> the answers to ``many`` in batches of it, or why there are none."""
        sizes = {min(size, len(self.many)) for size in (*SIZES, self.batch_size)}
        return {size: self._in_batches(size) for size in sorted(sizes)}

    def _in_batches(self, size: int) -> Sized | DstFuzzError:
        turns = self.many[: max(size, *SIZES)]
        predictions: list[Prediction] = []
        began = time.perf_counter()
        for start in range(0, len(turns), size):
            try:
                predictions += self.ask(turns[start : start + size])
            except DstFuzzError as error:
                return error
        return Sized(predictions, time.perf_counter() - began)

    def throughput(self) -> dict[int, float]:
        """Return batch size -> contexts answered in a second, where all were."""
        return {
            size: len(found.predictions) / max(found.seconds, 1e-9)
            for size, found in self.sized.items()
            if isinstance(found, Sized)
        }


def state_of(answer: object) -> Mapping[str, str]:
    """Return the state of a sound answer as the tracker gave it, not copied.

    A reply that is a text alone has none.
    """
    if isinstance(answer, str):
        return {}
    return answer.state if isinstance(answer, Prediction) else cast("Mapping[str, str]", answer)


def spread(items: Sequence[_Item], count: int) -> list[_Item]:
    """Return at most ``count`` items, evenly spread, the last one among them."""
    count = min(count, len(items))
    return [items[(number + 1) * len(items) // count - 1] for number in range(count)]


#: In fewer letters two words that are alike are two words (``east``, ``west``).
_LETTERS = 5
#: A value that is misspelt in one dialogue alone was probably copied from a typing error.
_SYSTEMATIC = 2


def slots(probe: TrackerProbe) -> CheckOutcome:
    """Every slot of an answer is one that the data has."""
    ontology = probe.data.ontology
    if ontology is None or not ontology.complete:
        return skipped("the data does not say which slots there are")
    named = sorted({slot for a in probe.answers.values() for slot in a.prediction.state})
    problems = [problem for slot in named if (problem := unknown_slot({slot: ""}, ontology))]
    if problems:
        return failed(
            f"the tracker returns {first_few(problems)}",
            "Name slots as the data does, or give the data an ontology with yours.",
        )
    return passed(f"{len(named)} slots, all known ({len(ontology.slots)} there are)")


def values(probe: TrackerProbe) -> CheckOutcome:
    """No value is a known one in another spelling."""
    ontology = probe.data.ontology
    if ontology is None:
        return skipped("the data knows no values")
    dialogues: dict[tuple[str, str], set[str]] = {}
    for place, answer in probe.answers.items():
        for pair in answer.prediction.state.items():
            dialogues.setdefault(pair, set()).add(probe.turns[place].dialogue)
    often: list[str] = []
    seldom: list[str] = []
    for (slot, value), where in sorted(dialogues.items(), key=lambda item: -len(item[1])):
        known = ontology.values.get(slot, ())
        meant = None if value == DONTCARE or value in known else meant_value(value, known)
        if meant is not None:
            # A tracker that also writes it as it should be copies what users mistype.
            copied = len(where) < _SYSTEMATIC or (slot, meant) in dialogues
            count = counted(len(where), "dialogue")
            shown = f"{slot} {value!r} where the data has {meant!r} (in {count})"
            (seldom if copied else often).append(shown)
    if often:
        return failed(
            f"values in a spelling of their own: {first_few(often)}",
            "Write values as the ontology of the data does: each other spelling counts as another "
            "value, and so as wrong.",
        )
    if seldom:
        return warned(
            f"now and then a value is misspelt: {first_few(seldom)}",
            "It counts as wrong. Where it is copied from a typing error of the user, that is how "
            "the tracker is, and nothing is wrong with its adapter.",
        )
    if rewritten := list(dict.fromkeys(_rewritten(probe))):
        return warned(
            "values are read in the spelling of the data, so nothing is lost: "
            f"{first_few(rewritten)}",
            "Nothing has to be done.",
        )
    return passed(f"{len(dialogues)} values, none a known one in another spelling")


def meant_value(value: str, known: Iterable[str]) -> str | None:
    """Return the known value of which ``value`` is another spelling, if it is one.

    That is: the same letters and digits (``09.30``, ``guest-house``), or the same number of
    words, each the same or a long word misspelt. Numbers are never alike.
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
    """Whether two words are the same, or long and one typing error apart (``cheep``)."""
    if one == other:
        return True
    if min(len(one), len(other)) < _LETTERS or not (one + other).isalpha():
        return False
    return int(jellyfish.damerau_levenshtein_distance(one, other)) == 1


def _rewritten(probe: TrackerProbe) -> Iterator[str]:
    """Yield what the tracker writes otherwise than it is read; absence may be written."""
    rules = probe.data.normalisation
    for answer in probe.answers.values():
        for slot, value in answer.written.items():
            name = normalise_slot(slot, rules)
            read = None if name is None else normalise_value(name, value, rules)
            if name is not None and read is not None and (name, read) != (slot, value):
                yield f"{slot} {value!r} as {name} {read!r}"


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
            f"odd utterances are answered alone, and not in one batch with others: {error}",
            "Look at the padding of what comes out empty, and at the longest context.",
        )
    return passed(f"{kinds} odd utterances are answered")


def _odd_turns(opening: Exchange) -> list[ProbeTurn]:
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


#: What to do, where states are tested, and where replies are.
_READS = (
    (
        "Look at what it is given (context.user is the newest utterance, context.exchanges all of "
        "them) and at the slots that it returns; or name other data with --data."
    ),
    (
        "Look at what it is given (messages, the newest one last) and at what it returns; or name "
        "other data with --data."
    ),
)


def evaluation(probe: TrackerProbe) -> Evaluation | ReplyEvaluation | CallEvaluation | None:
    """Return the accuracy on the turns with labels, where every turn has an answer."""
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
    """The tracker predicts something, not always the same, and is right now and then."""
    states = {answer.prediction.state for answer in probe.answers.values()}
    turns = f"{len(probe.answers)} turns"
    words, reads = probe.kind.words, _READS[not probe.kind.has_slots]
    if not any(states):
        return warned(f"{words.who} {words.nothing} at any of {turns}", reads)
    if len(states) == 1 and len(probe.answers) > 1:
        return warned(f"{words.who} says the same to all of {turns}", reads)
    found = evaluation(probe)
    if found is None:
        why = (
            "some turns have no answer" if _has_labels(probe) else f"the data has no {words.labels}"
        )
        return skipped(f"{why}; {len(states)} different answers at {turns}")
    of = f"{found.turns} turns"
    if found.unlabelled:
        of = f"the {of} that have {words.labels} ({found.unlabelled} have none)"
    right = f"{found.right} of {of} are right"
    return passed(right) if found.right else warned(right, reads)


def _has_labels(probe: TrackerProbe) -> bool:
    return any(_label(probe, turn) is not None for turn in _all_turns(probe))


def _all_turns(probe: TrackerProbe) -> Iterator[tuple[Dialogue, int]]:
    return ((dialogue, turn.index) for dialogue in probe.data.dialogues for turn in dialogue.turns)


def _label(probe: TrackerProbe, turn: tuple[Dialogue, int]) -> Outcome | None:
    return probe.kind.label(*turn)


@dataclass(frozen=True, slots=True)
class Check:
    """One question about a tracker."""

    name: str
    run: Callable[[TrackerProbe], CheckOutcome]
    #: Earlier checks whose failure alone makes this one fail too.
    explained_by: tuple[str, ...] = ()
    #: Whether it can be asked of a tracker that answered nothing.
    unanswered: bool = False
    #: Whether it is about slots and values.
    of_slots: bool = False


_BATCHES = ("batch-sizes",)
_OBJECTS = (*_BATCHES, "input-kept", "own-states")
_CHANCE = (*_OBJECTS, "eval-mode", "deterministic")

#: All checks. Of a tracker that answers at random other checks fail too: a failure that an
#: earlier one explains is not counted again.
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
    """Put every check to a tracker.

    It is asked for each turn of the data once, and for some of them again and again: some
    500 contexts more.

    ``progress`` is told how many contexts were asked for so far; ``repeatable`` is what the user
    says of the tracker, see `is_repeatable`. Where the ``outcome`` is a reply, ``judge`` says which
    are right; ``None`` = that is not looked at, or of tool calls, those that are equal.
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
    """Return the finding of a check, ``skipped`` where an earlier one explains its failure."""
    if not (check.unanswered or probe.answers):
        return Finding(check.name, "skipped", "not asked: no clean turn has an answer")
    try:
        finding = Finding(check.name, *check.run(probe))
    except DstFuzzError as error:
        advice = "It answered the same contexts before: look for what is not the same each time."
        finding = Finding(check.name, "failed", f"{probe.kind.words.who} failed: {error}", advice)
    # A tracker that warns of chance need not be deterministic: all the same it explains.
    found = {earlier.check for earlier in before if earlier.status in ("failed", "warned")}
    cause = next((name for name in check.explained_by if name in found), None)
    if finding.status == "failed" and cause is not None:
        message = f"not judged: what {cause} found explains it"
        return replace(finding, status="skipped", message=message, advice="")
    return finding
