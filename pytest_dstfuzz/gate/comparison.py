"""A run compared with a baseline: whether they can be, by how much they differ, and where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from pytest_dstfuzz.config.rates import percent
from pytest_dstfuzz.gate.asked import Tally
from pytest_dstfuzz.gate.baseline import NORMALISATION, Baseline, Session, changes
from pytest_dstfuzz.gate.drift import DEFAULT_MAX_DRIFT, Drift, judge_drift
from pytest_dstfuzz.gate.expected import compare_expected, judge_expected_rise
from pytest_dstfuzz.gate.limits import DEFAULT_MAX_REGRESSION, KINDS, Gates, Part
from pytest_dstfuzz.gate.new_violations import compare_violations, judge_new_violations
from pytest_dstfuzz.gate.pairing import Pairing, pair_up
from pytest_dstfuzz.gate.statistics import (
    LEVEL,
    Paired,
    dialogues_needed,
    fewest_dialogues,
    interval,
    permutation_test,
)
from pytest_dstfuzz.gate.tested import Tested, main_of, unnamed
from pytest_dstfuzz.gate.verdict import Judgement, LimitFinding, judge_difference
from pytest_dstfuzz.gate.weaknesses import compare_weaknesses, judge_new_weaknesses
from pytest_dstfuzz.seeding import stream

#: Below this share of identical variants, what is left may be no fair sample of them.
LEAST_SHARE: Final = 0.5


def compare(
    baseline: Baseline, session: Session, gates: Gates, every: Sequence[Tested]
) -> Judgement:
    """Compare a run, and its relations, with a baseline: clean answers first, then failure rates.

    The whole session is judged at 95 %. Parts share another 5 % among them (Bonferroni), so
    that limits for thirty slots do not make a false alarm of every run. Clean answers do not
    depend on how variants are made, so they are compared even where variants cannot be; nor do
    expected failures depend on which variants were drawn.
    """
    pairing = pair_up(baseline, session.groups, session.contents, session.comparison)
    asked = [one for one in every if one.name in pairing.asked]
    unlike = {
        one.name: changes(baseline.campaign, session.campaign, own_edits=one.own_edits)
        for one in asked
    }
    pairings = {one.name: pairing.of(one.name) for one in every}
    # Why the variants of a relation are not compared; nothing where they are.
    ways = {
        one.name: unlike.get(one.name) or _not_comparable(pairings[one.name], one, session)
        for one in every
    }
    told = [one for one in asked if not ways[one.name]]
    alike = [one for one in asked if not unlike[one.name]]
    # One whose variants are others than before says nothing of the rest.
    main = main_of(told or alike or asked)
    if main is None:
        first = pairing.of("")
        others = changes(baseline.campaign, session.campaign)
        others = others or _not_comparable(first, None, session)
    else:
        first, others = pairings[main.name], ways[main.name]
    drift = pairing.clean.drift(pairing.silenced, pairing.failed(hidden=session.hidden))
    figures = {
        **_figures(baseline, first),
        **_relations(pairing, every),
        "clean": drift.to_json(hidden=session.hidden or baseline.hidden),
        "expected_failures": compare_expected(baseline, session, pairing),
        "violations": (violations := compare_violations(baseline, session, pairing)),
    }
    findings = [*_judge_clean(baseline, session, gates, pairing, drift)]
    if (rise := gates.whole.get("max_expected_rise")) is not None:
        findings.append(judge_expected_rise(rise, figures["expected_failures"], pairing))
    why = list(dict.fromkeys(chain(others, *unlike.values())))
    weaknesses = figures["weaknesses"] = compare_weaknesses(baseline, session, pairing, why)
    if (most_new := gates.whole.get("max_new_weaknesses")) is not None:
        findings.append(judge_new_weaknesses(most_new, weaknesses))
    new = judge_new_violations(gates.whole.get("max_new_violations"), violations)
    if others:
        return Judgement((), (*findings, *new), tuple(others), figures)
    judged = _judge_relations(pairings, every, gates, session, ways)
    of_parts = main_of(asked)
    findings += [*judged.values()]
    if of_parts is main:
        findings += _judge_parts(first, gates, session.seed)
    elif of_parts is not None:
        findings += _undecided_parts(of_parts, gates, ways[of_parts.name])
    figures |= _statistics(first, None if main is None else judged.get(main.name), session.seed)
    return Judgement(findings=(*findings, *new), comparison=figures)


def _judge_clean(
    baseline: Baseline, session: Session, gates: Gates, pairing: Pairing, drift: Drift
) -> Iterator[LimitFinding]:
    """Judge the clean answers; those that were normalised in another way do not compare."""
    normalised = baseline.campaign.get(NORMALISATION) == session.campaign.get(NORMALISATION)
    if normalised and (drift.turns or drift.silenced):
        most, noise = gates.whole.get("max_clean_drift"), session.summary.noise
        limit = DEFAULT_MAX_DRIFT if most is None else most
        chance = 0.0 if noise is None else noise.disagreement
        unanswered = pairing.turns - pairing.clean.turns
        yield judge_drift(drift, limit, chance, unanswered, _by_what(baseline, session))
        found = pairing.own.finding(limit, stream(session.seed, "gate", "own answers"))
        yield from () if found is None else (found,)


def _by_what(baseline: Baseline, session: Session) -> str:
    """Say by what clean replies are compared, where it is not what the variants are compared by."""
    if session.comparison.exact:
        return ""
    if baseline.hidden:
        return (
            "the baseline keeps replies back (--dst-redact), so they are compared by equality "
            "alone: the same in other words counts as changed"
        )
    if others := sorted(session.compared - {session.comparison.name}):
        return (
            f"clean replies are compared by {session.comparison.name}, as the options say, and not "
            f"by {'; or '.join(others)}, which a test of the suite gives: name it as "
            "--dst-compare=module:function"
        )
    return ""


def _statistics(pairing: Pairing, finding: LimitFinding | None, seed: int) -> dict[str, Any]:
    """Return by how much the failure rate differs, as far as ``finding`` does not say it."""
    paired = Paired.of(pairing.by_dialogue().values())
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
    every: Sequence[Tested],
    gates: Gates,
    session: Session,
    ways: Mapping[str, Sequence[str]],
) -> dict[str, LimitFinding]:
    """Judge each relation that has a limit, those that share the 5 % of the session's.

    One that the baseline does not have is judged where a limit names it, and is undecided then. So
    is one of which ``ways`` say that its variants are others now.
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
        return {"": unnamed("max-regression", given, every)}
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
    """Return by how much domains, slots and transformations may get worse."""
    return {
        part: limits["max_regression"]
        for part, limits in gates.parts.items()
        if "max_regression" in limits and part.kind != "relation"
    }


def _undecided_parts(relation: Tested, gates: Gates, ways: Sequence[str]) -> Iterator[LimitFinding]:
    """Say that the relation that limits of parts are of is not compared."""
    why = "; ".join(ways)
    for part, margin in _margins(gates).items():
        reason = f"{part} is not compared, as the relation {relation.name} is not: {why}"
        yield LimitFinding(part, "max-regression", margin, "inconclusive", reason)


def _judge_parts(pairing: Pairing, gates: Gates, seed: int) -> Iterator[LimitFinding]:
    """Judge domains, slots and transformations, which share 5 %."""
    margins = _margins(gates)
    level = 1 - (1 - LEVEL) / max(1, len(margins))
    return (_judge(pairing, part, most, level, seed) for part, most in margins.items())


def _relations(pairing: Pairing, every: Sequence[Tested]) -> dict[str, Any]:
    """Return the figures of each relation, where there are several, and what is not compared."""
    found: dict[str, Any] = {}
    if len(every) > 1 or len(pairing.asked) > 1:
        found["relations"] = {
            name: {
                **_rates(Tally(*map(sum, zip(Tally(), *rows.values(), strict=True)))),
                "new": len(mine.new),
                "gone": len(mine.gone),
            }
            for name in pairing.asked
            if (mine := pairing.of(name)) and (rows := mine.by_dialogue()) is not None
        }
    if pairing.only_baseline_relations:
        found["only_baseline_relations"] = list(pairing.only_baseline_relations)
    if pairing.only_run_relations:
        found["only_run_relations"] = list(pairing.only_run_relations)
    return found


def _not_comparable(pairing: Pairing, relation: Tested | None, session: Session) -> list[str]:
    """Say why the variants of two builds are not the same; nothing where they are."""
    if not pairing.turns:
        return ["the baseline and this run have no turn in common"]
    if not pairing.asked:
        before, now = map(", ".join, (pairing.only_baseline_relations, pairing.only_run_relations))
        return [f"the baseline is of the relation {before}, this run of {now}"]
    share = pairing.share
    if share is None or not pairing.variants:
        return ["no variant was answered in both builds"]
    if share >= LEAST_SHARE:
        return []
    search, hint = session.campaign["search"], ""
    if relation is not None and relation.own_edits:
        hint = "; which rewrites there are depends on the clean answers"
    elif search != "random":
        hint = (
            f"; what the search {search} makes may depend on predictions: compare with "
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
    # The variants of a relation are all that its pairing has.
    tallies = pairing.by_dialogue(None if part and part.kind == "relation" else part)
    if not tallies:
        reason = f"no variant of {part} was compared"
        return LimitFinding(part, "max-regression", margin, "inconclusive", reason)
    paired = Paired.of(tallies.values())
    rng = stream(seed, "gate", *(part or ("whole",)))
    needed = (
        dialogues_needed(paired, margin, level) if len(tallies) > 1 else fewest_dialogues(level)
    )
    return judge_difference(part, margin, paired.difference, interval(paired, rng, level), needed)


def _figures(baseline: Baseline, pairing: Pairing) -> dict[str, Any]:
    """Return the figures of a comparison; the statistics are put in where there are any."""
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
        **_rates(Tally(*map(sum, zip(Tally(), *tallies.values(), strict=True)))),
        "difference": None,
        "interval": None,
        "p_value": None,
        "new_violations": [list(place) for place in pairing.new],
        "gone_violations": [list(place) for place in pairing.gone],
        **{
            f"{kind}s": {
                part.name: _rates(tally) for part, tally in parts.items() if part.kind == kind
            }
            for kind in KINDS
            if kind != "relation"
        },
    }


def _rates(tally: Tally) -> dict[str, Any]:
    """Return variants compared, and the failure rate of each build on them."""
    variants = tally.variants
    return {
        "variants": variants,
        "before": tally.before / variants if variants else None,
        "after": tally.after / variants if variants else None,
    }
