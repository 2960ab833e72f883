"""The baseline of an earlier build: its outcomes, its file and its update."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeVar

from pytest_dstfuzz import __version__
from pytest_dstfuzz.campaign.code import RELATION, SEARCH
from pytest_dstfuzz.campaign.deciding import RepetitionTally
from pytest_dstfuzz.campaign.figures import (
    Counts,
    DialogueNumbers,
    DialogueSums,
    has_expectation,
    turn_failures,
)
from pytest_dstfuzz.campaign.results import (
    Cause,
    JoinedResults,
    Results,
    TurnResult,
    VariantOutcome,
    VariantResult,
)
from pytest_dstfuzz.campaign.summary import Summary
from pytest_dstfuzz.comparisons.comparison import EXACT, Comparison
from pytest_dstfuzz.config import Settings, names_of, settings_json
from pytest_dstfuzz.config.options import BY_NAME
from pytest_dstfuzz.dialogue.calls import AnswerPath
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet, turn_keys
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.files import read_versioned
from pytest_dstfuzz.gate.verdict import Gates, LimitFinding, Limits, Part
from pytest_dstfuzz.json_data import from_json, to_json
from pytest_dstfuzz.own_values import hint_of
from pytest_dstfuzz.printable import format_count, format_list
from pytest_dstfuzz.totals.totals import RelationTotals, Totals
from pytest_dstfuzz.weaknesses.groups import Weakness, WeaknessTally, read


class OwnAnswers(NamedTuple):
    """The number of answers to a clean turn, and how many differ from the most frequent one."""

    asked: int
    others: int

    @classmethod
    def of(cls, turn: TurnResult) -> OwnAnswers | None:
        """Count the answers to a turn, or return ``None`` if the turn was asked only once."""
        kinds = turn.clean_votes
        if len(kinds) < 2:
            return None
        return cls(len(kinds), len(kinds) - max(Counter(kinds).values()))

    @property
    def share(self) -> float:
        """Share of the answers that differ from the most frequent one."""
        return self.others / self.asked


#: The key of the setting that controls how clean answers are normalised.
NORMALISATION: Final = "normalisation"
#: Names that `changes` shows for keys of the identity that are no options.
_NAMES: Final = {
    NORMALISATION: "the normalisation of the values",
    "lexicon": "the lexicon",
    "policy": "the agent's policy",
    "validity": "the validity profile",
}
#: The first key of each file of baselines.
VERSION_KEY: Final = "baseline_version"
#: Settings that control how variants are drawn. Campaigns that differ only in these estimate the
#: same failures.
_OF_DRAWS: Final = frozenset(
    {"seed", "search", "policy", "transformations", "redraws", "stop_at_first"}
)
#: Settings of relations that perturb the context of a reply.
_OF_CONTEXTS: Final = ("perturbations", "context_checks")
#: Settings of the search, which are irrelevant if the relation makes its own edits.
_OF_SEARCHES: Final = frozenset(
    {
        *("search", "policy", "transformations", "redraws", "edits", "attack"),
        *("validity", "noise", "slip_rate", "max_edit_rate", "flat_edit_rate"),
    }
)
#: Separator before the relation in the name of a group; the default relation is not named.
_RELATION: Final = " relation="
_NAMED: Final = re.compile(rf"{_RELATION}[^\s'\"\]]+\Z")
_DEFAULT: Final = "metamorphic"
_T = TypeVar("_T")

#: Group of results -> its turns. The name of a group includes its relation, see `group_name`.
Groups = Mapping[str, Results]
#: Dialogue id -> keys of its turns, see `turn_keys`.
Contents = Mapping[str, Sequence[str]]
State = Mapping[str, str]


class TurnPosition(NamedTuple):
    """The position of a turn."""

    group: str
    dialogue: str
    turn: int


class ComparedVariant(NamedTuple):
    """The result of one variant, reduced to the data for comparisons."""

    number: int
    #: Digest of the text and its context. Equal digests mean that the tracker was asked the same.
    digest: str
    outcome: VariantOutcome
    cause: Cause | None = None
    #: Newly changed slots without those that became right, and slots that had already changed at an
    #: earlier turn.
    changed: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()
    #: Id of the weakness that a violation belongs to.
    weakness: str = ""

    @classmethod
    def of(cls, turn: TurnResult, variant: VariantResult) -> ComparedVariant:
        """Return the result of a variant in the form that a baseline stores."""
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
    """The answer of a build to one turn, and the results of its variants."""

    dialogue: str
    turn: int
    #: Key of the dialogue up to this turn, see `turn_keys`.
    key: str
    #: The clean answer; ``None`` if the tracker failed.
    state: State | None
    #: Sorted by number; the numbers are distinct.
    variants: tuple[ComparedVariant, ...]
    #: Estimated probability that the turn fails; ``None`` if there is no estimate.
    failures: float | None = None
    own: OwnAnswers | None = None

    @classmethod
    def of(cls, turn: TurnResult, key: str, *, hidden: bool) -> TurnOutcomes:
        """Return the result of a turn in the form that a baseline stores.

        ``hidden``: replace slot values by digests.
        """
        return cls(
            dialogue=turn.dialogue_id,
            turn=turn.turn_index,
            key=key,
            state=None if turn.clean_state is None else make_kept_state(turn.clean_state, hidden),
            variants=tuple(sorted(ComparedVariant.of(turn, one) for one in turn.variants)),
            failures=failures_of(turn),
            own=OwnAnswers.of(turn),
        )


@dataclass(frozen=True, slots=True)
class KnownWeakness:
    """A weakness in a baseline or a comparison."""

    id: str
    description: str
    #: Number of violations, and of turns with one.
    count: int
    turns: int
    #: Per 1,000 user turns; ``None`` if there is no estimate.
    estimated_failures: float | None = None

    @classmethod
    def of(cls, weakness: Weakness) -> KnownWeakness:
        """Return a weakness in the form that a baseline stores."""
        count, turns = weakness.count, weakness.turns
        return cls(weakness.id, weakness.description, count, turns, weakness.expected)

    def to_json(self) -> dict[str, Any]:
        """Return a plain dictionary."""
        plain: dict[str, Any] = to_json(self)
        return plain


@dataclass(frozen=True, slots=True)
class Baseline:
    """The results of a build, and the settings that another build must share to be comparable."""

    #: Name of the tracker, for display.
    model: str
    #: Version of this package that wrote the baseline.
    version: str
    campaign: Mapping[str, Any]
    groups: Mapping[str, Sequence[TurnOutcomes]]
    #: Whether slot values are replaced by digests, as in a run with ``--dst-redact``.
    hidden: bool = False
    #: Sorted by id; ``None`` if the baseline was written by a version without weaknesses.
    weaknesses: tuple[KnownWeakness, ...] | None = None
    #: See `WeaknessTally.shrunk`.
    shrunk: bool | None = None
    #: Whether the bot is deterministic; ``None`` if the baseline was written by a version that did
    #: not check.
    repeats: bool | None = None
    #: Number of variants for each turn; ``None`` if the version that wrote it did not store it.
    variants: int | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """The results of a pytest session, to be judged by the gate."""

    #: Its results, in several groups if a suite tests several trackers.
    groups: Groups
    #: Totals over all groups.
    totals: Totals
    #: See `campaign_identity`.
    campaign: Mapping[str, Any]
    #: See `contents_of`.
    contents: Contents
    seed: int
    #: Name of the tracker in a baseline. The tracker of the options has the name ``""``.
    tracker: str = ""
    #: Number of selected turns without a result, and the reason if the session ended early.
    missing: int = 0
    ended: str = ""
    #: Whether only a budget ended it: every selected turn has a result, tested or skipped.
    by_budget: bool = False
    #: Whether slot values are hidden.
    hidden: bool = False
    #: Decides whether the clean answers of two builds are equal.
    comparison: Comparison = EXACT
    #: Patterns of replies without an answer.
    fallback: tuple[str, ...] = ()
    #: Returns the context of a dialogue's turn; ``None`` = only its last exchange is known.
    context_of: Callable[[str, int], Context] | None = None
    #: Names of the comparisons used for the variants of replies; fixtures may use others than the
    #: options.
    compared: frozenset[str] = frozenset()
    #: Names of the comparisons by which all clean answers agree although they differ.
    blind: Sequence[str] = ()
    #: Whether the same context got different answers before the run.
    varies: bool = False

    @property
    def summary(self) -> Summary:
        """The summary of the first relation."""
        return self.totals.first(",".join(self.totals.order)).summary

    @property
    def own_edits(self) -> frozenset[str]:
        """Names of the relations that make their own edits."""
        relations = self.totals.relations.items()
        return frozenset(name for name, one in relations if one.facts.edits == "own")

    @property
    def results(self) -> Results:
        """The results of all groups."""
        return JoinedResults(tuple(self.groups.values()))


def digest_of(variant: VariantResult) -> str:
    """Return a digest of the tracker's input for a variant.

    The input is the context and the text, or all rounds if the variant moves some. Two builds are
    compared on variants with equal digests.
    """
    if variant.exchanges is None:
        # Relations on tools do not change the texts, so the description of the change is included.
        tools = [] if variant.edits or variant.moves or not variant.about else [variant.about]
        return _digest([*variant.context, variant.text, *tools])
    return _digest([text for said in variant.exchanges for text in (said.system, said.user)])


def group_name(name: str, relation: str) -> str:
    """Return a group's name with its relation at the end, which the name may already have."""
    own = f"{_RELATION}{relation}"
    return name if relation == _DEFAULT or name.endswith(own) else f"{name}{own}"


def name_groups(groups: Groups) -> Groups:
    """Return groups of results under names that include their relation."""
    return {
        group_name(name, next(iter(turns)).relation) if turns else name: turns
        for name, turns in groups.items()
    }


def same_names(before: Mapping[str, object], after: Mapping[str, object]) -> dict[str, str]:
    """Return the new names of old groups that were renamed.

    A group is named after its first test, so a new test or a selection may rename it. If each side
    has exactly one group that the other side lacks, or exactly one with the same settings, both are
    the same group. So a tracker cannot hide its drift behind renamed tests or parameters.
    """
    gone = [name for name in before if name not in after]
    new = [name for name in after if name not in before]
    if len(gone) == len(new) == 1:
        return {gone[0]: new[0]}
    old_by, new_by = _by_settings(gone), _by_settings(new)
    return {
        names[0]: new_by[settings][0]
        for settings, names in old_by.items()
        if settings and len(names) == 1 == len(new_by.get(settings, ()))
    }


def _by_settings(groups: Iterable[str]) -> dict[str, list[str]]:
    """Return the names of groups by their settings."""
    found: dict[str, list[str]] = {}
    for name in groups:
        found.setdefault(settings_of(name), []).append(name)
    return found


def settings_of(group: str) -> str:
    """Return the settings in the name of a group. They follow the parameters of its first test.

    >>> settings_of("test_a.py::test_it[steps=1 -] steps=2 variants=3")
    'steps=2 variants=3'
    """
    return group.partition("] ")[2]


def by_relation(groups: Mapping[str, _T]) -> dict[str, dict[str, _T]]:
    """Return the groups of each relation, by group names without the relation."""
    found: dict[str, dict[str, _T]] = {}
    for name, turns in groups.items():
        base, _, relation = name.rpartition(_RELATION) if _NAMED.search(name) else (name, "", "")
        found.setdefault(relation or _DEFAULT, {})[base] = turns
    return found


def make_kept_state(state: State, hidden: bool) -> dict[str, str]:
    """Return a state in the form of a baseline, sorted by slot."""
    return {
        slot: _digest([slot, value]) if hidden else value for slot, value in sorted(state.items())
    }


def failures_of(turn: TurnResult) -> float | None:
    """Return the estimated probability that a turn fails, or ``None`` if it is not counted."""
    sampled = turn.noise is not None and turn.noise.sampled
    return turn_failures(turn) if sampled and has_expectation(turn) else None


def contents_of(data: DialogueSet) -> dict[str, tuple[str, ...]]:
    """Return the keys of all turns by dialogue, in the order of the data."""
    return {dialogue.id: turn_keys(dialogue) for dialogue in data.dialogues}


#: The entry of `campaign_identity` with the digests of the user's own code.
CODE: Final = "code"


def campaign_identity(
    settings: Settings,
    data: DialogueSet,
    *,
    lexicon: str,
    policy: str,
    noise: str,
    compared: Collection[str] = (),
    code: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return all settings that determine the variants of a dialogue, as plain JSON values.

    The dialogues and their ontology are not included, because both may grow. Each turn has a key,
    and each variant has a digest. Only turns with equal keys and variants with equal digests are
    compared. The word lists, the agent's policy and the noise model are identified by fingerprints.
    ``compared`` has the identities of the comparisons of answers, which tests and fixtures may have
    chosen; empty if states were compared for equality. ``code`` has the digests of the user's own
    code, see `campaign.code.code_of_rules`.
    """
    options = settings_json(settings)
    # The number of turns, domains and variants is left out: variants that both builds have can
    # still be compared. The relation is part of the group name, and only equal relations are
    # compared.
    decided = {name: options[name] for name in names_of("decides") if name != "relation"}
    # The fingerprint also covers several noise models together.
    decided["noise"] = noise
    if not settings.variant.noisy:
        del decided["noise"], decided["slip_rate"]
    # An agent is identified by its policy, not by the path of its file.
    decided["search"] = str(decided["search"]).partition(":")[0]
    found = {NORMALISATION: data.normalisation, **decided, "lexicon": lexicon, "policy": policy}
    if compared:
        # Only for replies, so that identities of states stay as in earlier versions.
        found |= {"outcome": settings.reply.outcome, "compare": " ".join(sorted(compared))}
    # Only if they are not the default ones, because earlier baselines lack them.
    plain = settings_json(Settings())
    found |= {name: options[name] for name in _OF_CONTEXTS if options[name] != plain[name]}
    return {**found, CODE: dict(sorted(code.items()))} if code else found


def changes(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    own_edits: bool = False,
    relation: str = "",
) -> list[str]:
    """Return the differences between two campaigns, one phrase each. None if comparable.

    ``own_edits``: ignore the settings of the search, because the relation makes its own edits.
    ``relation``: the name of the relation. The code of other relations is ignored.
    """
    found = []
    for name in dict.fromkeys((*after, *before)):
        if name == CODE or (own_edits and name in _OF_SEARCHES):
            continue
        old, new = before.get(name), after.get(name)
        # A new option that takes a list did not exist for an older baseline; empty means unused.
        if old != new and (name in before or new != []):
            called = _NAMES.get(name, name.replace("_", "-"))
            if name not in {**after, **BY_NAME}:
                found.append(
                    f"{called}: an earlier pytest-dstfuzz with this setting wrote the baseline"
                )
                continue
            hint = hint_of(old, new)
            found.append(f"{called}: {_shown(old)} in the baseline, {_shown(new)} now{hint}")
    old, new = before.get(CODE, {}), after.get(CODE, {})
    for name in sorted({*old, *new}):
        if name.startswith(RELATION):
            # Only relations of both builds are compared.
            ignored = not {name} <= old.keys() & new.keys() or (
                relation != "" and name != f"{RELATION}{relation}"
            )
        else:
            # The entry ``search`` has the name of the search without its argument.
            others = own_edits or before.get("search") != after.get("search")
            ignored = name.startswith(SEARCH) and others
        if not ignored and old.get(name) != new.get(name):
            hint = hint_of(old.get(name), new.get(name))
            found.append(
                f"the code of {name}, or a value in it, has changed since the baseline{hint}"
            )
    return found


def other_estimates(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    own_edits: bool = False,
    relation: str = "",
) -> list[str]:
    """Return the differences between two campaigns, except in the way that variants are drawn.

    The compared settings determine which answers are violations, and the estimated failures. For
    the arguments see `changes`.
    """
    both = [
        {name: value for name, value in each.items() if name not in _OF_DRAWS}
        for each in (before, after)
    ]
    for each in both:
        code = each.get(CODE, {})
        each[CODE] = {name: code[name] for name in code if not name.startswith(SEARCH)}
    return changes(*both, own_edits=own_edits, relation=relation)


def make_baseline(
    groups: Groups,
    campaign: Mapping[str, Any],
    model: str,
    contents: Contents,
    *,
    hidden: bool = False,
    varies: bool = False,
    variants: int | None = None,
) -> Baseline:
    """Return the baseline of a build.

    Args:
        groups: the results by group.
        campaign: see `campaign_identity`.
        model: name of the bot.
        contents: see `contents_of`.
        hidden: write digests in place of slot values.
        varies: whether the same context got different answers before the run.
        variants: number of variants for each turn.
    """
    kept: dict[str, list[TurnOutcomes]] = {}
    tally, answers = WeaknessTally(), RepetitionTally()
    for name, turns in sorted(name_groups(groups).items()):
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
        variants=variants,
    )


def _digest(texts: Sequence[str]) -> str:
    """Return a digest of texts as 12 hexadecimal digits."""
    return hashlib.sha256(json.dumps(texts).encode("ascii")).hexdigest()[:12]


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return "none" if value is None else text or "none"


BASELINE_VERSION: Final = 2
#: Version of a file with the baselines of several trackers.
MODELS_VERSION: Final = 3
_VALUES: Final = ("plain", "digests")


def baselines_text(baselines: Mapping[str, Baseline]) -> str:
    """Return the baselines of some trackers, by name, as the text of one file."""
    if [*baselines] == [""]:
        return baseline_text(baselines[""])
    entries = (
        f"{json.dumps(name)}: {baseline_text(one).rstrip()}" for name, one in baselines.items()
    )
    models = ",\n".join(entries)
    return f'{{\n"{VERSION_KEY}": {MODELS_VERSION},\n"models": {{\n{models}\n}}\n}}\n'


def baseline_text(baseline: Baseline) -> str:
    """Return the baseline of a tracker as the text of its file."""
    head = {
        VERSION_KEY: BASELINE_VERSION,
        "tool": baseline.version,
        "model": baseline.model,
        "campaign": dict(baseline.campaign),
        "values": _VALUES[baseline.hidden],
        **_weaknesses_json(baseline),
        **({} if baseline.repeats is None else {"repeats": baseline.repeats}),
        **({} if baseline.variants is None else {"variants": baseline.variants}),
        "groups": list(baseline.groups),
    }
    lines = [f"{json.dumps(name)}: {_compact(value)}" for name, value in head.items()]
    turns = ",\n".join(
        _compact(_turn_json(number, turn))
        for number, group in enumerate(baseline.groups.values())
        for turn in group
    )
    return "{\n" + ",\n".join(lines) + f',\n"turns": [\n{turns}\n]\n' + "}\n"


def read_baselines(path: Path) -> dict[str, Baseline]:
    """Read the baselines of a file by tracker name. See `Session.tracker`."""
    if not path.exists():
        raise DataError(f"there is no baseline {path}: write one with --dst-update-baseline")
    content = read_versioned(path, "baseline", VERSION_KEY, MODELS_VERSION, oldest=BASELINE_VERSION)
    try:
        if content[VERSION_KEY] < MODELS_VERSION:
            return {"": _baseline(from_json(_File, content))}
        found = from_json(_ModelsFile, content).models
        return {name: _baseline(one) for name, one in found.items()}
    except ValueError as error:
        raise DataError(
            f"{path} is a damaged baseline ({error}): write a new one with --dst-update-baseline"
        ) from None


def read_baseline(path: Path) -> Baseline:
    """Read a file with the baseline of exactly one tracker."""
    found = read_baselines(path)
    if len(found) > 1:
        raise DataError(f"{path} has the baselines of {len(found)} trackers, but must have one")
    return next(iter(found.values()))


def _turn_json(group: int, turn: TurnOutcomes) -> dict[str, Any]:
    return {
        "group": group,
        "dialogue": turn.dialogue,
        "turn": turn.turn,
        "key": turn.key,
        "state": None if turn.state is None else dict(turn.state),
        "variants": [_variant_json(each) for each in turn.variants],
        **({} if turn.failures is None else {"failures": turn.failures}),
        **({} if turn.own is None else {"own": turn.own}),
    }


def _variant_json(variant: ComparedVariant) -> tuple[Any, ...]:
    if variant.weakness:
        return variant
    return variant[:6] if variant.changed or variant.carried else variant[:3]


def _weaknesses_json(baseline: Baseline) -> dict[str, Any]:
    if baseline.weaknesses is None:
        return {}
    found = [each.to_json() for each in baseline.weaknesses]
    return {"weaknesses": found, "shrunk": baseline.shrunk}


@dataclass(frozen=True, slots=True, kw_only=True)
class _TurnEntry(TurnOutcomes):
    group: int


@dataclass(frozen=True, slots=True)
class _File:
    """The content of a baseline file without its version."""

    tool: str
    model: str
    campaign: dict[str, Any]
    values: Literal["plain", "digests"]
    groups: list[str]
    turns: list[_TurnEntry]
    #: Missing in files of earlier versions.
    weaknesses: list[KnownWeakness] | None = None
    shrunk: bool | None = None
    repeats: bool | None = None
    variants: int | None = None


@dataclass(frozen=True, slots=True)
class _ModelsFile:
    """The content of a file of several trackers without its version."""

    models: dict[str, _File]

    def __post_init__(self) -> None:
        if not self.models:
            raise ValueError("the file has no tracker")


def _baseline(content: _File) -> Baseline:
    names = content.groups
    if len(set(names)) != len(names):
        raise ValueError("two groups have the same name")
    groups: dict[str, dict[tuple[str, int], TurnOutcomes]] = {name: {} for name in names}
    for entry in content.turns:
        if not 0 <= entry.group < len(names):
            raise ValueError(f"there is no group {entry.group}")
        group = groups[names[entry.group]]
        if (entry.dialogue, entry.turn) in group:
            raise ValueError(f"turn {entry.turn} of {entry.dialogue!r} occurs twice")
        if len({variant.number for variant in entry.variants}) < len(entry.variants):
            place = f"turn {entry.turn} of {entry.dialogue!r}"
            raise ValueError(f"two variants of {place} have the same number")
        if entry.failures is not None and entry.failures < 0:
            raise ValueError(f"turn {entry.turn} of {entry.dialogue!r} has negative failures")
        group[entry.dialogue, entry.turn] = TurnOutcomes(
            *(entry.dialogue, entry.turn, entry.key, entry.state, entry.variants, entry.failures),
            own=entry.own,
        )
    return Baseline(
        model=content.model,
        version=content.tool,
        campaign=content.campaign,
        groups={name: list(turns.values()) for name, turns in groups.items()},
        hidden=content.values == "digests",
        weaknesses=None if content.weaknesses is None else tuple(content.weaknesses),
        shrunk=content.shrunk,
        repeats=content.repeats,
        variants=content.variants,
    )


def _compact(value: Any) -> str:
    # ASCII, because an id or slot may contain half of a surrogate pair, which has no UTF-8.
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


#: Causes that blame the variant's own edits, and so their transformations.
_OWN = ("turn", "both")
#: Outcomes of variants that broke nothing. A ``carried`` one had already broken before.
_HELD = ("held", "improved")


#: Dialogue, turn id, number and name of a variant.
_Place = tuple[str, str, int, str]


@dataclass(frozen=True, slots=True)
class Pair:
    """One variant that both builds were tested with."""

    turn_id: str
    dialogue: str
    index: int
    before: ComparedVariant
    after: ComparedVariant
    #: See `member_id`.
    name: str
    #: Whether both builds gave the same answer to the clean turn.
    same_answer: bool
    #: Transformations of the variant, and the slots and domains that are in the clean prediction of
    #: either build or that the variant changed.
    parts: frozenset[Part]

    @property
    def moved(self) -> int:
        """1 if only the run has a violation, -1 if only the baseline has a violation, else 0."""
        return self.violates(self.after, None) - self.violates(self.before, None)

    @property
    def broke(self) -> bool:
        """Whether only the run has a violation, although both builds gave the same clean answer."""
        held = self.before.outcome in _HELD
        return self.same_answer and held and self.after.outcome == "violation"

    @property
    def known(self) -> bool:
        """Whether both builds have a violation on the variant."""
        return self.before.outcome == self.after.outcome == "violation"

    def violates(self, outcome: ComparedVariant, part: Part | None) -> bool:
        """Return whether an outcome is a violation, optionally only in a given part."""
        if outcome.outcome != "violation" or part is None:
            return outcome.outcome == "violation"
        if part.kind == "transformation":
            return outcome.cause in _OWN
        return part in parts_of(outcome.changed)


class Tally(NamedTuple):
    """Counts for a dialogue or part: compared variants, and violations in each build."""

    variants: int = 0
    before: int = 0
    after: int = 0


class Failing(NamedTuple):
    """Turns of a dialogue with failure estimates, and the estimated failures in each build."""

    turns: int = 0
    before: float = 0.0
    after: float = 0.0


class VariantSums:
    """Sums over the shared variants of two builds, by dialogue, and the changed variants."""

    def __init__(self) -> None:
        #: Number of variants that either build ran on shared turns, and of identical variants
        #: that were answered in both.
        self.possible = self.variants = 0
        #: Ids of the weaknesses of variants that are a violation in only one build.
        self.weaknesses: set[str] = set()
        #: Weakness id -> its violations in the baseline, and in the run, whose variant violates in
        #: the other build too, with any weakness.
        self.old_before: Counter[str] = Counter()
        self.old_after: Counter[str] = Counter()
        self._numbers = DialogueNumbers()
        #: Part, or ``None`` for all -> variants and violations before and after, per dialogue.
        self._sums: dict[Part | None, DialogueSums] = {None: DialogueSums(3, self._numbers)}
        #: Dialogue, turn id, number, and 1 (violation in the run only) or -1 (in the baseline
        #: only).
        self._moved: list[tuple[str, str, int, int]] = []
        #: Places of the variants that broke, and of violations in both builds.
        self._broke: list[_Place] = []
        self._known: list[_Place] = []

    def add(self, pair: Pair) -> None:
        """Count a variant."""
        self.variants += 1
        if pair.violates(pair.before, None) and pair.violates(pair.after, None):
            self.old_before[pair.before.weakness] += 1
            self.old_after[pair.after.weakness] += 1
        if pair.moved:
            self.weaknesses.add(pair.before.weakness or pair.after.weakness)
            self._moved.append((pair.dialogue, pair.turn_id, pair.index, pair.moved))
        place = (pair.dialogue, pair.turn_id, pair.index, pair.name)
        if pair.broke:
            self._broke.append(place)
        if pair.known:
            self._known.append(place)
        for part in (None, *pair.parts):
            if part not in self._sums:
                self._sums[part] = DialogueSums(3, self._numbers)
            before, after = (pair.violates(build, part) for build in (pair.before, pair.after))
            self._sums[part].add(pair.dialogue, 1, before, after)

    def moved(self, sign: int) -> tuple[tuple[str, int], ...]:
        """Return the variants whose verdict changed in one direction: (turn id, number), sorted."""
        return tuple((turn, index) for _, turn, index, way in sorted(self._moved) if way == sign)

    @property
    def broke(self) -> tuple[str, ...]:
        """Names of the violations that only the run has, see `Pair.broke`."""
        return tuple(name for *_, name in sorted(self._broke))

    @property
    def known(self) -> tuple[str, ...]:
        """Names of the violations that both builds have."""
        return tuple(name for *_, name in sorted(self._known))

    def take(self, other: VariantSums) -> None:
        """Add the sums of another relation to these."""
        self.possible += other.possible
        self.variants += other.variants
        self.weaknesses |= other.weaknesses
        self.old_before.update(other.old_before)
        self.old_after.update(other.old_after)
        self._moved += other._moved
        self._broke += other._broke
        self._known += other._known
        for part, sums in other._sums.items():
            if part not in self._sums:
                self._sums[part] = DialogueSums(3, self._numbers)
            for dialogue, row in zip(other._numbers, sums.rows(0, 1, 2), strict=False):
                self._sums[part].add(dialogue, *row)

    def by_dialogue(self, part: Part | None = None) -> dict[str, Tally]:
        """Return the tally of each dialogue with a variant in the part, sorted by dialogue."""
        sums = self._sums.get(part)
        rows = [] if sums is None else sums.rows(0, 1, 2)
        found = {name: Tally(*row) for name, row in zip(self._numbers, rows, strict=False)}
        return {name: tally for name, tally in sorted(found.items()) if tally.variants}

    def by_part(self) -> dict[Part, Tally]:
        """Return the tally of every domain, slot and transformation, sorted."""
        found = {
            part: Tally(*map(sum, zip(*sums.rows(0, 1, 2), strict=True)))
            for part, sums in self._sums.items()
            if part is not None
        }
        return dict(sorted(found.items()))


def parts_of(paths: Iterable[str]) -> set[Part]:
    """Return the domains and slots of paths."""
    parts = {AnswerPath.of(path).part for path in paths}
    return {
        *(Part("domain", domain) for domain, _ in parts if domain),
        *(Part("slot", slot) for _, slot in parts),
    }


#: The limits of a relation without a table of its own.
_NONE: Final = Limits()
#: Maximum number of relations named in a sentence.
_MOST_NAMES: Final = 5


@dataclass(frozen=True)
class RelationGate:
    """One relation of a session with its limits."""

    totals: RelationTotals
    #: ``None`` if the session has no other relation.
    part: Part | None
    #: The limits of this relation, if it has any.
    own: Limits

    @property
    def name(self) -> str:
        """The name of the relation."""
        return self.totals.name

    @property
    def must_change(self) -> bool:
        """Whether the relation expects a change of the state."""
        return self.totals.follows

    @property
    def own_edits(self) -> bool:
        """Whether the relation makes its own edits."""
        return self.totals.facts.edits == "own"

    @property
    def summary(self) -> Summary:
        """The summary of the relation."""
        return self.totals.summary

    def counts_of(self, part: Part) -> Counts:
        """Return the counts of the variants of a domain, slot or transformation."""
        rows: Mapping[str, Mapping[str, Counts]] = {
            "domain": self.totals.yields.domains,
            "slot": self.totals.yields.slots,
            "transformation": self.totals.ledger.transformations,
        }
        return rows[part.kind].get(part.name, Counts())

    def limit(self, whole: float | None, own: float | None) -> tuple[Part | None, float] | None:
        """Return the limit that applies, with the part that it belongs to, or ``None``.

        The relation's limit ``own`` has priority. The session's limit ``whole`` applies only to
        relations that expect no change.
        """
        if own is not None:
            return Part("relation", self.name), own
        return None if self.must_change or whole is None else (self.part, whole)


def list_tested_relations(session: Session, gates: Gates) -> list[RelationGate]:
    """Return the relations of a session in the order of their names in the options."""
    found = session.totals.in_order
    return [
        RelationGate(
            one,
            Part("relation", one.name) if len(found) > 1 else None,
            gates.parts.get(Part("relation", one.name), _NONE),
        )
        for one in found
    ]


def report_unapplied(name: str, said: str) -> LimitFinding:
    """Return an inconclusive finding for a relation that applied to no turn."""
    return LimitFinding(Part("relation", name), "applies", None, "inconclusive", said)


def own_tables(names: Sequence[str]) -> str:
    """Return the name of the table for a relation's limits. The first relation is the example.

    >>> own_tables(["negation"])
    'in [tool.dstfuzz.gates.relation.negation]'
    """
    such = "such as " if len(names) > 1 else ""
    return f"{such}in [tool.dstfuzz.gates.relation.{names[0]}]"


def main_of(found: Sequence[RelationGate]) -> RelationGate | None:
    """Return the relation that the limits of domains, slots and transformations apply to.

    Prefer the first relation that expects no change, otherwise take the first relation.
    """
    return next((one for one in found if not one.must_change), next(iter(found), None))


def list_unjudged(
    every: Sequence[RelationGate], gates: Gates, *, compared: bool
) -> tuple[str, ...]:
    """Return the names of the relations without a limit. Empty if the session has no limits.

    ``compared`` says whether a baseline exists. With a baseline, relations that expect no change
    are always judged.
    """
    if not (gates.of_violations or compared):
        return ()
    main, rise = main_of(every), gates.whole.get("max_estimated_failures")
    of_parts = any(part.kind != "relation" for part in gates.parts)
    return tuple(
        one.name
        for one in every
        if one.limit(gates.whole.get("max_failure_rate"), one.own.get("max_failure_rate")) is None
        and not (compared and (one.own.get("max_regression") is not None or not one.must_change))
        and not (one is main and of_parts)
        and not (rise is not None and not one.own_edits)
    )


def idle(gates: Gates, found: Sequence[RelationGate]) -> LimitFinding:
    """Return an inconclusive finding if none of the limits concerns the tested relations."""
    of = format_list([str(part) for part in gates.parts], _MOST_NAMES)
    names = format_list([one.name for one in found], _MOST_NAMES)
    reason = f"no limit applies to this run: there are limits for {of}, but none for {names}"
    return LimitFinding(None, "max-failure-rate", None, "inconclusive", reason)


def report_unnamed(gate: str, limit: float, found: Sequence[RelationGate]) -> LimitFinding:
    """Return an inconclusive finding for a limit of the session that applies to no relation."""
    names = [one.name for one in found]
    each = names[0] if len(names) == 1 else f"each of {format_list(names, _MOST_NAMES)}"
    reason = (
        f"{gate} applies only to relations that expect no change, and this run has none: set a "
        f"limit for {each}, {own_tables(names)}"
    )
    return LimitFinding(None, gate, limit, "inconclusive", reason)


Turns = Mapping[str, Sequence[TurnOutcomes]]


class Suite(NamedTuple):
    """The trackers of a suite by name, to tell a renamed one from another one."""

    #: The trackers and files of all tests that pytest collected, before the selection.
    collected: frozenset[str] = frozenset({""})
    files: frozenset[str] = frozenset()
    #: Whether pytest collected all test files, and whether it selected all of their tests.
    all_files: bool = True
    all_tests: bool = True
    root: Path = Path()

    @property
    def is_part(self) -> bool:
        """Whether the run may have left out tests."""
        return not (self.all_files and self.all_tests)

    def has(self, name: str) -> bool:
        """Return whether a tracker of a baseline still belongs to the suite."""
        if name in self.collected or self.all_files:
            return name in self.collected
        if (place := _place_of(name)) is None:
            return True
        seen = {*map(_place_of, self.collected), *self.files} if self.all_tests else set()
        return place not in seen and (self.root / place).exists()

    def find(self, name: str, groups: Collection[str], known: Mapping[str, Baseline]) -> str | None:
        """Return the name of a tracker in a baseline, or ``None``.

        A renamed tracker is found by the names of its ``groups``, or because it is the only new one
        and one is gone.
        """
        if name in known:
            return name
        others = [other for other in known if other not in self.collected]
        alike = (other for other in others if not known[other].groups.keys().isdisjoint(groups))
        gone = [other for other in others if not self.has(other)]
        renamed = gone[0] if len(gone) == len(self.collected - known.keys()) == 1 else None
        return next(alike, renamed)


def _place_of(name: str) -> str | None:
    """Return the file or folder of the fixture in the name of a tracker.

    >>> _place_of("tests/test_a.py::TestIt::dst_model[a-b]"), _place_of("dst_model"), _place_of("")
    ('tests/test_a.py', '', None)
    """
    place, found, _ = name.partition("[")[0].partition(", ")[0].rpartition("dst_")
    return place.partition("::")[0] if found else None


@dataclass(frozen=True, slots=True)
class Update:
    """The baselines that replace the baselines of an earlier file."""

    #: By tracker name.
    baselines: Mapping[str, Baseline]
    #: Number of turns kept from the earlier file, and of those dropped with their tests.
    kept: int = 0
    dropped: int = 0
    #: Why nothing may be written, or ``""``.
    refused: str = ""


def update_all(
    old: Mapping[str, Baseline],
    new: Mapping[str, Baseline],
    contents: Mapping[str, Sequence[str]],
    suite: Suite,
) -> Update:
    """Add turns that this run did not test, from the old baselines, to the run's baselines.

    Args:
        old: the content of the file by tracker name.
        new: the baselines of the run, by tracker name.
        contents: see `contents_of`. Turns that are no longer in the data are dropped, unless
            the run is a part of the suite.
        suite: the tests of the suite. If the baselines of a part cannot be merged with the old
            baselines, the update is refused. Those of the whole suite replace the old ones.
    """
    # A part may leave out whole trackers.
    found = dict(old) if suite.is_part else {}
    kept, dropped, updates = 0, 0, set[str]()
    for name, one in new.items():
        known = suite.find(name, one.groups, old)
        if known is None or known in updates:
            if not suite.all_tests:
                reason = (
                    "the old file has no turn of the selected tests. Run all tests of their files"
                )
                return Update(new, refused=reason)
            found[name] = one
            continue
        updated, counts = _update(old[known], one, contents, narrowed=suite.is_part)
        if isinstance(updated, str):
            return Update(new, refused=updated)
        found[known if suite.is_part else name] = updated
        updates.add(known)
        kept += counts.kept
        dropped += counts.dropped
    kept += sum(_count(one) for name, one in old.items() if found.get(name) is one)
    lost = [one for name, one in old.items() if name not in updates and name not in found]
    dropped += sum(map(_count, lost))
    return Update(found, kept, dropped)


def _count(baseline: Baseline) -> int:
    return sum(map(len, baseline.groups.values()))


class _Counts(NamedTuple):
    """Numbers of turns of an earlier baseline, see `Update`."""

    kept: int
    dropped: int


def _update(
    old: Baseline, new: Baseline, contents: Mapping[str, Sequence[str]], *, narrowed: bool
) -> tuple[Baseline | str, _Counts]:
    """Return a tracker's merged baseline or the reason against it, and the numbers of turns."""
    names = same_names(old.groups, new.groups)
    before = {names.get(name, name): turns for name, turns in old.groups.items()}
    if not narrowed:  # The suite no longer has the other tests.
        before = {name: turns for name, turns in before.items() if name in new.groups}
    rest = _rest(before, new.groups, lambda turn: narrowed or _is_there(turn, contents))
    kept = sum(map(len, rest.values()))
    replaced = _Counts(0, _count(old) - sum(map(len, before.values())))
    if not kept:
        return new, replaced
    unlike = _unlike(old, new)
    if any(settings_of(one) != settings_of(other) for one, other in names.items()):
        unlike.append("a marker, a fixture or the relation gives a test other settings")
    if unlike:
        if not narrowed:
            return new, replaced
        reason = (
            f"this run tested {format_count(_count(new), 'turn')}, and "
            f"{format_count(kept, 'other turn')} of the baseline cannot be combined with them "
            f"({'; '.join(unlike)}). Run pytest without a selection, such as -k or a file, or use "
            "the settings of the baseline"
        )
        return reason, replaced
    groups = {
        name: sorted(
            chain(rest.get(name, ()), new.groups.get(name, ())), key=attrgetter("dialogue", "turn")
        )
        for name in sorted({*rest, *new.groups})
    }
    found = replace(
        new,
        groups=groups,
        weaknesses=_weaknesses(old, new, groups),
        shrunk=old.shrunk if new.shrunk is None else new.shrunk,
        repeats=None if old.repeats is None else old.repeats and bool(new.repeats),
    )
    return found, replaced._replace(kept=kept)


def _rest(
    before: Turns, now: Turns, wanted: Callable[[TurnOutcomes], bool]
) -> dict[str, list[TurnOutcomes]]:
    """Return the turns of a baseline that this run did not test, by group, without empty groups."""
    found = {}
    for name, turns in before.items():
        run = {(turn.dialogue, turn.turn) for turn in now.get(name, ())}
        rest = [turn for turn in turns if (turn.dialogue, turn.turn) not in run and wanted(turn)]
        if rest:
            found[name] = rest
    return found


def _is_there(turn: TurnOutcomes, contents: Mapping[str, Sequence[str]]) -> bool:
    keys = contents.get(turn.dialogue, ())
    return turn.turn < len(keys) and keys[turn.turn] == turn.key


def _unlike(old: Baseline, new: Baseline) -> list[str]:
    """Return why one file cannot hold turns of both baselines. Empty if both fit into one file."""
    found = changes(old.campaign, new.campaign)
    if old.hidden != new.hidden:
        found.append("--dst-redact differs")
    if {old.shrunk, new.shrunk} == {True, False}:
        found.append("--dst-shrink differs")
    if None not in (old.variants, new.variants) and old.variants != new.variants:
        found.append(f"variants: {old.variants} in the baseline, {new.variants} now")
    if old.weaknesses is None:
        found.append("an earlier pytest-dstfuzz wrote the baseline")
    return found


def _weaknesses(old: Baseline, new: Baseline, groups: Turns) -> tuple[KnownWeakness, ...]:
    """Count weaknesses of merged turns. Estimated failures are missing: they need a whole run."""
    counts: dict[str, int] = {}
    turns: dict[str, set[tuple[str, int]]] = {}
    for turn in chain.from_iterable(groups.values()):
        for variant in turn.variants:
            if variant.weakness:
                counts[variant.weakness] = counts.get(variant.weakness, 0) + 1
                turns.setdefault(variant.weakness, set()).add((turn.dialogue, turn.turn))
    known = {each.id: each for each in (*(old.weaknesses or ()), *(new.weaknesses or ()))}
    return tuple(
        KnownWeakness(name, known[name].description, count, len(turns[name]))
        for name, count in sorted(counts.items())
        if name in known
    )
