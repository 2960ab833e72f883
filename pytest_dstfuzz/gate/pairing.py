"""What two builds share: turns with the same words before them, and identical variants of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, NamedTuple

from pytest_dstfuzz.campaign.deciding import RepetitionTally
from pytest_dstfuzz.campaign.folding import Folding
from pytest_dstfuzz.campaign.results import (
    RUN_OUTCOMES,
    Results,
    TurnResult,
    VariantOutcome,
    VariantResult,
)
from pytest_dstfuzz.campaign.sums import DialogueNumbers
from pytest_dstfuzz.comparisons.comparison import Comparison
from pytest_dstfuzz.comparisons.exact import EXACT
from pytest_dstfuzz.dialogue.dialogues import Context, Exchange
from pytest_dstfuzz.dialogue.outcome import Outcome
from pytest_dstfuzz.gate.asked import Asked, Failing, Pair, Tally, parts_of
from pytest_dstfuzz.gate.baseline import (
    Baseline,
    ComparedVariant,
    Contents,
    Groups,
    TurnOutcomes,
    TurnPosition,
    by_relation,
    digest_of,
    failures_of,
    kept_state,
    named_groups,
    same_names,
)
from pytest_dstfuzz.gate.drift import CleanPair, DriftTally
from pytest_dstfuzz.gate.limits import Part
from pytest_dstfuzz.gate.matching import Matching, match_dialogues
from pytest_dstfuzz.gate.own_answers import OwnAnswers
from pytest_dstfuzz.gate.randomness import OwnAnswersTally
from pytest_dstfuzz.totals.troubles import failure_text
from pytest_dstfuzz.weaknesses.groups import WeaknessTally, member_id

#: Turns at which the tracker failed that are named.
_MOST_FAILURES: Final = 3
#: Outcomes that say what the tracker makes of a variant; an error says nothing about it.
_ANSWERED: tuple[VariantOutcome, ...] = tuple(name for name in RUN_OUTCOMES if name != "error")


@dataclass(frozen=True, slots=True)
class Pairing:
    """What two builds have in common."""

    #: The variants that both were asked.
    shared: Asked
    #: Clean answers of both builds.
    clean: DriftTally
    #: How the answers of either build to one clean turn agree.
    own: OwnAnswersTally
    matching: Matching
    #: Turns that both have, and those of one alone.
    turns: int
    only_baseline: int
    only_run: int
    #: Dialogues of the turns that both have, and all that the run tested.
    dialogues: int
    tested: int
    #: Turns that the baseline has an answer to, and at which the tracker failed now.
    silenced: int
    #: The first of these turns: its id, and that with what the tracker did there.
    failures: tuple[tuple[str, str], ...]
    #: Of the turns that failures are expected of in both builds, by dialogue, sorted: of the first
    #: relation with any.
    failing: Mapping[str, Failing]
    #: Relation that both builds tested -> what both were asked.
    asked: Mapping[str, Asked]
    #: Relations that one build alone tested.
    only_baseline_relations: tuple[str, ...]
    only_run_relations: tuple[str, ...]
    #: Whether the bot repeated itself in this run.
    repeats: bool
    #: The weaknesses of the run under relations that both have, or where there is none under all.
    weaknesses: WeaknessTally

    @property
    def variants(self) -> int:
        """Variants that were identical and answered in both builds."""
        return self.shared.variants

    @property
    def share(self) -> float | None:
        """Their share of the variants that either build ran at the turns that both have."""
        possible = self.shared.possible
        return self.variants / possible if possible else None

    @property
    def new(self) -> tuple[tuple[str, int], ...]:
        """Turn id and number of variants that are a violation in the run alone."""
        return self.shared.moved(1)

    @property
    def gone(self) -> tuple[tuple[str, int], ...]:
        """Likewise of those that are one in the baseline alone."""
        return self.shared.moved(-1)

    def failed(self, *, hidden: bool) -> tuple[str, ...]:
        """Name the first turns that are silenced, and say why unless that is ``hidden``."""
        return tuple(name if hidden else text for name, text in self.failures)

    def of(self, relation: str) -> Pairing:
        """Return the pairing with the variants of one relation alone."""
        return replace(self, shared=self.asked.get(relation, Asked()))

    def by_dialogue(self, part: Part | None = None) -> dict[str, Tally]:
        """Return the tally of each dialogue with a variant in the part, sorted by dialogue."""
        return self.shared.by_dialogue(part)

    def by_part(self) -> dict[Part, Tally]:
        """Return the tally of every domain, slot and transformation, sorted."""
        return self.shared.by_part()


def pair_up(
    baseline: Baseline, groups: Groups, contents: Contents, comparison: Comparison = EXACT
) -> Pairing:
    """Return the turns and the variants that a baseline and a run share, from one pass over it.

    Variants are compared with those of the same relation. Each has an answer to the clean turns of
    its own, and that is one answer: the first relation counts. Where the builds have no relation in
    common, the clean answers are all that is compared: a reply that says the same as before, by
    the comparison, is the one before.
    """
    before, after = by_relation(baseline.groups), by_relation(named_groups(groups))
    shared = tuple(name for name in after if name in before)
    joined = {new: old for old, new in zip(before, after, strict=False)}
    joined = {name: name for name in shared} or dict(list(joined.items())[:1])
    # Of what is kept back only digests are there.
    how = _HowCompared(baseline.hidden, Folding(EXACT if baseline.hidden else comparison))
    every = chain.from_iterable(baseline.groups.values())
    matching = match_dialogues(every, contents)
    common = _Common(matching, contents, how)
    tested: set[str] = set()
    weaknesses, asked = WeaknessTally(), dict[str, Asked]()
    answers = RepetitionTally()
    failing: list[dict[str, Failing]] = []
    # Relations that both have first, in their order: what one knows of a turn counts once.
    for name in (*joined, *(name for name in after if name not in joined)):
        found = None
        if name in joined:
            found = common.begin(before[joined[name]])
            if name in shared:
                asked[name] = found.asked
                failing.append(found.failing)
        for own, turns in _named(before[joined[name]] if name in joined else {}, after[name]):
            for turn in turns:
                answers.add(turn)
                if turn.outcome != "skipped":
                    tested.add(turn.dialogue_id)
                    if found is not None:
                        found.add(own, turn)
                if not shared or name in asked:
                    weaknesses.add(turn)
    return Pairing(
        shared=_together(asked),
        clean=common.clean,
        own=common.own,
        matching=matching.of_tested(tested),
        turns=common.both.count,
        silenced=common.silenced,
        failures=tuple(common.failures),
        only_baseline=common.old.count - common.both.count,
        only_run=common.new.count - common.both.count,
        dialogues=len(common.dialogues),
        tested=len(tested),
        failing=next((dict(sorted(each.items())) for each in failing if each), {}),
        asked=asked,
        only_baseline_relations=tuple(name for name in before if name not in after),
        only_run_relations=tuple(name for name in after if name not in before),
        repeats=answers.same,
        weaknesses=weaknesses,
    )


class _HowCompared(NamedTuple):
    """How answers are kept and compared."""

    #: With digests for values.
    hidden: bool
    folding: Folding


class _Places:
    """Counts turns that the first relation knows which knows anything of them.

    A turn may be there in several groups of one relation: each counts.
    """

    def __init__(self, numbers: DialogueNumbers) -> None:
        self._numbers = numbers
        self._earlier: set[int] = set()
        self._now: set[int] = set()
        self.count = 0

    def begin(self) -> None:
        """Go on with the next relation."""
        self._earlier |= self._now
        self._now = set()

    def add(self, dialogue: str, turn: int) -> bool:
        """Take in a turn, and say whether it counts."""
        place = self._numbers[dialogue] << 32 | turn
        self._now.add(place)
        self.count += (counts := place not in self._earlier)
        return counts


class _Common:
    """What two builds have in common, under one relation after the other."""

    def __init__(self, matching: Matching, contents: Contents, how: _HowCompared) -> None:
        self.matching, self.contents, self.how = matching, contents, how
        #: Ids of this run: variants are drawn by the name of a dialogue.
        self.renamed = frozenset(new_name for _, new_name in matching.renamed)
        numbers = DialogueNumbers()
        self.old, self.new = _Places(numbers), _Places(numbers)
        self.both, self._answered = _Places(numbers), _Places(numbers)
        self.clean = DriftTally()
        self.own = OwnAnswersTally()
        self.dialogues: set[str] = set()
        self.silenced = 0
        self.failures: list[tuple[str, str]] = []

    def begin(self, before: Mapping[str, Sequence[TurnOutcomes]]) -> _OfOne:
        """Go on with the next relation; ``before`` are its turns in the baseline."""
        for places in (self.old, self.new, self.both, self._answered):
            places.begin()
        known = self.matching.known
        for turn in chain.from_iterable(before.values()):
            self.old.add(known.get(turn.dialogue, f"{turn.dialogue} (removed)"), turn.turn)
        return _OfOne(self, before)

    def note(self, was: TurnOutcomes, turn: TurnResult) -> bool:
        """Take in a turn that both builds have, and say whether both answer it, with one answer."""
        if self.both.add(turn.dialogue_id, turn.turn_index):
            self.dialogues.add(turn.dialogue_id)
            failed = turn.clean_state is None and turn.outcome == "error"
            if was.state is not None and failed:
                self.silenced += 1
                if len(self.failures) < _MOST_FAILURES:
                    self.failures.append((turn.id, failure_text(turn, hidden=False)))
        pair = _clean(was, turn, self.how)
        if pair is not None and self._answered.add(turn.dialogue_id, turn.turn_index):
            self.clean.add(pair)
            self.own.add(turn.dialogue_id, was.own, OwnAnswers.of(turn))
        return pair is not None and not pair.changed


class _OfOne:
    """What two builds have in common under one relation."""

    def __init__(self, common: _Common, before: Mapping[str, Sequence[TurnOutcomes]]) -> None:
        self._common = common
        known = common.matching.known
        self._old = {
            TurnPosition(name, known[turn.dialogue], turn.turn): turn
            for name, turns in before.items()
            for turn in turns
            if turn.dialogue in known
        }
        self.asked = Asked()
        #: Expected failures of each dialogue; other variants estimate the same.
        self.failing: dict[str, Failing] = {}

    def add(self, group: str, turn: TurnResult) -> None:
        """Take in a turn of the run that was not skipped."""
        at = TurnPosition(group, turn.dialogue_id, turn.turn_index)
        self._common.new.add(at.dialogue, at.turn)
        was = self._old.get(at)
        if was is None or was.key != self._common.contents[at.dialogue][at.turn]:
            return
        same = self._common.note(was, turn)
        if at.dialogue not in self._common.renamed:
            self.asked.possible += _possible(was, turn)
            for pair in _pairs(was, turn, same_answer=same):
                self.asked.add(pair)
        now = failures_of(turn)
        if was.failures is not None and now is not None:
            turns, before, after = self.failing.get(turn.dialogue_id, Failing())
            more = Failing(turns + 1, before + was.failures, after + now)
            self.failing[turn.dialogue_id] = more


def _together(asked: Mapping[str, Asked]) -> Asked:
    """Return what was asked under all relations."""
    found = Asked()
    for one in asked.values():
        found.take(one)
    return found


def _named(
    before: Mapping[str, object], after: Mapping[str, Results]
) -> Iterable[tuple[str, Results]]:
    """Return the groups of a run under the names that the baseline has for them."""
    names = same_names(after, before)
    return [(names.get(name, name), turns) for name, turns in after.items()]


def _pairs(old: TurnOutcomes, turn: TurnResult, *, same_answer: bool) -> Iterator[Pair]:
    known = {item.number: item for item in old.variants}
    # One more or less that can be edited gives all rewrites after it another number.
    rewritten = {item.digest: item for item in reversed(old.variants)}
    for variant in turn.variants:
        after = ComparedVariant.of(turn, variant)
        before = known.get(variant.index)
        if _is_rewrite(turn, variant):
            before = rewritten.get(after.digest)
        if before is None or before.digest != after.digest:
            continue
        if before.outcome in _ANSWERED and after.outcome in _ANSWERED:
            changed = (*before.changed, *before.carried, *after.changed, *after.carried)
            yield Pair(
                turn_id=turn.id,
                dialogue=turn.dialogue_id,
                index=variant.index,
                before=before,
                after=after,
                name=member_id(turn, variant),
                same_answer=same_answer,
                parts=frozenset(
                    parts_of((*(old.state or ()), *(turn.clean_state or ()), *changed))
                    | {Part("transformation", edit.transformation) for edit in variant.edits}
                ),
            )


def _is_rewrite(turn: TurnResult, variant: VariantResult) -> bool:
    """Whether the relation itself made it, and no search."""
    return bool(variant.moves) or any(
        edit.transformation == turn.relation for edit in variant.edits
    )


def _clean(old: TurnOutcomes, turn: TurnResult, how: _HowCompared) -> CleanPair | None:
    """Return the clean answers to one turn, where both builds had one."""
    if old.state is None or turn.clean_state is None:
        return None
    before: Mapping[str, str] = old.state
    after: Mapping[str, str] = kept_state(turn.clean_state, how.hidden)
    label = None if turn.label is None else kept_state(turn.label, how.hidden)
    if not how.folding.exact:
        asked = Context((Exchange(turn.system, turn.user),))
        said, right = Outcome(before), None if label is None else Outcome(label)
        if how.folding.agree(said, turn.clean_state, asked):
            after = before
        if right is not None and turn.is_right:
            label = dict(after)
        elif right is not None and how.folding.agree(right, said, asked):
            label = dict(before)
    return CleanPair(turn.id, turn.dialogue_id, before, after, label)


def _possible(old: TurnOutcomes, turn: TurnResult) -> int:
    """Count the variants that either build ran, those under one number but once."""
    ran = {variant.index for variant in turn.variants if variant.outcome in RUN_OUTCOMES}
    if any(_is_rewrite(turn, variant) for variant in turn.variants):
        # Their numbers say nothing.
        digests = {digest_of(one) for one in turn.variants if one.outcome in RUN_OUTCOMES}
        return len(digests | {item.digest for item in old.variants if item.outcome in RUN_OUTCOMES})
    return len(ran | {item.number for item in old.variants if item.outcome in RUN_OUTCOMES})
