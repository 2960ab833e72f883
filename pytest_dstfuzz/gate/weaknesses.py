"""The weaknesses of two builds: which are new, which are fixed, and which were looked for in both.

An id is a function of what a weakness is alone, so builds are compared by their ids. What only one
build has may have been looked for by that build alone, where the other was asked other variants. A
variant that breaks both builds in different ways makes no weakness new, and none fixed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from pytest_dstfuzz.config.rates import percent
from pytest_dstfuzz.gate.baseline import (
    Baseline,
    KnownWeakness,
    Session,
    by_relation,
    other_estimates,
)
from pytest_dstfuzz.gate.pairing import Pairing
from pytest_dstfuzz.gate.verdict import LimitFinding, Verdict
from pytest_dstfuzz.printable import listed
from pytest_dstfuzz.weaknesses.keys import key_of_id

#: Ids that a sentence names.
_MOST_NAMES: Final = 5


def compare_weaknesses(
    baseline: Baseline, session: Session, pairing: Pairing, others: Sequence[str]
) -> dict[str, Any]:
    """Return ``weaknesses`` of a report's comparison.

    ``others`` say why the variants of the builds are not compared, if they are not. A weakness
    was looked for by a build that answered one of the variants which show it in the other.
    """
    figures: dict[str, Any] = {"reason": "", "caveat": "", "new": [], "fixed": [], "common": []}
    if baseline.weaknesses is None:
        reason = "the baseline is of an earlier pytest-dstfuzz, which kept none"
        return figures | {"reason": reason}
    if any(key_of_id(each.id) is None for each in baseline.weaknesses):
        reason = "the baseline is of another pytest-dstfuzz, which grouped violations otherwise"
        return figures | {"reason": reason}
    known = _shared(baseline, pairing)
    now = [KnownWeakness.of(each) for each in pairing.weaknesses.weaknesses]
    before, after = {each.id: each for each in known}, {each.id: each for each in now}
    otherwise = {baseline.shrunk, pairing.weaknesses.shrunk} == {True, False}
    # What counts as a violation, and what one is read from, is the same in both builds.
    proven = frozenset(
        weakness
        for name, asked in pairing.asked.items()
        if not otherwise
        if not other_estimates(
            baseline.campaign, session.campaign, own_edits=name in session.own_edits
        )
        for weakness in asked.weaknesses
    )
    figures["new"] = _only(now, before, proven, pairing.shared.old_after)
    figures["fixed"] = _only(known, after, proven, pairing.shared.old_before)
    figures["common"] = [
        {
            "id": each.id,
            "description": each.description,
            "before": _figures(before[each.id]),
            "after": _figures(each),
        }
        for each in now
        if each.id in before
    ]
    if not all(each["looked_for"] for each in (*figures["new"], *figures["fixed"])):
        figures["caveat"] = _caveat(pairing, others, otherwise=otherwise)
    return figures


def _shared(baseline: Baseline, pairing: Pairing) -> Sequence[KnownWeakness]:
    """Return the baseline's weaknesses without those of relations that it alone tested."""
    known = baseline.weaknesses or ()
    if not (pairing.only_baseline_relations and pairing.asked):
        return known
    ids = {
        variant.weakness
        for relation, groups in by_relation(baseline.groups).items()
        if relation in pairing.asked
        for turns in groups.values()
        for turn in turns
        for variant in turn.variants
    }
    return tuple(each for each in known if each.id in ids)


def judge_new_weaknesses(limit: float, found: Mapping[str, Any]) -> LimitFinding:
    """Judge how many of the weaknesses that `compare_weaknesses` returned are new.

    Only what the baseline was asked and did not show is certainly new: more of these than the
    limit fail the session, more of the others leave it undecided.
    """
    gate = "max-new-weaknesses"
    if found["reason"]:
        reason = f"the weaknesses are not compared with the baseline: {found['reason']}"
        return LimitFinding(None, gate, limit, "inconclusive", reason)
    new = found["new"]
    unsure = sum(not each["looked_for"] for each in new)
    verdict: Verdict = "pass"
    if len(new) > limit:
        verdict = "regression" if len(new) - unsure > limit else "inconclusive"
    names = f" ({listed([each['id'] for each in new], _MOST_NAMES)})" if new else ""
    many = "1 weakness is" if len(new) == 1 else f"{len(new)} weaknesses are"
    reason = f"{many} new since the baseline{names}; {limit:g} may be"
    if unsure:
        reason += f"; {unsure} of them may not have been looked for in it: {found['caveat']}"
    return LimitFinding(None, gate, limit, verdict, reason, len(new))


def _only(
    weaknesses: Sequence[KnownWeakness],
    others: Collection[str],
    proven: Collection[str],
    old: Mapping[str, int],
) -> list[dict[str, Any]]:
    """Return the weaknesses of one build that are not among the ``others``.

    Each has a violation that is none in the other build: ``old`` counts those that are.
    """
    return [
        {**each.to_json(), "looked_for": each.id in proven}
        for each in weaknesses
        if each.id not in others and each.count > old.get(each.id, 0)
    ]


def _figures(weakness: KnownWeakness) -> dict[str, Any]:
    found = weakness.to_json()
    return {name: found[name] for name in ("count", "turns", "expected_failures")}


def _caveat(pairing: Pairing, others: Sequence[str], *, otherwise: bool) -> str:
    """Say why the variants of two builds are not all the same."""
    if others:
        return "; ".join(others)
    if otherwise:
        return "violations were shrunk in one of the builds alone, which groups them otherwise"
    if pairing.share is not None and pairing.share < 1:
        return f"{percent(pairing.share)} of the variants are the same and were answered in both"
    return "not all turns are in both builds, under the names that they had"
