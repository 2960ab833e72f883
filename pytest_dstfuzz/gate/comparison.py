"""The comparison with a baseline: estimated failures, new violations, new weaknesses."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from pytest_dstfuzz.campaign.figures import TURNS
from pytest_dstfuzz.config.parsers import percent
from pytest_dstfuzz.gate.baseline import (
    NORMALISATION,
    Baseline,
    KnownWeakness,
    RelationGate,
    Session,
    Tally,
    by_relation,
    changes,
    main_of,
    other_estimates,
    report_unnamed,
)
from pytest_dstfuzz.gate.pairing import (
    DEFAULT_MAX_DRIFT,
    LEVEL,
    Drift,
    PairedViolations,
    Pairing,
    dialogues_needed,
    fewest_dialogues,
    interval,
    judge_drift,
    pair_up,
    permutation_test,
)
from pytest_dstfuzz.gate.verdict import (
    DEFAULT_MAX_REGRESSION,
    KINDS,
    Gates,
    Judgement,
    LimitFinding,
    Part,
    Verdict,
    judge_difference,
    judge_rise,
)
from pytest_dstfuzz.printable import format_count, format_list
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.weaknesses.groups import key_of_id


def judge_estimated_rise(
    limit: float, figures: dict[str, Any] | None, pairing: Pairing
) -> LimitFinding:
    """Judge the rise of the estimated failures, the result of `compare_expected`, by its limit."""
    needed = None
    if figures is not None and not figures["reason"]:
        paired = _paired(pairing)
        several = len(pairing.failing) > 1
        needed = dialogues_needed(paired, limit / TURNS) if several else fewest_dialogues()
    return judge_rise(limit, figures, needed)


def compare_expected(
    baseline: Baseline, session: Session, pairing: Pairing
) -> dict[str, Any] | None:
    """Return the entry ``estimated_failures`` of a comparison, or ``None`` without estimates."""
    now = session.summary.estimated_failures
    if now is None:
        return None
    figures: dict[str, Any] = {
        "before": None,
        "after": None,
        "difference": None,
        "interval": None,
        "turns": sum(each.turns for each in pairing.failing.values()),
        "dialogues": len(pairing.failing),
        "reason": _expectations_not_comparable(baseline, session, pairing) or now.reason,
    }
    if figures["reason"]:
        return figures
    paired, turns = _paired(pairing), figures["turns"]
    before, after = (math.fsum(column) / turns for column in (paired.before, paired.after))
    bounds = interval(paired, stream(session.seed, "gate", "expected failures"))
    return figures | {
        "before": TURNS * before,
        "after": TURNS * after,
        "difference": TURNS * (after - before),
        "interval": None if bounds is None else [TURNS * bound for bound in bounds],
    }


def _paired(pairing: Pairing) -> PairedViolations:
    return PairedViolations.of_rows(
        (each.before, each.after, each.turns) for each in pairing.failing.values()
    )


def _expectations_not_comparable(baseline: Baseline, session: Session, pairing: Pairing) -> str:
    """Return why two builds have no comparable estimates, or ``""``."""
    if all(turn.failures is None for turns in baseline.groups.values() for turn in turns):
        return (
            "the baseline has no estimates: its search makes none (use --dst-search=noise), "
            "or an earlier pytest-dstfuzz wrote it"
        )
    if others := other_estimates(baseline.campaign, session.campaign):
        return "; ".join(others)
    return "" if pairing.failing else "no turn has an estimate in both the baseline and this run"


#: Default limit of new violations, for a deterministic bot.
DEFAULT_MAX_NEW: Final = 0
#: Maximum number of names in a sentence.
_MOST_NAMES: Final = 5


def compare_violations(baseline: Baseline, session: Session, pairing: Pairing) -> dict[str, Any]:
    """Return the entry ``violations`` of a report's comparison.

    A relation is compared if both builds would judge the same answers as violations. The settings
    for drawing variants may differ, because only identical variants are compared.
    """
    unlike = _unlike(baseline, session, pairing)
    alike = [asked for name, asked in pairing.asked.items() if not unlike[name]]
    why = dict.fromkeys(text for texts in unlike.values() for text in texts)
    return {
        "new": [name for asked in alike for name in asked.broke],
        "known": [name for asked in alike for name in asked.known],
        "repeats": baseline.repeats is not False and pairing.repeats and not session.varies,
        "reason": ""
        if alike
        else "; ".join(why) or "the baseline and this run have no relation in common",
    }


def _unlike(baseline: Baseline, session: Session, pairing: Pairing) -> dict[str, list[str]]:
    """Return, for each shared relation, why the builds judge the same answers differently."""
    return {
        name: other_estimates(
            baseline.campaign,
            session.campaign,
            own_edits=name in session.own_edits,
            relation=name,
        )
        for name in pairing.asked
    }


def judge_new_violations(given: float | None, found: dict[str, Any]) -> tuple[LimitFinding, ...]:
    """Judge the result of `compare_violations`.

    Args:
        given: the limit of the options. If it is ``None``, the default limit applies to
            deterministic bots.
        found: the figures.

    Returns:
        Nothing if no limit was given and the default limit holds.
    """
    default = given is None
    if default and (found["reason"] or not found["repeats"] or not found["new"]):
        return ()
    limit = DEFAULT_MAX_NEW if given is None else given
    if found["reason"]:
        reason = f"the violations are not compared with the baseline: {found['reason']}"
        return (LimitFinding(None, "max-new-violations", limit, "inconclusive", reason),)
    new = found["new"]
    names = f" ({format_list(new, _MOST_NAMES)})" if new else ""
    subject = f"{format_count(len(new), 'variant')} that held in the baseline"
    verb = "is broken" if len(new) == 1 else "are broken"
    reason = f"{subject} {verb} now{names}"
    if new:
        reason += ", but the clean answers to these turns did not change"
    verdict: Verdict = "regression" if len(new) > limit else "pass"
    reason = f"{reason}; {_allowed(limit)}"
    return (LimitFinding(None, "max-new-violations", limit, verdict, reason, len(new)),)


def compare_weaknesses(
    baseline: Baseline, session: Session, pairing: Pairing, others: Sequence[str]
) -> dict[str, Any]:
    """Return the entry ``weaknesses`` of a report's comparison.

    ``others`` has the reasons why the variants are not compared. If the variants are compared,
    ``others`` is empty. A build looked for a weakness if it answered one of the variants that show
    the weakness in the other build.
    """
    figures: dict[str, Any] = {"reason": "", "caveat": "", "new": [], "fixed": [], "common": []}
    if baseline.weaknesses is None:
        reason = "the baseline is from an earlier pytest-dstfuzz, which did not store weaknesses"
        return figures | {"reason": reason}
    if any(key_of_id(each.id) is None for each in baseline.weaknesses):
        reason = "the baseline is from a pytest-dstfuzz that groups violations differently"
        return figures | {"reason": reason}
    known = _shared(baseline, pairing)
    now = [KnownWeakness.of(each) for each in pairing.weaknesses.weaknesses]
    before, after = {each.id: each for each in known}, {each.id: each for each in now}
    otherwise = {baseline.shrunk, pairing.weaknesses.shrunk} == {True, False}
    # Only relations for which both builds define and group violations in the same way.
    unlike = _unlike(baseline, session, pairing)
    proven = frozenset(
        weakness
        for name, asked in pairing.asked.items()
        if not (otherwise or unlike[name])
        for weakness in asked.weaknesses
    )
    figures["new"] = _only(now, before, proven, pairing.shared.old_after)
    figures["fixed"] = _only(known, after, proven, pairing.shared.old_before)
    figures["common"] = [
        {
            "id": each.id,
            "description": each.description,
            "before": _weakness_figures(before[each.id]),
            "after": _weakness_figures(each),
        }
        for each in now
        if each.id in before
    ]
    if not all(each["looked_for"] for each in (*figures["new"], *figures["fixed"])):
        figures["caveat"] = _caveat(pairing, others, otherwise=otherwise)
    return figures


def _shared(baseline: Baseline, pairing: Pairing) -> Sequence[KnownWeakness]:
    """Return the baseline's weaknesses that belong to relations of this run."""
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
    """Judge the number of new weaknesses in the result of `compare_weaknesses`.

    A weakness is certainly new only if the earlier build looked for it and did not show it. If the
    number of certainly new weaknesses exceeds the limit, the session fails. If only the number of
    all new weaknesses exceeds the limit, the verdict is ``inconclusive``.
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
    names = f" ({format_list([each['id'] for each in new], _MOST_NAMES)})" if new else ""
    many = "1 weakness is" if len(new) == 1 else f"{len(new)} weaknesses are"
    reason = f"{many} new since the baseline{names}; {_allowed(limit)}"
    if unsure:
        reason += f"; the baseline may not have tested {unsure} of them: {found['caveat']}"
    return LimitFinding(None, gate, limit, verdict, reason, len(new))


def _allowed(limit: float) -> str:
    return f"{limit:g} {'is' if limit == 1 else 'are'} allowed"


def _only(
    weaknesses: Sequence[KnownWeakness],
    others: Collection[str],
    proven: Collection[str],
    old: Mapping[str, int],
) -> list[dict[str, Any]]:
    """Return the weaknesses of one build that are not among the ``others``.

    ``old`` counts, for each weakness, the violations that both builds share. A weakness with no
    other violations is left out. ``proven`` holds the weaknesses that the other build looked for.
    """
    return [
        {**each.to_json(), "looked_for": each.id in proven}
        for each in weaknesses
        if each.id not in others and each.count > old.get(each.id, 0)
    ]


def _weakness_figures(weakness: KnownWeakness) -> dict[str, Any]:
    found = weakness.to_json()
    return {name: found[name] for name in ("count", "turns", "estimated_failures")}


def _caveat(pairing: Pairing, others: Sequence[str], *, otherwise: bool) -> str:
    """Return the reason why the weaknesses of two builds are not fully comparable."""
    if others:
        return "; ".join(others)
    if otherwise:
        return "--dst-shrink differs between the builds, which changes the groups of violations"
    if pairing.share is not None and pairing.share < 1:
        share = percent(pairing.share)
        return f"{share} of the variants are the same and were answered in both builds"
    return "not all turns are in both builds under the same names"


#: Minimum share of identical variants. With fewer, the rest may be a biased sample.
LEAST_SHARE: Final = 0.5


def _pairing_of(baseline: Baseline, session: Session) -> Pairing:
    return pair_up(
        baseline,
        session.groups,
        session.contents,
        session.comparison,
        session.fallback,
        session.context_of,
    )


def compare(
    baseline: Baseline, session: Session, gates: Gates, every: Sequence[RelationGate]
) -> Judgement:
    """Compare a run with a baseline: clean answers first, then failure rates by relation.

    The relations together may cause a false alarm in 5 % of the runs. The domains, slots and
    transformations with limits share another 5 % (Bonferroni). Otherwise limits for thirty slots
    would cause a false alarm in nearly every run. Clean answers and estimated failures do not
    depend on the way that variants are drawn. So they are compared even if the variants are not.
    """
    pairing = _pairing_of(baseline, session)
    asked = [one for one in every if one.name in pairing.asked]
    unlike = {
        one.name: changes(
            baseline.campaign, session.campaign, own_edits=one.own_edits, relation=one.name
        )
        for one in asked
    }
    pairings = {one.name: pairing.of(one.name) for one in every}
    # Why the variants of a relation are not compared; empty if they are.
    ways = {
        one.name: unlike.get(one.name) or _not_comparable(pairings[one.name], one, session)
        for one in every
    }
    told = [one for one in asked if not ways[one.name]]
    alike = [one for one in asked if not unlike[one.name]]
    # Prefer relations with comparable variants.
    main = main_of(told or alike or asked)
    first = pairing.of("") if main is None else pairings[main.name]
    others = _of_no_relation(baseline, session, first) if main is None else ways[main.name]
    drift = pairing.clean.drift(pairing.silenced, pairing.failed(hidden=session.hidden))
    figures = {
        **_figures(baseline, first),
        **_relations(pairing, every),
        "clean": drift.to_json(hidden=session.hidden or baseline.hidden),
        "estimated_failures": compare_expected(baseline, session, pairing),
        "violations": (violations := compare_violations(baseline, session, pairing)),
    }
    findings = [*_judge_clean(baseline, session, gates, pairing, drift)]
    if (rise := gates.whole.get("max_estimated_rise")) is not None:
        findings.append(judge_estimated_rise(rise, figures["estimated_failures"], pairing))
    why = list(dict.fromkeys(chain(others, *unlike.values())))
    weaknesses = figures["weaknesses"] = compare_weaknesses(baseline, session, pairing, why)
    if (most_new := gates.whole.get("max_new_weaknesses")) is not None:
        findings.append(judge_new_weaknesses(most_new, weaknesses))
    new = judge_new_violations(gates.whole.get("max_new_violations"), violations)
    if others or main is None:
        return Judgement((), (*findings, *new), tuple(others), figures)
    judged = _judge_relations(pairings, every, gates, session, ways)
    of_parts = main_of(asked)
    findings += [*judged.values()]
    if of_parts is main:
        findings += _judge_parts(first, gates, session.seed)
    elif of_parts is not None:
        findings += _undecided_parts(of_parts, gates, ways[of_parts.name])
    figures |= _statistics(first, judged.get(main.name), session.seed)
    return Judgement(findings=(*findings, *new), comparison=figures)


def _of_no_relation(baseline: Baseline, session: Session, pairing: Pairing) -> list[str]:
    """Return why two builds without a relation in common are not compared."""
    if not baseline.groups:
        return [f"the baseline has no results of this tracker, only of {baseline.model}"]
    found = changes(baseline.campaign, session.campaign)
    return found or _not_comparable(pairing, None, session)


def _judge_clean(
    baseline: Baseline, session: Session, gates: Gates, pairing: Pairing, drift: Drift
) -> Iterator[LimitFinding]:
    """Judge the clean answers, unless the builds normalise them differently."""
    normalised = baseline.campaign.get(NORMALISATION) == session.campaign.get(NORMALISATION)
    if normalised and (drift.turns or drift.silenced):
        most, noise = gates.whole.get("max_clean_drift"), session.summary.noise
        limit = DEFAULT_MAX_DRIFT if most is None else most
        chance = 0.0 if noise is None else noise.disagreement
        unanswered = pairing.turns - pairing.clean.turns
        compared = _by_what(baseline, session, otherwise=drift.unsure > 0)
        yield judge_drift(drift, limit, chance, unanswered, compared)
        found = pairing.own.finding(limit, stream(session.seed, "gate", "own answers"))
        yield from () if found is None else (found,)


def _by_what(baseline: Baseline, session: Session, *, otherwise: bool) -> str:
    """Return a note if clean answers are not compared in the same way as variants, or ``""``.

    ``otherwise`` says that a test compares answers in another way than the options of the run.
    """
    if baseline.hidden and not session.comparison.exact:
        return (
            "the baseline hides replies (--dst-redact), so they are compared only by equality: a "
            "rephrased reply counts as changed"
        )
    others = sorted(session.compared - {session.comparison.name})
    if not (others or otherwise):
        return ""
    ours = "equality" if session.comparison.exact else session.comparison.name
    return (
        f"clean answers are compared by {ours}, as the options say, and not by "
        f"{'; or '.join(others) or 'equality'}, as a test does: give the options of the test to "
        "the run (dst_compare, dst_arguments)"
    )


def _statistics(pairing: Pairing, finding: LimitFinding | None, seed: int) -> dict[str, Any]:
    """Return the difference of the failure rates, its interval and its p-value.

    If a ``finding`` is given, its interval is used.
    """
    paired = PairedViolations.of(pairing.by_dialogue().values())
    bounds = (
        interval(paired, stream(seed, "gate", "whole"), LEVEL)
        if finding is None
        else finding.interval
    )
    found: dict[str, Any] = {
        "difference": paired.difference,
        "interval": None if bounds is None else list(bounds),
    }
    if len(paired.variants) > 1:
        found["p_value"] = permutation_test(paired, stream(seed, "gate", "permutations"))
    return found


def _judge_relations(
    pairings: Mapping[str, Pairing],
    every: Sequence[RelationGate],
    gates: Gates,
    session: Session,
    ways: Mapping[str, Sequence[str]],
) -> dict[str, LimitFinding]:
    """Judge each relation with a limit. Together they may raise false alarms in 5 % of the runs.

    If a limit names a relation that the baseline lacks, the verdict is ``inconclusive``. The same
    holds for a relation with an entry in ``ways``, the reasons why variants cannot be compared.
    """
    given = gates.whole.get("max_regression")
    whole = DEFAULT_MAX_REGRESSION if given is None else given
    limits = [
        (one, *limit)
        for one in every
        if one.own.get("max_regression") is not None or one.name in pairings[one.name].asked
        if (limit := one.limit(whole, one.own.get("max_regression"))) is not None
    ]
    if given is not None and all(one.must_change for one in every) and not limits:
        return {"": report_unnamed("max-regression", given, every)}
    level = 1 - (1 - LEVEL) / max(1, len(limits))
    found = {}
    for one, part, margin in limits:
        if part is not None and ways[one.name]:
            reason = f"{part} is not compared: {'; '.join(ways[one.name])}"
            found[one.name] = LimitFinding(part, "max-regression", margin, "inconclusive", reason)
        else:
            found[one.name] = _judge(pairings[one.name], part, margin, level, session.seed)
    return found


def _margins(gates: Gates) -> dict[Part, float]:
    """Return the maximum regression of each domain, slot and transformation with such a limit."""
    return {
        part: limits["max_regression"]
        for part, limits in gates.parts.items()
        if "max_regression" in limits and part.kind != "relation"
    }


def _undecided_parts(
    relation: RelationGate, gates: Gates, ways: Sequence[str]
) -> Iterator[LimitFinding]:
    """Yield an inconclusive finding for each limit of a domain, slot or transformation.

    No such limit is judged, because ``relation`` is not compared, for the reasons in ``ways``.
    """
    why = "; ".join(ways)
    for part, margin in _margins(gates).items():
        reason = f"{part} is not compared, because the relation {relation.name} is not: {why}"
        yield LimitFinding(part, "max-regression", margin, "inconclusive", reason)


def _judge_parts(pairing: Pairing, gates: Gates, seed: int) -> Iterator[LimitFinding]:
    """Judge domains, slots and transformations, with a joint error rate of 5 %."""
    margins = _margins(gates)
    level = 1 - (1 - LEVEL) / max(1, len(margins))
    return (_judge(pairing, part, most, level, seed) for part, most in margins.items())


def _relations(pairing: Pairing, every: Sequence[RelationGate]) -> dict[str, Any]:
    """Return the figures of each relation if the run has several, and the unshared relations."""
    found: dict[str, Any] = {}
    if len(every) > 1 or len(pairing.asked) > 1:
        found["relations"] = {
            name: {
                **_rates(mine.by_dialogue().values()),
                "new": len(mine.new),
                "gone": len(mine.gone),
            }
            for name in pairing.asked
            for mine in [pairing.of(name)]
        }
    if pairing.only_baseline_relations:
        found["only_baseline_relations"] = list(pairing.only_baseline_relations)
    if pairing.only_run_relations:
        found["only_run_relations"] = list(pairing.only_run_relations)
    return found


def _not_comparable(pairing: Pairing, relation: RelationGate | None, session: Session) -> list[str]:
    """Return why a relation's variants in two builds cannot be compared. Empty if they can be."""
    if not pairing.turns:
        return ["the baseline and this run have no turn in common"]
    if not pairing.asked:
        before, now = map(", ".join, (pairing.only_baseline_relations, pairing.only_run_relations))
        relations = f"{before} in the baseline, {now} now"
        return [f"the baseline and this run have no common relation: {relations}"]
    share = pairing.share
    if share is None or not pairing.variants:
        return ["no variant has an answer in both the baseline and this run"]
    if share >= LEAST_SHARE:
        return []
    search, hint = session.campaign["search"], ""
    if relation is not None and relation.own_edits:
        hint = "; the relation makes its variants from the clean answers, which may have changed"
    elif search != "random":
        hint = (
            f"; the variants of the search {search} may depend on predictions: compare with "
            "--dst-search=random"
        )
    reason = (
        f"only {percent(share, 0)} of the variants are the same and were answered in both builds, "
        f"fewer than {percent(LEAST_SHARE, 0)}{hint}"
    )
    return [reason]


def _judge(
    pairing: Pairing, part: Part | None, margin: float, level: float, seed: int
) -> LimitFinding:
    # The pairing of a relation has no variants of others.
    tallies = pairing.by_dialogue(None if part and part.kind == "relation" else part)
    if not tallies:
        reason = f"no variant of {part} was compared"
        return LimitFinding(part, "max-regression", margin, "inconclusive", reason)
    paired = PairedViolations.of(tallies.values())
    rng = stream(seed, "gate", *(part or ("whole",)))
    needed = (
        dialogues_needed(paired, margin, level) if len(tallies) > 1 else fewest_dialogues(level)
    )
    return judge_difference(part, margin, paired.difference, interval(paired, rng, level), needed)


def _figures(baseline: Baseline, pairing: Pairing) -> dict[str, Any]:
    """Return the figures of a comparison, without the statistics."""
    tallies = pairing.by_dialogue()
    parts = pairing.by_part()
    return {
        "baseline": {"model": baseline.model, "version": baseline.version},
        "turns": pairing.turns,
        "only_baseline": pairing.only_baseline,
        "only_run": pairing.only_run,
        "dialogues": pairing.dialogues,
        "tested_dialogues": pairing.tested,
        "suite": pairing.matching.to_json(),
        "share": pairing.share,
        **_rates(tallies.values()),
        "difference": None,
        "interval": None,
        "p_value": None,
        "new_violations": [list(place) for place in pairing.new],
        "gone_violations": [list(place) for place in pairing.gone],
        **{
            f"{kind}s": {
                part.name: _rates([tally]) for part, tally in parts.items() if part.kind == kind
            }
            for kind in KINDS
            if kind != "relation"
        },
    }


def _rates(tallies: Iterable[Tally]) -> dict[str, Any]:
    """Return the number of compared variants, and the failure rate in each build."""
    tally = Tally(*map(sum, zip(Tally(), *tallies, strict=True)))
    variants = tally.variants
    return {
        "variants": variants,
        "before": tally.before / variants if variants else None,
        "after": tally.after / variants if variants else None,
    }
