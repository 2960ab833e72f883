"""What two builds share: turns with the same words before them, and identical variants of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple, TypeVar

from pytest_dstfuzz.campaign.folding import Folding
from pytest_dstfuzz.campaign.results import (
    RUN_OUTCOMES,
    TurnResult,
    VariantOutcome,
    VariantResult,
)
from pytest_dstfuzz.comparisons.comparison import Comparison
from pytest_dstfuzz.comparisons.exact import EXACT
from pytest_dstfuzz.dialogue.calls import part_of
from pytest_dstfuzz.dialogue.dialogues import Context, Exchange
from pytest_dstfuzz.dialogue.outcome import Outcome
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
)
from pytest_dstfuzz.gate.drift import CleanPair
from pytest_dstfuzz.gate.limits import Part
from pytest_dstfuzz.gate.matching import Matching, match_dialogues

_T = TypeVar("_T")

#: Outcomes that say what the tracker makes of a variant; an error says nothing about it.
_ANSWERED: tuple[VariantOutcome, ...] = tuple(name for name in RUN_OUTCOMES if name != "error")
#: Causes for which a variant's own edits, and so their transformations, are to blame.
_OWN = ("turn", "both")


@dataclass(frozen=True, slots=True)
class Pair:
    """One variant that both builds were asked about."""

    turn_id: str
    dialogue: str
    index: int
    before: ComparedVariant
    after: ComparedVariant
    #: Its transformations, and slots and domains at stake in either build: of the clean
    #: prediction, or changed by the variant.
    parts: frozenset[Part]

    @property
    def place(self) -> tuple[str, int]:
        """Turn id and number of the variant."""
        return self.turn_id, self.index

    @property
    def moved(self) -> int:
        """1 where the variant is a violation in the run alone, -1 in the baseline alone, else 0."""
        return self.violates(self.after, None) - self.violates(self.before, None)

    def violates(self, outcome: ComparedVariant, part: Part | None) -> bool:
        """Whether a build's outcome is a violation, in the part where one is given."""
        if outcome.outcome != "violation" or part is None:
            return outcome.outcome == "violation"
        if part.kind == "transformation":
            return outcome.cause in _OWN
        return part in _parts_of(outcome.changed)


class Tally(NamedTuple):
    """Variants compared of some dialogue or part, and violations among them in each build."""

    variants: int = 0
    before: int = 0
    after: int = 0

    def plus(self, pair: Pair, part: Part | None) -> Tally:
        """Return the tally with one more variant, in the part where one is given."""
        before, after = (pair.violates(build, part) for build in (pair.before, pair.after))
        return Tally(self.variants + 1, self.before + before, self.after + after)


class Failing(NamedTuple):
    """Turns of some dialogue that failures are expected of, and those failures in each build."""

    turns: int = 0
    before: float = 0.0
    after: float = 0.0


@dataclass(frozen=True, slots=True)
class Pairing:
    """What two builds have in common."""

    pairs: tuple[Pair, ...]
    #: Clean answers of both builds.
    clean: tuple[CleanPair, ...]
    matching: Matching
    #: Variants that either build ran at the turns that both have.
    possible: int
    #: Turns that both have, and those of one alone.
    turns: int
    only_baseline: int
    only_run: int
    #: Dialogues of the turns that both have, and all that the run tested.
    dialogues: int
    tested: int
    #: Turns that the baseline has an answer to, and at which the tracker failed now.
    silenced: int = 0
    #: Turn id and number of variants that are a violation in one build alone.
    new: tuple[tuple[str, int], ...] = ()
    gone: tuple[tuple[str, int], ...] = ()
    #: Of the turns that failures are expected of in both builds, by dialogue, sorted: of the first
    #: relation with any.
    failing: Mapping[str, Failing] = field(default_factory=dict)
    #: Relation that both builds tested -> what both were asked.
    asked: Mapping[str, Asked] = field(default_factory=dict)
    #: Relations that one build alone tested.
    only_baseline_relations: tuple[str, ...] = ()
    only_run_relations: tuple[str, ...] = ()

    @property
    def share(self) -> float | None:
        """Share of the possible variants that were identical and answered in both builds."""
        return len(self.pairs) / self.possible if self.possible else None

    def of(self, relation: str) -> Pairing:
        """Return the pairing with the variants of one relation alone."""
        asked = self.asked.get(relation, Asked((), 0, {}))
        pairs = sorted(asked.pairs, key=lambda pair: (pair.dialogue, pair.turn_id, pair.index))
        return replace(
            self,
            pairs=tuple(pairs),
            possible=asked.possible,
            new=tuple(pair.place for pair in pairs if pair.moved > 0),
            gone=tuple(pair.place for pair in pairs if pair.moved < 0),
        )

    def by_dialogue(self, part: Part | None = None) -> dict[str, Tally]:
        """Return the tally of each dialogue with a variant in the part, sorted by dialogue."""
        found: dict[str, Tally] = {}
        for pair in self.pairs:
            if part is None or part in pair.parts:
                found[pair.dialogue] = found.get(pair.dialogue, Tally()).plus(pair, part)
        return dict(sorted(found.items()))

    def by_part(self) -> dict[Part, Tally]:
        """Return the tally of every domain, slot and transformation, sorted."""
        found: dict[Part, Tally] = {}
        for pair in self.pairs:
            for part in pair.parts:
                found[part] = found.get(part, Tally()).plus(pair, part)
        return dict(sorted(found.items()))


def pair_up(
    baseline: Baseline, groups: Groups, contents: Contents, comparison: Comparison = EXACT
) -> Pairing:
    """Return the turns and the variants that a baseline and a run share.

    Variants are compared with those of the same relation. Each has an answer to the clean turns of
    its own, and that is one answer: the first relation counts. Where the builds have no relation in
    common, the clean answers are all that is compared: a reply that says the same as before, by
    the comparison, is the one before.
    """
    before, after = by_relation(baseline.groups), by_relation(named_groups(groups))
    shared = tuple(name for name in after if name in before)
    joined = [(name, name) for name in shared] or list(zip(before, after, strict=False))[:1]
    tested = {
        turn.dialogue_id for turns in groups.values() for turn in turns if turn.outcome != "skipped"
    }
    # Of what is kept back only digests are there.
    how = _HowCompared(baseline.hidden, Folding(EXACT if baseline.hidden else comparison))
    every = chain.from_iterable(baseline.groups.values())
    matching = match_dialogues(every, contents, tested)
    found = [_Common.of(before[old], after[new], matching, contents, how) for old, new in joined]
    asked = {name: each.asked() for name, each in zip(shared, found, strict=False)}
    pairs = sorted(
        chain.from_iterable(each.pairs for each in asked.values()),
        key=lambda pair: (pair.dialogue, pair.turn_id, pair.index),
    )
    clean = _once(each.clean for each in found)
    both = _once(each.both for each in found)
    return Pairing(
        pairs=tuple(pairs),
        clean=tuple(sorted(clean, key=lambda pair: (pair.dialogue, pair.turn_id))),
        matching=matching,
        possible=sum(each.possible for each in asked.values()),
        turns=len(both),
        silenced=sum(
            old.state is not None and turn.clean_state is None and turn.outcome == "error"
            for old, turn in both
        ),
        only_baseline=len(_once(each.old for each in found)) - len(both),
        only_run=len(_once(each.new for each in found)) - len(both),
        dialogues=len({turn.dialogue_id for _, turn in both}),
        tested=len(tested),
        new=tuple(pair.place for pair in pairs if pair.moved > 0),
        gone=tuple(pair.place for pair in pairs if pair.moved < 0),
        failing=next((each.failing for each in asked.values() if each.failing), {}),
        asked=asked,
        only_baseline_relations=tuple(name for name in before if name not in after),
        only_run_relations=tuple(name for name in after if name not in before),
    )


class _HowCompared(NamedTuple):
    """How answers are kept and compared."""

    #: With digests for values.
    hidden: bool
    folding: Folding


class Asked(NamedTuple):
    """What two builds were both asked under one relation."""

    pairs: tuple[Pair, ...]
    possible: int
    failing: Mapping[str, Failing]


#: Dialogue and turn -> what is known of it.
_Placed = dict[tuple[str, int], list[_T]]


@dataclass(frozen=True, slots=True)
class _Common:
    """What two builds have of one relation; a turn may be there in several groups."""

    old: _Placed[TurnOutcomes]
    new: _Placed[TurnResult]
    both: _Placed[tuple[TurnOutcomes, TurnResult]]
    clean: _Placed[CleanPair]
    #: Ids of this run.
    renamed: frozenset[str]

    @classmethod
    def of(
        cls,
        before: Mapping[str, Sequence[TurnOutcomes]],
        after: Mapping[str, Sequence[TurnResult]],
        matching: Matching,
        contents: Contents,
        how: _HowCompared,
    ) -> _Common:
        """Join the groups of two builds; each holds results of one relation alone."""
        known = matching.known
        old = {
            TurnPosition(name, known[turn.dialogue], turn.turn): turn
            for name, turns in before.items()
            for turn in turns
            if turn.dialogue in known
        }
        found = cls({}, {}, {}, {}, frozenset(new_name for _, new_name in matching.renamed))
        for turn in chain.from_iterable(before.values()):
            place = known.get(turn.dialogue, f"{turn.dialogue} (removed)"), turn.turn
            found.old.setdefault(place, []).append(turn)
        for name, turns in _named(before, after):
            for result in turns:
                if result.outcome == "skipped":
                    continue
                at = TurnPosition(name, result.dialogue_id, result.turn_index)
                found.new.setdefault(at[1:], []).append(result)
                was = old.get(at)
                if was is not None and was.key == contents[at.dialogue][at.turn]:
                    found.both.setdefault(at[1:], []).append((was, result))
                    if pair := _clean(was, result, how):
                        found.clean.setdefault(at[1:], []).append(pair)
        return found

    def asked(self) -> Asked:
        """Return the variants; they are drawn by the name of a dialogue, so not of others."""
        both = [each for placed in self.both.values() for each in placed]
        drawn = [each for each in both if each[1].dialogue_id not in self.renamed]
        return Asked(
            tuple(chain.from_iterable(_pairs(*each) for each in drawn)),
            sum(_possible(*each) for each in drawn),
            _failing(both),
        )


def _once(found: Iterable[_Placed[_T]]) -> list[_T]:
    """Return what is known of each turn by the first that knows anything."""
    kept: _Placed[_T] = {}
    for each in found:
        kept = {**each, **kept}
    return [one for placed in kept.values() for one in placed]


def _named(
    before: Mapping[str, object], after: Mapping[str, Sequence[TurnResult]]
) -> Iterable[tuple[str, Sequence[TurnResult]]]:
    """Return the groups of a run under the names that the baseline has for them.

    Where each has but one that the other does not know it is the same, whatever became of the
    names of tests and parameters: a tracker that drifts does not hide behind another name.
    """
    gone = [name for name in before if name not in after]
    new = [name for name in after if name not in before]
    names = dict(zip(new, gone, strict=True)) if len(gone) == len(new) == 1 else {}
    return [(names.get(name, name), turns) for name, turns in after.items()]


def _pairs(old: TurnOutcomes, turn: TurnResult) -> Iterator[Pair]:
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
                parts=frozenset(
                    _parts_of((*(old.state or ()), *(turn.clean_state or ()), *changed))
                    | {Part("transformation", edit.transformation) for edit in variant.edits}
                ),
            )


def _is_rewrite(turn: TurnResult, variant: VariantResult) -> bool:
    """Whether the relation itself made it, and no search."""
    return bool(variant.moves) or any(
        edit.transformation == turn.relation for edit in variant.edits
    )


def _failing(both: Iterable[tuple[TurnOutcomes, TurnResult]]) -> dict[str, Failing]:
    """Add up the expected failures of each dialogue; other variants estimate the same."""
    found: dict[str, Failing] = {}
    for old, turn in sorted(both, key=lambda each: (each[1].dialogue_id, each[1].turn_index)):
        now = failures_of(turn)
        if old.failures is not None and now is not None:
            turns, before, after = found.get(turn.dialogue_id, Failing())
            found[turn.dialogue_id] = Failing(turns + 1, before + old.failures, after + now)
    return found


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


def _parts_of(paths: Iterable[str]) -> set[Part]:
    parts = {part_of(path) for path in paths}
    return {
        *(Part("domain", domain) for domain, _ in parts if domain),
        *(Part("slot", slot) for _, slot in parts),
    }
