"""A run compared with a baseline: whether they can be, by how much they differ, and where."""

from __future__ import annotations

from typing import Any, Final

from pytest_dstfuzz.config.rates import percent
from pytest_dstfuzz.gate.baseline import NORMALISATION, Baseline, Session, changes
from pytest_dstfuzz.gate.drift import DEFAULT_MAX_DRIFT, clean_drift, judge_drift
from pytest_dstfuzz.gate.expected import compare_expected, judge_expected_rise
from pytest_dstfuzz.gate.limits import DEFAULT_MAX_REGRESSION, KINDS, Gates, Part
from pytest_dstfuzz.gate.pairing import Pairing, Tally, pair_up
from pytest_dstfuzz.gate.statistics import (
    LEVEL,
    Paired,
    dialogues_needed,
    fewest_dialogues,
    interval,
    permutation_test,
)
from pytest_dstfuzz.gate.verdict import Judgement, LimitFinding, judge_difference
from pytest_dstfuzz.gate.weaknesses import compare_weaknesses, judge_new_weaknesses
from pytest_dstfuzz.seeding import stream

#: Below this share of identical variants, what is left may be no fair sample of them.
LEAST_SHARE: Final = 0.5


def compare(baseline: Baseline, session: Session, gates: Gates) -> Judgement:
    """Compare a run with a baseline: first the clean answers, then the failure rates.

    The whole session is judged at 95 %. Parts share another 5 % among them (Bonferroni), so
    that limits for thirty slots do not make a false alarm of every run. Clean answers do not
    depend on how variants are made, so they are compared even where variants cannot be; nor do
    expected failures depend on which variants were drawn.
    """
    pairing = pair_up(baseline, session.groups, session.contents)
    drift = clean_drift(pairing.clean, pairing.silenced)
    figures = {
        **_figures(baseline, pairing),
        "clean": drift.to_json(hidden=session.hidden or baseline.hidden),
        "expected_failures": compare_expected(baseline, session, pairing),
    }
    findings = []
    # Answers that were normalised in another way do not compare.
    alike = baseline.campaign.get(NORMALISATION) == session.campaign.get(NORMALISATION)
    if alike and (drift.turns or drift.silenced):
        most, noise = gates.whole.max_clean_drift, session.summary.noise
        limit = DEFAULT_MAX_DRIFT if most is None else most
        chance = 0.0 if noise is None else noise.disagreement
        findings.append(judge_drift(drift, limit, chance, pairing.turns - len(pairing.clean)))
    if (rise := gates.whole.max_expected_rise) is not None:
        findings.append(judge_expected_rise(rise, figures["expected_failures"], pairing))
    others = changes(baseline.campaign, session.campaign)
    if not others and (reason := _not_comparable(pairing, str(session.campaign["search"]))):
        others = [reason]
    weaknesses = figures["weaknesses"] = compare_weaknesses(baseline, session, pairing, others)
    if (most_new := gates.whole.max_new_weaknesses) is not None:
        findings.append(judge_new_weaknesses(most_new, weaknesses))
    if others:
        return Judgement((), tuple(findings), tuple(others), figures)
    margin, seed = gates.whole.max_regression, session.seed
    margins = {
        part: limits.max_regression
        for part, limits in gates.parts.items()
        if limits.max_regression is not None
    }
    whole = _judge(pairing, None, DEFAULT_MAX_REGRESSION if margin is None else margin, LEVEL, seed)
    level = 1 - (1 - LEVEL) / max(1, len(margins))
    findings += [
        whole,
        *(_judge(pairing, part, most, level, seed) for part, most in margins.items()),
    ]
    paired = Paired.of(pairing.by_dialogue().values())
    figures["difference"] = paired.difference
    figures["interval"] = None if whole.interval is None else list(whole.interval)
    if len(paired.variants) > 1:
        figures["p_value"] = permutation_test(paired, stream(seed, "gate", "permutations"))
    return Judgement(findings=tuple(findings), comparison=figures)


def _not_comparable(pairing: Pairing, search: str) -> str:
    """Say why the variants of two builds are not the same, or return ``""``."""
    if not pairing.turns:
        return "the baseline and this run have no turn in common"
    share = pairing.share
    if share is None or not pairing.pairs:
        return "no variant was answered in both builds"
    if share >= LEAST_SHARE:
        return ""
    hint = (
        ""
        if search == "random"
        else f"; what the search {search} makes may depend on predictions: compare with "
        "--dst-search=random"
    )
    return (
        f"only {percent(share, 0)} of the variants are the same and were answered in both builds, "
        f"fewer than {percent(LEAST_SHARE, 0)}{hint}"
    )


def _judge(
    pairing: Pairing, part: Part | None, margin: float, level: float, seed: int
) -> LimitFinding:
    tallies = pairing.by_dialogue(part)
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
