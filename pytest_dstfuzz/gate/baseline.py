"""A baseline: what a build answered to every clean turn, and what it did to every variant.

`gate.baseline_file` keeps it in a file for the builds after it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeVar

from pytest_dstfuzz import __version__
from pytest_dstfuzz.campaign.deciding import RepetitionTally
from pytest_dstfuzz.campaign.expected import counted, turn_failures
from pytest_dstfuzz.campaign.result_views import JoinedResults
from pytest_dstfuzz.campaign.results import (
    Cause,
    Results,
    TurnResult,
    VariantOutcome,
    VariantResult,
)
from pytest_dstfuzz.campaign.summary import Summary
from pytest_dstfuzz.comparisons.comparison import Comparison
from pytest_dstfuzz.comparisons.exact import EXACT
from pytest_dstfuzz.config import Settings, names_of, settings_json
from pytest_dstfuzz.dialogue.dialogues import DialogueSet, turn_keys
from pytest_dstfuzz.gate.own_answers import OwnAnswers
from pytest_dstfuzz.json_data import to_json
from pytest_dstfuzz.totals.totals import Totals
from pytest_dstfuzz.weaknesses.groups import Weakness, WeaknessTally
from pytest_dstfuzz.weaknesses.keys import read

#: What decides what a clean answer looks like.
NORMALISATION: Final = "normalisation"
#: What `changes` calls the keys of the identity that are no options.
_NAMES: Final = {
    NORMALISATION: "the normalisation of the values",
    "lexicon": "the lexicon",
    "policy": "the agent's policy",
    "validity": "the validity profile",
}
#: What may differ between campaigns that estimate the same failures: how variants are drawn.
_OF_DRAWS: Final = frozenset(
    {"seed", "search", "policy", "transformations", "redraws", "stop_at_first"}
)
#: What may differ between campaigns whose relation makes the edits itself: how turns are searched.
_OF_SEARCHES: Final = frozenset(
    {
        *("search", "policy", "transformations", "redraws", "edits", "attack"),
        *("validity", "noise", "slip_rate", "max_edit_rate", "flat_edit_rate"),
    }
)
#: How the name of a group ends that tests another relation than the default.
_RELATION: Final = " relation="
_NAMED: Final = re.compile(rf"{_RELATION}[^\s'\"]+\Z")
_DEFAULT: Final = "metamorphic"
_T = TypeVar("_T")

#: Group of results -> its turns. The name of a group tells its relation, see `group_name`.
Groups = Mapping[str, Results]
#: Dialogue id -> key of each of its turns, see `turn_keys`.
Contents = Mapping[str, Sequence[str]]
State = Mapping[str, str]


class TurnPosition(NamedTuple):
    """Where a turn stands."""

    group: str
    dialogue: str
    turn: int


class ComparedVariant(NamedTuple):
    """What came of one variant, as far as builds are compared by it."""

    number: int
    #: Of the text and its context: the same digest, the same question to the tracker.
    digest: str
    outcome: VariantOutcome
    cause: Cause | None = None
    #: Slots that changed anew, those that became right left out, and those that had changed at an
    #: earlier turn.
    changed: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()
    #: Id of the weakness that a violation is of.
    weakness: str = ""

    @classmethod
    def of(cls, turn: TurnResult, variant: VariantResult) -> ComparedVariant:
        """Take from a result what a baseline keeps of it."""
        return cls(
            number=variant.index,
            digest=digest_of(variant),
            outcome=variant.outcome,
            cause=variant.cause,
            changed=tuple(item.slot for item in variant.changed_slots if item.is_fault),
            carried=tuple(item.slot for item in variant.changed_slots if item.carried),
            weakness=read(turn, variant).key.id if variant.outcome == "violation" else "",
        )


@dataclass(frozen=True, slots=True)
class TurnOutcomes:
    """What a build answered to one turn, and what came of its variants."""

    dialogue: str
    turn: int
    #: Of what was said up to it, see `turn_keys`.
    key: str
    #: The clean answer; ``None`` where the tracker failed.
    state: State | None
    #: Each of another number, sorted.
    variants: tuple[ComparedVariant, ...]
    #: Estimated probability that it fails; ``None`` where no failures are expected of it.
    failures: float | None = None
    own: OwnAnswers | None = None

    @classmethod
    def of(cls, turn: TurnResult, key: str, *, hidden: bool) -> TurnOutcomes:
        """Take from a result what a baseline keeps, ``hidden`` with digests for slot values."""
        return cls(
            dialogue=turn.dialogue_id,
            turn=turn.turn_index,
            key=key,
            state=None if turn.clean_state is None else kept_state(turn.clean_state, hidden),
            variants=tuple(sorted(ComparedVariant.of(turn, one) for one in turn.variants)),
            failures=failures_of(turn),
            own=OwnAnswers.of(turn),
        )


@dataclass(frozen=True, slots=True)
class KnownWeakness:
    """A weakness as a baseline keeps it, and as comparisons name it."""

    id: str
    description: str
    #: Violations, and turns that they break.
    count: int
    turns: int
    #: Of 1,000 user turns; ``None`` where no failures are expected.
    expected_failures: float | None = None

    @classmethod
    def of(cls, weakness: Weakness) -> KnownWeakness:
        """Take from a weakness of a run what is kept of it."""
        count, turns = weakness.count, weakness.turns
        return cls(weakness.id, weakness.description, count, turns, weakness.expected)

    def to_json(self) -> dict[str, Any]:
        """Return a plain dictionary."""
        plain: dict[str, Any] = to_json(self)
        return plain


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a build did, and everything that must be the same to compare another with it."""

    #: Name of the tracker; for people.
    model: str
    #: Version of this package that wrote it.
    version: str
    campaign: Mapping[str, Any]
    groups: Mapping[str, Sequence[TurnOutcomes]]
    #: Whether it has digests in the place of slot values, as of a run with ``--dst-redact``.
    hidden: bool = False
    #: Sorted by id; ``None`` in a baseline of a version that kept none.
    weaknesses: tuple[KnownWeakness, ...] | None = None
    #: See `WeaknessTally.shrunk`.
    shrunk: bool | None = None
    #: Whether the bot repeated itself; ``None`` in a baseline of a version that did not look.
    repeats: bool | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """A session that is to be judged."""

    #: Its results; several groups where a suite tests several trackers.
    groups: Groups
    #: Of all of them.
    totals: Totals
    #: See `campaign_identity`.
    campaign: Mapping[str, Any]
    #: See `contents_of`.
    contents: Contents
    seed: int
    #: Selected turns without a result, and why the session ended early, if it did.
    missing: int = 0
    ended: str = ""
    #: Whether values of slots are kept back.
    hidden: bool = False
    #: When the clean answers of two builds are one.
    comparison: Comparison = EXACT
    #: Names of what variants were compared by, where replies are; fixtures may give others.
    compared: frozenset[str] = frozenset()
    #: Whether one context got different answers before the run.
    varies: bool = False

    @property
    def summary(self) -> Summary:
        """The figures of the first relation, where there are several."""
        return self.totals.first(",".join(self.totals.order)).summary

    @property
    def own_edits(self) -> frozenset[str]:
        """Names of the relations that make the edits themselves."""
        relations = self.totals.relations.items()
        return frozenset(name for name, one in relations if one.facts.edits == "own")

    @property
    def results(self) -> Results:
        """All results."""
        return JoinedResults(tuple(self.groups.values()))


def digest_of(variant: VariantResult) -> str:
    """Return a digest of what the tracker was asked: its words, all of them where rounds moved."""
    if variant.exchanges is None:
        # Of a relation on tools the texts are all the same: what was done to the tools is not.
        tools = [] if variant.edits or variant.moves or not variant.about else [variant.about]
        return _digest([*variant.context, variant.text, *tools])
    return _digest([text for said in variant.exchanges for text in (said.system, said.user)])


def group_name(name: str, relation: str) -> str:
    """Return what a group of results is called that tests a relation, if it is not called so yet.

    >>> group_name("tests", "metamorphic"), group_name("tests", "value-swap")
    ('tests', 'tests relation=value-swap')
    """
    own = f"{_RELATION}{relation}"
    return name if relation == _DEFAULT or name.endswith(own) else f"{name}{own}"


def named_groups(groups: Groups) -> Groups:
    """Return groups of results under names that tell their relation."""
    return {
        group_name(name, next(iter(turns)).relation) if turns else name: turns
        for name, turns in groups.items()
    }


def same_names(before: Mapping[str, object], after: Mapping[str, object]) -> dict[str, str]:
    """Return the name that each of the old groups has now, where it is another one.

    Where each side has but one that the other does not know it is the same, whatever became of the
    names of tests and parameters: a tracker that drifts does not hide behind another name.
    """
    gone = [name for name in before if name not in after]
    new = [name for name in after if name not in before]
    return dict(zip(gone, new, strict=True)) if len(gone) == len(new) == 1 else {}


def by_relation(groups: Mapping[str, _T]) -> dict[str, dict[str, _T]]:
    """Return the groups of each relation, under their names without it, in their order."""
    found: dict[str, dict[str, _T]] = {}
    for name, turns in groups.items():
        base, _, relation = name.rpartition(_RELATION) if _NAMED.search(name) else (name, "", "")
        found.setdefault(relation or _DEFAULT, {})[base] = turns
    return found


def kept_state(state: State, hidden: bool) -> dict[str, str]:
    """Return a state as a baseline keeps it, sorted by slot."""
    return {
        slot: _digest([slot, value]) if hidden else value for slot, value in sorted(state.items())
    }


def failures_of(turn: TurnResult) -> float | None:
    """Return the estimated probability that a turn fails, of one that figures count."""
    sampled = turn.noise is not None and turn.noise.sampled
    return turn_failures(turn) if sampled and counted(turn) else None


def contents_of(data: DialogueSet) -> dict[str, tuple[str, ...]]:
    """Return the keys of the turns of every dialogue, in the order of the data."""
    return {dialogue.id: turn_keys(dialogue) for dialogue in data.dialogues}


def campaign_identity(
    settings: Settings,
    data: DialogueSet,
    *,
    lexicon: str,
    policy: str,
    noise: str,
    comparison: Comparison = EXACT,
) -> dict[str, Any]:
    """Return all that decides which variants any dialogue gets, as plain JSON values.

    Not the dialogues themselves, nor their ontology, which may grow with them: each turn has a
    key and each variant a digest, and only what is equal is compared. The words that variants
    were made with and the agent's policy, if any, are given by their fingerprints, and so is,
    beside its name, the noise model; and where replies are compared, by what.
    """
    options = settings_json(settings)
    # Not how many: of turns, domains and variants that only one build has, the others can
    # still be compared.
    # Nor the relation: it is said by the names of the groups, and only like is compared with like.
    decided = {name: options[name] for name in names_of("decides") if name != "relation"}
    # So is a noise model, and several are what they are together.
    decided["noise"] = noise
    if not settings.variant.noisy:
        del decided["noise"], decided["slip_rate"]
    # An agent is its policy, wherever the file of it lies.
    decided["search"] = str(decided["search"]).partition(":")[0]
    found = {NORMALISATION: data.normalisation, **decided, "lexicon": lexicon, "policy": policy}
    if not comparison.exact:
        # Of states nothing is said, as it was before there were others.
        found |= {"outcome": settings.reply.outcome, "compare": comparison.identity}
    return found


def changes(
    before: Mapping[str, Any], after: Mapping[str, Any], *, own_edits: bool = False
) -> list[str]:
    """Say what differs between two campaigns, one phrase each; nothing where they compare.

    ``own_edits``: under a relation that makes the edits itself, whatever the search would do.
    """
    found = []
    for name in dict.fromkeys((*after, *before)):
        if own_edits and name in _OF_SEARCHES:
            continue
        old, new = before.get(name), after.get(name)
        # A baseline of a version without an option of names has named nothing.
        if old != new and (name in before or new != []):
            called = _NAMES.get(name, name.replace("_", "-"))
            found.append(f"{called}: {_shown(old)} in the baseline, {_shown(new)} now")
    return found


def other_estimates(
    before: Mapping[str, Any], after: Mapping[str, Any], *, own_edits: bool = False
) -> list[str]:
    """Say what differs between two campaigns beside how variants are drawn, as `changes` does.

    It decides what counts as a violation, and which failures are expected.
    """
    return changes(
        *({name: each[name] for name in each if name not in _OF_DRAWS} for each in (before, after)),
        own_edits=own_edits,
    )


def make_baseline(
    groups: Groups,
    campaign: Mapping[str, Any],
    model: str,
    contents: Contents,
    *,
    hidden: bool = False,
    varies: bool = False,
) -> Baseline:
    """Return the baseline of a build.

    Args:
        groups: its results.
        campaign: as `campaign_identity` returns it.
        model: name of the bot.
        contents: as `contents_of` returns them.
        hidden: write digests in the place of slot values.
        varies: whether one context got different answers before the run.
    """
    kept: dict[str, list[TurnOutcomes]] = {}
    tally, answers = WeaknessTally(), RepetitionTally()
    for name, turns in sorted(named_groups(groups).items()):
        group = kept[name] = []
        for turn in turns:
            tally.add(turn)
            answers.add(turn)
            key = contents[turn.dialogue_id][turn.turn_index]
            group.append(TurnOutcomes.of(turn, key, hidden=hidden))
        group.sort(key=attrgetter("dialogue", "turn"))
    weaknesses = sorted(map(KnownWeakness.of, tally.weaknesses), key=attrgetter("id"))
    return Baseline(
        model=model,
        version=__version__,
        campaign=campaign,
        groups=kept,
        hidden=hidden,
        weaknesses=tuple(weaknesses),
        shrunk=tally.shrunk,
        repeats=not varies and answers.same,
    )


def _digest(texts: Sequence[str]) -> str:
    """Return 12 hexadecimal digits."""
    return hashlib.sha256(json.dumps(texts).encode("ascii")).hexdigest()[:12]


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return "none" if value is None else text or "none"
