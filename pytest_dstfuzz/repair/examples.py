"""Training examples from a report: the edited dialogue, with the right answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple

from pytest_dstfuzz import (
    BeliefState,
    Delta,
    Dialogue,
    DialogueSet,
    Outcome,
    Turn,
    TurnResult,
    VariantResult,
)
from pytest_dstfuzz.campaign.results import Results
from pytest_dstfuzz.dialogue.calls import REPLY, AnswerPath
from pytest_dstfuzz.dialogue.dialogues import answer_of
from pytest_dstfuzz.perturb.edits import hunks
from pytest_dstfuzz.perturb.words import word_list
from pytest_dstfuzz.repair.sources import clean_dialogue
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.weaknesses.groups import read

#: The origin of the right answer, before the change that a relation makes.
LabelSource = Literal["label", "clean answer"]

_MOVED: Final = "the relation moves rounds, renames tools or compares with another dialogue"
_NO_ANSWER: Final = "the turn has neither a label nor a clean answer"
_WRONG: Final = (
    "the label and the clean answer disagree about this turn, so the change is uncertain"
)
_GAP: Final = "an earlier turn has neither a label nor a clean answer"
_UNKNOWN: Final = "the relation says that the answer changes, but not how"


class ValueSpan(NamedTuple):
    """A part of the last user utterance with the value of a slot."""

    slot: str
    start: int
    end: int
    value: str


@dataclass(frozen=True)
class Example:
    """A dialogue up to an edited turn, with the right answer to this turn."""

    #: Turn, relation and variant.
    id: str
    #: The last turn has the state, the reply or the calls that are right. Earlier turns are as the
    #: bot saw them.
    dialogue: Dialogue
    target: Outcome
    spans: tuple[ValueSpan, ...]
    #: The weakness of a violation, or the relation of a variant that held. Examples are balanced
    #: by it.
    group: str
    #: Facts about its origin, for the row.
    provenance: Mapping[str, Any]


@dataclass
class ExampleSet:
    """All examples of some reports. Counts variants without an example by reason."""

    examples: list[Example] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    #: Number of examples with the same texts and the same answer as another one.
    repeated: int = 0
    _names: Counter[str] = field(default_factory=Counter)

    def add(self, results: Results, data: DialogueSet, *, unlabelled: bool = True) -> None:
        """Add the examples of a report on this data.

        ``unlabelled`` says whether earlier turns may have no state.

        Raises:
            UserError: the data differs from the data of the report.
        """
        ids, known = frozenset(data.ids), _CleanAnswers(results)
        seen = {_content(one) for one in self.examples}
        for turn in results:
            wanted = [one for one in turn.variants if _teaches(turn, one)]
            if not wanted:
                continue
            dialogue = clean_dialogue(data, ids, turn)
            for variant in wanted:
                found = _example(turn, variant, dialogue, known)
                if isinstance(found, Example) and not (unlabelled or _labelled(found)):
                    found = _GAP
                if isinstance(found, str):
                    self.left_out[found] += 1
                elif (content := _content(found)) in seen:
                    self.repeated += 1
                else:
                    seen.add(content)
                    self.examples.append(self._named(found))

    def _named(self, one: Example) -> Example:
        """Return an example with a unique id. Runs with other seeds use the same names."""
        self._names[one.id] += 1
        if (number := self._names[one.id]) == 1:
            return one
        name = f"{one.id}-{number}"
        return replace(one, id=name, dialogue=replace(one.dialogue, id=name))

    def drawn(self, most: int, seed: int) -> list[Example]:
        """Return at most ``most`` examples, spread over the groups as evenly as possible."""
        groups: dict[str, list[Example]] = {}
        for one in sorted(self.examples, key=lambda one: one.id):
            groups.setdefault(one.group, []).append(one)
        left = [
            [of[int(place)] for place in stream(seed, "export", name).permutation(len(of))]
            for name, of in sorted(groups.items())
        ]
        drawn: list[Example] = []
        while left and len(drawn) < most:
            drawn += [of.pop() for of in left]
            left = [of for of in left if of]
        return sorted(drawn[:most], key=lambda one: one.id)


class _CleanAnswers:
    """The clean answers of a report by dialogue and turn. They replace missing labels."""

    def __init__(self, results: Iterable[TurnResult]) -> None:
        self._states = {
            (turn.dialogue_id, turn.turn_index): turn.clean_state
            for turn in results
            if turn.kind.has_slots
        }

    def state(self, dialogue: Dialogue, turn: Turn) -> BeliefState | None:
        """Return the label of a turn, or the clean answer if the turn has no label."""
        if turn.state is not None:
            return turn.state
        found = self._states.get((dialogue.id, turn.index))
        return None if found is None else BeliefState(found)


def _teaches(turn: TurnResult, variant: VariantResult) -> bool:
    """Return whether the bot can learn something from a variant."""
    if variant.outcome == "violation":
        return True
    return turn.side == "should-change" and variant.outcome == "held"


def _labelled(one: Example) -> bool:
    return all(turn.state is not None for turn in one.dialogue.turns)


def _content(one: Example) -> tuple[object, ...]:
    texts = tuple((turn.system, turn.user) for turn in one.dialogue.turns)
    return texts, one.dialogue.tools, one.target


def _example(
    turn: TurnResult, variant: VariantResult, dialogue: Dialogue, known: _CleanAnswers
) -> Example | str:
    """Return the example of a variant, or the reason why it gives no example."""
    if variant.exchanges or variant.reference or variant.transcript:
        return _MOVED
    labelled = _label(turn, dialogue)
    source: LabelSource = "clean answer" if labelled is None else "label"
    before = turn.clean_state if labelled is None else labelled
    if before is None:
        return _NO_ANSWER
    if variant.expected and not _agree(turn, dialogue, before):
        return _WRONG
    target = repair_answer(before, variant.expected)
    if isinstance(target, str):
        return target
    if turn.outcome_kind == REPLY and turn.side == "should-change":
        return _UNKNOWN
    seen = _seen(turn, variant, dialogue, target, known)
    violated = variant.outcome == "violation"
    group = read(turn, variant).key.id if violated else f"held:{turn.relation}"
    return Example(
        id=f"{turn.id}-{turn.relation}-v{variant.index}",
        dialogue=replace(seen, id=f"{turn.id}-{turn.relation}-v{variant.index}"),
        target=target,
        spans=tuple(_spans(turn, variant, target, seen)),
        group=group,
        provenance={
            "turn": turn.id,
            "dialogue": turn.dialogue_id,
            "relation": turn.relation,
            "variant": variant.index,
            "outcome": variant.outcome,
            "weakness": group if violated else None,
            "label": source,
            "changed": [str(delta) for delta in variant.expected],
        },
    )


def _label(turn: TurnResult, dialogue: Dialogue) -> Outcome | None:
    """Return the recorded answer to a turn, or ``None`` if no answer is recorded."""
    recorded = dialogue.turns[turn.turn_index]
    if turn.kind.has_slots:
        return recorded.state
    if turn.kind.has_tools:
        return recorded.calls
    said = answer_of(dialogue, turn.turn_index)
    return Outcome({REPLY: said}) if said else None


def _agree(turn: TurnResult, dialogue: Dialogue, label: Outcome) -> bool:
    """Return whether the clean answer has all values that the label adds in this turn.

    A relation only considers slots of the clean answer. An edit may remove values of other slots
    from the text.
    """
    earlier: Outcome | None = None
    if turn.kind.has_slots and turn.turn_index:
        earlier = dialogue.turns[turn.turn_index - 1].state
    known, clean = earlier or Outcome(), turn.clean_state or Outcome()
    return all(clean.get(path) == text for path, text in label.items() if known.get(path) != text)


def repair_answer(before: Outcome, deltas: Sequence[Delta]) -> Outcome | str:
    """Return an answer with the expected changes, or the reason why they do not fit."""
    values = dict(before)
    for delta in deltas:
        if before.get(delta.slot) != delta.before:
            return _WRONG
        # The first value is the plainest one. Of all values but some, none is certain.
        value = None if delta.after.anything_but else delta.after.values[0]
        if delta.after.anything_but and None in delta.after.values:
            return _UNKNOWN
        if value is not None:
            values[delta.slot] = value
            continue
        place = AnswerPath.of(delta.slot)
        gone = [
            path
            for path in values
            if path == delta.slot or (place.is_call and AnswerPath.of(path).call == place)
        ]
        for path in gone:
            del values[path]
    return Outcome(values)


def _seen(
    turn: TurnResult,
    variant: VariantResult,
    dialogue: Dialogue,
    target: Outcome,
    known: _CleanAnswers,
) -> Dialogue:
    """Return the dialogue as the bot saw it, with the right answers as labels."""
    index = turn.turn_index
    users = (*variant.context, variant.text)
    turns = [
        replace(
            one,
            user=users[one.index],
            state=known.state(dialogue, one) if turn.kind.has_slots else one.state,
        )
        for one in dialogue.turns[: index + 1]
    ]
    if turn.kind.has_slots:
        turns[-1] = replace(turns[-1], state=BeliefState(target), answer=None)
    elif turn.kind.has_tools:
        turns[-1] = replace(turns[-1], calls=target, answer=None)
    else:
        turns[-1] = replace(turns[-1], answer=target[REPLY])
    return replace(dialogue, turns=tuple(turns), closing=(), results=())


def _spans(
    turn: TurnResult, variant: VariantResult, target: Outcome, seen: Dialogue
) -> Iterator[ValueSpan]:
    """Yield the spans of the values that the last utterance gives, in the order of the text."""
    if not turn.kind.has_slots:
        return
    state = seen.turns[-2].state if len(seen.turns) > 1 else None
    earlier = state or BeliefState()
    found: list[ValueSpan] = []
    for slot, value in target.items():
        if earlier.get(slot) == value:
            continue
        span = _place(value, variant.text) or _moved(_place(value, turn.user), variant)
        if span is not None:
            found.append(ValueSpan(slot, *span, value))
    end = 0
    for one in sorted(found, key=lambda one: (one.start, -one.end, one.slot)):
        if one.start >= end:
            yield one
            end = one.end


def _place(value: str, text: str) -> tuple[int, int] | None:
    """Return the position of a value in a text if it occurs once, in any case and spacing."""
    words = r"\W+".join(map(re.escape, word_list(value)))
    found = list(re.finditer(rf"(?<!\w){words}(?!\w)", text, re.IGNORECASE)) if words else []
    return found[0].span() if len(found) == 1 else None


def _moved(span: tuple[int, int] | None, variant: VariantResult) -> tuple[int, int] | None:
    """Return the position in a variant of a part of the clean text, or ``None`` if it is gone."""
    if span is None:
        return None
    start, end = span
    new_start, new_end = start, end
    for one in hunks(variant.edits):
        growth = (one.new_end - one.new_start) - (one.end - one.start)
        added = variant.text[one.new_start : one.new_end]
        if one.end < start or (one.end == start and (one.start < start or added.endswith(" "))):
            new_start += growth
            new_end += growth
        elif one.start < start < one.end or one.start < end < one.end:
            return None
        elif one.start < end:
            new_end += growth
    return (new_start, new_end) if new_start < new_end else None
