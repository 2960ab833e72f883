"""A baseline: what a build did to every variant, kept in a file for the builds after it.

One JSON object with a turn on each line, so that two baselines can be compared with
``diff``; the same campaign gives the same bytes. Its keys:

``baseline_version``
    1. It grows when a key changes its meaning or goes.
``tool``, ``model``
    Version of this package and name of the tracker; for people, not compared.
``campaign``
    All that decides which variants are made; see `campaign_identity`.
``groups``
    Names of the groups of results: one, unless a suite tests several trackers or has tests
    with settings of their own.
``turns``
    By group, dialogue and turn. Each has ``group`` (number), ``id``, ``dialogue``, ``slots``
    of the clean prediction and ``variants``. A variant is a list: its number, a digest of
    its text in its context (12 hexadecimal digits), its outcome, and where slots changed
    the cause or null, the slots that changed anew and those that were carried.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, get_args

from pytest_dstfuzz import __version__
from pytest_dstfuzz.campaign.results import Cause, TurnResult, VariantOutcome, VariantResult
from pytest_dstfuzz.config import Settings, settings_json
from pytest_dstfuzz.dialogue.fingerprint import content_fingerprint
from pytest_dstfuzz.dialogue.types import DialogueSet
from pytest_dstfuzz.errors import DataError

BASELINE_VERSION: Final = 1
#: Settings that decide which variants are made and what is a violation. Not how many: of
#: turns, domains and variants that only one build has, the others can still be compared.
_DECIDING: Final = (
    *("seed", "transformations", "redraws", "until_broken", "only", "search", "attack"),
    *("validity", "max_edit_rate", "flat_edit_rate", "lock", "relation"),
)
#: What `changes` calls the keys of the identity that are no options.
_NAMES: Final = {
    "data": "the data set",
    "split": "the split",
    "content": "the content of the data",
    "lexicon": "the lexicon",
    "policy": "the agent's policy",
    "validity": "the validity profile",
}

#: Group of results -> its turns.
Groups = Mapping[str, Sequence[TurnResult]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one variant, as far as builds are compared by it."""

    #: Of the text and its context: the same digest, the same question to the tracker.
    digest: str
    outcome: VariantOutcome
    cause: Cause | None = None
    #: Slots that changed anew, and those that had changed at an earlier turn.
    changed: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()

    @classmethod
    def of(cls, variant: VariantResult) -> Outcome:
        """Take from a result what a baseline keeps of it."""
        text = json.dumps([*variant.context, variant.text])
        return cls(
            digest=hashlib.sha256(text.encode("ascii")).hexdigest()[:12],
            outcome=variant.outcome,
            cause=variant.cause,
            changed=tuple(item.slot for item in variant.changed_slots if not item.carried),
            carried=tuple(item.slot for item in variant.changed_slots if item.carried),
        )

    def to_json(self) -> list[Any]:
        """Return the digest, the outcome and, where slots changed, cause and slots."""
        if not (self.changed or self.carried):
            return [self.digest, self.outcome]
        slots = [list(self.changed), list(self.carried)]
        return [self.digest, self.outcome, self.cause, *slots]


@dataclass(frozen=True, slots=True)
class TurnOutcomes:
    """What came of the variants of one turn."""

    id: str
    dialogue: str
    #: Slots of the clean prediction.
    slots: tuple[str, ...]
    #: Number of the variant -> what came of it.
    variants: Mapping[int, Outcome]

    @classmethod
    def of(cls, turn: TurnResult) -> TurnOutcomes:
        """Take from a result what a baseline keeps of it."""
        return cls(
            id=turn.id,
            dialogue=turn.dialogue_id,
            slots=tuple(turn.clean_state or ()),
            variants={variant.index: Outcome.of(variant) for variant in turn.variants},
        )


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a build did, and everything that must be the same to compare another with it."""

    #: Name of the tracker; for people.
    model: str
    #: Version of this package that wrote it.
    version: str
    campaign: Mapping[str, Any]
    groups: Mapping[str, Sequence[TurnOutcomes]]


def campaign_identity(
    settings: Settings, data: DialogueSet, *, lexicon: str, policy: str
) -> dict[str, Any]:
    """Return all that decides which variants a campaign makes, as plain JSON values.

    Args:
        settings: of the session.
        data: the data set.
        lexicon: fingerprint of the words that variants were made with.
        policy: fingerprint of the agent's policy that chose them, or ``""``.
    """
    options = settings_json(settings)
    decided = {name: options[name] for name in _DECIDING}
    # An agent is its policy, wherever the file of it lies.
    decided["search"] = str(decided["search"]).partition(":")[0]
    return {
        "data": data.name,
        "split": data.split,
        "content": content_fingerprint(data),
        **decided,
        "lexicon": lexicon,
        "policy": policy,
    }


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Say what differs between two campaigns, one phrase each; nothing where they compare."""
    found = []
    for name in dict.fromkeys((*after, *before)):
        old, new = before.get(name), after.get(name)
        if old != new:
            called = _NAMES.get(name, name.replace("_", "-"))
            found.append(f"{called}: {_shown(old)} in the baseline, {_shown(new)} now")
    return found


def make_baseline(groups: Groups, campaign: Mapping[str, Any], model: str) -> Baseline:
    """Return the baseline of a build.

    Args:
        groups: all results of the session.
        campaign: see `campaign_identity`.
        model: name of the tracker.
    """
    kept = {
        name: [
            TurnOutcomes.of(turn)
            for turn in sorted(turns, key=lambda turn: (turn.dialogue_id, turn.turn_index))
        ]
        for name, turns in sorted(groups.items())
    }
    return Baseline(model, __version__, campaign, kept)


def baseline_text(baseline: Baseline) -> str:
    """Return the baseline as the text of its file."""
    head = {
        "baseline_version": BASELINE_VERSION,
        "tool": baseline.version,
        "model": baseline.model,
        "campaign": dict(baseline.campaign),
        "groups": list(baseline.groups),
    }
    lines = [f"{json.dumps(name)}: {_compact(value)}" for name, value in head.items()]
    turns = ",\n".join(
        _compact(
            {
                "group": number,
                "id": turn.id,
                "dialogue": turn.dialogue,
                "slots": list(turn.slots),
                "variants": [
                    [index, *outcome.to_json()] for index, outcome in sorted(turn.variants.items())
                ],
            }
        )
        for number, group in enumerate(baseline.groups.values())
        for turn in group
    )
    return "{\n" + ",\n".join(lines) + f',\n"turns": [\n{turns}\n]\n' + "}\n"


def read_baseline(path: Path) -> Baseline:
    """Read a baseline.

    Raises:
        DataError: the file is missing, no baseline, or one of a newer version.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(
            f"there is no baseline {path}: write one with --dst-update-baseline"
        ) from None
    except OSError as error:
        raise DataError(f"cannot read the baseline {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is no baseline, or a truncated one: {error}") from None
    if not isinstance(content, dict) or not isinstance(content.get("baseline_version"), int):
        raise DataError(f"{path} is no baseline: it has no 'baseline_version'")
    if content["baseline_version"] > BASELINE_VERSION:
        raise DataError(
            f"{path} has the version {content['baseline_version']}, this package knows "
            f"{BASELINE_VERSION}: update pytest-dstfuzz"
        )
    try:
        return _baseline(content)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        what = f"{type(error).__name__} {error}"
        raise DataError(
            f"{path} is a damaged baseline ({what}): write a new one with --dst-update-baseline"
        ) from None


def _baseline(content: Mapping[str, Any]) -> Baseline:
    names = [str(name) for name in content["groups"]]
    groups: dict[str, list[TurnOutcomes]] = {name: [] for name in names}
    for turn in content["turns"]:
        groups[names[turn["group"]]].append(_turn(turn))
    return Baseline(str(content["model"]), str(content["tool"]), dict(content["campaign"]), groups)


def _turn(turn: Mapping[str, Any]) -> TurnOutcomes:
    return TurnOutcomes(
        id=str(turn["id"]),
        dialogue=str(turn["dialogue"]),
        slots=tuple(turn["slots"]),
        variants={int(index): _outcome(*rest) for index, *rest in turn["variants"]},
    )


def _outcome(
    digest: str,
    outcome: VariantOutcome,
    cause: Cause | None = None,
    changed: Sequence[str] = (),
    carried: Sequence[str] = (),
) -> Outcome:
    if outcome not in get_args(VariantOutcome):
        raise ValueError(f"no outcome: {outcome!r}")
    return Outcome(digest, outcome, cause, tuple(changed), tuple(carried))


def _compact(value: Any) -> str:
    # ASCII: half of a surrogate pair in an id or a slot has no UTF-8.
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return "none" if value is None else text or "none"
