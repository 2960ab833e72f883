"""The accuracy of a tracker on the labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pytest_dstfuzz.config.parsers import percent
from pytest_dstfuzz.dialogue.calls import Outcome, OutcomeKind
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, DialogueSet
from pytest_dstfuzz.errors import TrackerError, UserError
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.printable import format_count
from pytest_dstfuzz.trackers.tracker import Prediction, Tracker
from pytest_dstfuzz.trackers.validation import ask_raw, check_prediction, describe_error

__all__ = ["Evaluation", "evaluate", "predict_all"]


#: A function of the context, the label and the predicted state. It returns the predicted state, in
#: which values of the label replace equivalent values.
InWordsOf = Callable[[Context, Outcome, Outcome], Outcome]
#: Called with the number of contexts predicted so far and the total.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class DomainAccuracy:
    """Joint goal accuracy on the slots of one domain.

    It covers all turns of the dialogues whose labels contain the domain. A turn is right if every
    slot of the domain is right.
    """

    domain: str
    turns: int
    right: int

    @property
    def joint_goal_accuracy(self) -> float:
        """Share of the turns that are right."""
        return self.right / self.turns


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The accuracy of a tracker on the turns that have labels."""

    data: str
    split: str
    #: Dialogues and turns that have labels.
    dialogues: int
    turns: int
    #: Turns whose whole state is right.
    right: int
    #: Number of slots that the slot accuracy counts at each turn.
    slots: int
    #: Number of right (turn, slot) pairs, including slots that label and state both leave out.
    right_slots: int
    domains: tuple[DomainAccuracy, ...]
    #: Dialogues that are right at every turn with a label, in data order.
    right_dialogues: tuple[str, ...]
    #: Layout of the data, normalisation of its values, and notes about how it was read.
    layout: str
    normalisation: str
    notes: tuple[str, ...]
    #: The reason for each turn without an answer. These turns count as wrong.
    unanswered: tuple[str, ...] = ()
    #: Turns without a label. They are not asked, and no figure counts them.
    unlabelled: int = 0

    @property
    def joint_goal_accuracy(self) -> float:
        """Share of turns with a completely right state."""
        return self.right / self.turns

    @property
    def slot_accuracy(self) -> float:
        """Share of (turn, slot) pairs that are right."""
        return self.right_slots / (self.turns * self.slots)

    def figures(self) -> list[tuple[str, str]]:
        """Return the names of the figures with their values as text."""
        of = format_count(self.turns, "turn") + (" with labels" if self.unlabelled else "")
        return [
            ("joint goal accuracy", f"{percent(self.joint_goal_accuracy)} of {of}"),
            ("slot accuracy", percent(self.slot_accuracy)),
        ]

    def to_json(self) -> dict[str, Any]:
        """Return a plain dictionary with rates rounded to 4 decimals."""
        return {
            "data": self.data,
            "split": self.split,
            "layout": self.layout,
            "normalisation": self.normalisation,
            "notes": list(self.notes),
            "dialogues": self.dialogues,
            "turns": self.turns,
            "unlabelled": self.unlabelled,
            "unanswered": len(self.unanswered),
            "right": self.right,
            "joint_goal_accuracy": round(self.joint_goal_accuracy, 4),
            "slots": self.slots,
            "slot_accuracy": round(self.slot_accuracy, 4),
            "domains": {
                item.domain: {
                    "turns": item.turns,
                    "right": item.right,
                    "joint_goal_accuracy": round(item.joint_goal_accuracy, 4),
                }
                for item in self.domains
            },
            "right_dialogues": list(self.right_dialogues),
        }

    def lines(self) -> list[str]:
        """Return the figures as lines of text."""
        where = f"{self.data}, split {self.split}"
        dialogues, turns = (
            format_count(self.dialogues, "dialogue"),
            format_count(self.turns, "turn"),
        )
        slots = format_count(self.slots, "slot")
        joint = f"{percent(self.joint_goal_accuracy):>9}  ({self.right} of {turns})"
        rows = [
            f"data                  {where}: {dialogues}, {turns}",
            f"layout                {self.layout}",
            f"normalisation         {self.normalisation}",
        ]
        if self.unlabelled:
            rows.append(
                f"labels                on {self.turns} of {self.turns + self.unlabelled} turns; "
                "the figures cover only these turns and their dialogues"
            )
        rows += [f"note                  {note}" for note in self.notes]
        if self.unanswered:
            rows.append(
                f"no answer             {len(self.unanswered)} of {turns}, counted as wrong; for "
                f"example: {self.unanswered[0]}"
            )
        rows += [
            f"joint goal accuracy   {joint}",
            f"slot accuracy         {percent(self.slot_accuracy):>9}  ({slots})",
            f"right throughout      {len(self.right_dialogues)} of {dialogues}",
        ]
        if self.domains:
            rows.append("joint goal accuracy by domain (turns of dialogues with labels in it):")
            rows += [
                f"  {item.domain:<19} {percent(item.joint_goal_accuracy):>9}  "
                f"({item.right} of {format_count(item.turns, 'turn')})"
                for item in self.domains
            ]
        return rows


def evaluate(
    tracker: Tracker,
    data: DialogueSet,
    batch_size: int,
    progress: Progress | None = None,
    in_words_of: InWordsOf | None = None,
) -> Evaluation:
    """Predict the labelled turns of ``data``, and compare the predictions with the labels.

    ``in_words_of`` applies the rules of slots: it decides which values equal the label. A turn
    counts as wrong if the tracker reports no answer.

    Raises:
        UserError: the data has no turns, or none with a label.
        TrackerError: the tracker has no answer to any turn.
    """
    labels = _labels(data)
    contexts = [
        dialogue.context(turn.index)
        for dialogue in data.dialogues
        for turn in dialogue.turns
        if turn.state is not None
    ]
    answers = predict_all(tracker, contexts, batch_size, progress, data.normalisation)
    failures = [answer for answer in answers if isinstance(answer, TrackerError)]
    if len(failures) == len(answers):
        raise failures[0]
    if in_words_of is not None:
        every = [label for turns in labels for label in turns]
        answers = [
            replace(answer, state=in_words_of(asked, label, answer.state))
            if isinstance(answer, Prediction)
            else answer
            for asked, label, answer in zip(contexts, every, answers, strict=True)
        ]
    return _count(data, labels, answers)


def score(data: DialogueSet, predictions: Sequence[Prediction]) -> Evaluation:
    """Compare predictions with the labels. There is one normalised prediction for each turn.

    Raises:
        UserError: the data has no turns, or none with a label.
    """
    labels = _labels(data)
    turns = [turn for dialogue in data.dialogues for turn in dialogue.turns]
    answers = [
        answer for turn, answer in zip(turns, predictions, strict=True) if turn.state is not None
    ]
    return _count(data, labels, answers)


def _labels(data: DialogueSet) -> list[list[BeliefState]]:
    """Return the labels of each dialogue, with an empty list if it has none."""
    if not data.turn_count():
        raise UserError(f"{data.name!r} has no turns in its split {data.split!r}")
    labels = [
        [turn.state for turn in dialogue.turns if turn.state is not None]
        for dialogue in data.dialogues
    ]
    if not any(labels):
        raise UserError(
            f"no turn of {data.name!r} has a belief state: accuracy needs labels on some turns "
            "('state' in JSON Lines)"
        )
    return labels


def predict_all(
    tracker: Tracker,
    contexts: list[Context],
    batch_size: int,
    progress: Progress | None = None,
    normalisation: str = "plain",
    outcome: OutcomeKind = "state",
) -> list[Prediction | TrackerError]:
    """Predict contexts in batches of similar length. Return the answers in the given order.

    Answers are checked for their ``outcome``, and states are normalised. A `TrackerError` in the
    place of an answer is kept.
    """
    answers: dict[int, Prediction | TrackerError] = {}
    for chunk in similar_lengths(contexts, batch_size):
        given = ask_raw(tracker, [contexts[index] for index in chunk], outcome)
        for index, answer in zip(chunk, given, strict=True):
            if isinstance(answer, TrackerError):
                answers[index] = answer
            else:
                answers[index] = check_prediction(
                    answer, normalisation=normalisation, outcome=outcome
                )
        if progress is not None:
            progress(len(answers), len(contexts))
    return [answers[index] for index in range(len(contexts))]


def similar_lengths(contexts: Sequence[Context], batch_size: int) -> Iterator[list[int]]:
    """Yield the positions of the contexts in each batch, shortest contexts first."""
    order = sorted(range(len(contexts)), key=lambda index: contexts[index].size())
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]


def _count(
    data: DialogueSet,
    labels: list[list[BeliefState]],
    answers: Sequence[Prediction | TrackerError],
) -> Evaluation:
    # None stands for a missing answer, and equals no label.
    states = iter([answer.state if isinstance(answer, Prediction) else None for answer in answers])
    pairs = [[(label, next(states)) for label in turns] for turns in labels]
    every = [pair for turns in pairs for pair in turns]
    named = {slot for label, _ in every for slot in label}
    # Without an ontology, the slots are those of the labels.
    slots = set(data.ontology.slots) if data.ontology is not None else named
    slots |= {slot for _, state in every for slot in state or ()}
    return Evaluation(
        data=data.name,
        split=data.split,
        dialogues=sum(map(bool, labels)),
        turns=len(every),
        unlabelled=data.turn_count() - len(every),
        right=sum(label == state for label, state in every),
        slots=len(slots),
        right_slots=sum(
            label.get(slot) == state.get(slot)
            for label, state in every
            if state is not None
            for slot in slots
        ),
        domains=_by_domain(pairs, named),
        right_dialogues=tuple(
            dialogue.id
            for dialogue, turns in zip(data.dialogues, pairs, strict=True)
            if turns and all(label == state for label, state in turns)
        ),
        layout=data.layout,
        normalisation=data.normalisation,
        notes=data.notes,
        unanswered=tuple(
            describe_error(answer) for answer in answers if isinstance(answer, TrackerError)
        ),
    )


def _by_domain(
    dialogues: list[list[tuple[BeliefState, Outcome | None]]], slots: set[str]
) -> tuple[DomainAccuracy, ...]:
    rows: list[DomainAccuracy] = []
    for domain in sorted({slot.split("-")[0] for slot in slots if "-" in slot}):

        def part(state: Outcome, start: str = f"{domain}-") -> dict[str, str]:
            return {slot: value for slot, value in state.items() if slot.startswith(start)}

        turns = [
            state is not None and part(label) == part(state)
            for pairs in dialogues
            if any(part(label) for label, _ in pairs)
            for label, state in pairs
        ]
        rows.append(DomainAccuracy(domain, len(turns), sum(turns)))
    return tuple(rows)


class RecordedTurn(NamedTuple):
    """A turn and the recorded action of the system."""

    dialogue: str
    context: Context
    label: Outcome


def list_recorded_turns(data: DialogueSet, outcome: OutcomeKind) -> list[RecordedTurn]:
    """Return the turns with a recorded outcome, in data order."""
    return [
        RecordedTurn(dialogue.id, dialogue.context(turn.index), label)
        for dialogue in data.dialogues
        for turn in dialogue.turns
        if (label := KINDS[outcome].label(dialogue, turn.index)) is not None
    ]


def ask_recorded(
    tracker: Tracker,
    turns: Sequence[RecordedTurn],
    outcome: OutcomeKind,
    batch_size: int,
    progress: Progress | None,
) -> list[Prediction | TrackerError]:
    """Return for each turn the answer, or an error in its place.

    Raises:
        TrackerError: no turn has an answer.
    """
    contexts = [turn.context for turn in turns]
    answers = predict_all(tracker, contexts, batch_size, progress, outcome=outcome)
    failures = [answer for answer in answers if isinstance(answer, TrackerError)]
    if len(failures) == len(answers):
        raise failures[0]
    return answers


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedFigures:
    """The figures that evaluations of replies and of tool calls share."""

    data: str
    split: str
    #: Dialogues and turns with a recorded outcome.
    dialogues: int
    turns: int
    right: int
    #: Name of the comparison.
    comparison: str
    #: Layout of the data, and notes about how it was read.
    layout: str
    notes: tuple[str, ...]
    #: The reason for each turn without an answer. These turns count as wrong.
    unanswered: tuple[str, ...] = ()
    #: Turns without a recorded outcome. No figure counts them.
    unlabelled: int = 0

    @property
    def share(self) -> float:
        """Share of the turns that are right."""
        return self.right / self.turns

    def common_json(self) -> dict[str, Any]:
        """Return the keys that all kinds of figures share, as a plain dictionary."""
        return {
            "data": self.data,
            "split": self.split,
            "layout": self.layout,
            "notes": list(self.notes),
            "dialogues": self.dialogues,
            "turns": self.turns,
            "unlabelled": self.unlabelled,
            "unanswered": len(self.unanswered),
            "comparison": self.comparison,
            "right": self.right,
        }

    def common_lines(self, recorded: str, where: str, answer: str) -> list[str]:
        """Return the lines that all kinds of figures share.

        Args:
            recorded: plural name of the recorded outcomes, such as ``recorded answers``.
            where: ``on`` or ``after`` the turns.
            answer: name of a system's answer, such as ``reply``.
        """
        source = f"{self.data}, split {self.split}"
        turns = format_count(self.turns, "turn")
        rows = [
            f"data                  {source}: {format_count(self.dialogues, 'dialogue')}, {turns}",
            f"layout                {self.layout}",
            f"compared by           {self.comparison}",
        ]
        if self.unlabelled:
            rows.append(
                f"{recorded:<21} {where} {self.turns} of {self.turns + self.unlabelled} turns; the "
                "figures cover only these turns"
            )
        rows += [f"note                  {note}" for note in self.notes]
        if self.unanswered:
            rows.append(
                f"{f'no {answer}':<21} {len(self.unanswered)} of {turns}, counted as wrong; for "
                f"example: {self.unanswered[0]}"
            )
        return rows


def reasons(answers: Sequence[Prediction | TrackerError]) -> tuple[str, ...]:
    """Return the reason of each error among the answers."""
    return tuple(describe_error(answer) for answer in answers if isinstance(answer, TrackerError))
