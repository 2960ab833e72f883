"""What the checks ask a tracker: each question once, its answers shared by all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar, cast

from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet
from pytest_dstfuzz.dialogue.outcome import OutcomeKind
from pytest_dstfuzz.errors import DstFuzzError
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.trackers.calls.evaluate import CallJudge
from pytest_dstfuzz.trackers.evaluate import similar_lengths
from pytest_dstfuzz.trackers.replies.evaluate import ReplyJudge
from pytest_dstfuzz.trackers.tracker import Prediction, Tracker, is_repeatable
from pytest_dstfuzz.trackers.validation import ask_raw, check_prediction

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
