"""Additional report figures: causes of violations, varying replies, the judge."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from pytest_dstfuzz.campaign.deciding import Repeats, SequentialTest, decider_of
from pytest_dstfuzz.campaign.summary import Noise, Summary
from pytest_dstfuzz.comparisons.judge import JudgeFacts
from pytest_dstfuzz.config import TrackerSettings
from pytest_dstfuzz.config.parsers import per_1000, percent, rise_per_1000
from pytest_dstfuzz.dialogue.calls import format_value
from pytest_dstfuzz.printable import format_count
from pytest_dstfuzz.report.page import Style
from pytest_dstfuzz.totals.tallies import UNKNOWN
from pytest_dstfuzz.totals.troubles import MOST_ERRORS
from pytest_dstfuzz.trackers.tracker import VOTE, Disagreement, Usage

__all__ = ["undecided_text"]

#: If more than this share of the violations is noise, reports advise more votes.
_MUCH: Final = 0.1


#: Cause of violations -> its text.
_CAUSED_BY: Final = {
    "turn": "the turn's own edits",
    "context": "edits of earlier turns",
    "both": "both only together",
}


def causes_text(counts: Mapping[str, int]) -> str:
    """Return a text on the causes of violations, or ``""`` if there are no violations.

    >>> causes_text({"turn": 27, "both": 2, "unknown": 1})
    "27 violations caused by the turn's own edits, 2 by both together, 1 of unknown cause"
    >>> causes_text({"context": 1})
    '1 violation caused by edits of earlier turns'
    """
    parts: list[str] = []
    for cause, count in counts.items():
        what = "" if parts else " violation caused" if count == 1 else " violations caused"
        known = cause in _CAUSED_BY
        how = f"{what} by {_CAUSED_BY[cause]}" if known else f"{what[:-7]} of unknown cause"
        parts.append(f"{count:,}{how}")
    return ", ".join(parts)


def sizes_text(counts: Mapping[int, int]) -> str:
    """Return how many edits violations need, as text, or ``""`` if unknown.

    >>> sizes_text({1: 278, 2: 33})
    '278 violations need 1 edit, 33 need 2'
    """
    parts: list[str] = []
    for size, count in counts.items():
        what = ("violation needs" if count == 1 else "violations need") if not parts else "need"
        what = "needs" if parts and count == 1 else what
        parts.append(f"{count:,} {what} {size}" + ("" if parts else f" edit{'s' * (size != 1)}"))
    return ", ".join(parts)


def list_moved_dialogues(comparison: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Return pairs (text, names) for the dialogues and relations that are not fully compared."""
    suite = comparison.get("suite", {})
    found = {
        "new dialogues, not compared": [str(name) for name in suite.get("added", ())],
        "removed dialogues": [str(name) for name in suite.get("removed", ())],
        "dialogues that changed, compared up to the change": [
            str(name) for name in suite.get("changed", ())
        ],
        "renamed dialogues: only clean answers are compared, because variants depend on the name": [
            f"{old} (now {new})" for old, new in suite.get("renamed", ())
        ],
        "new relations, not compared": comparison.get("only_run_relations", []),
        "removed relations": comparison.get("only_baseline_relations", []),
    }
    return [(text, names) for text, names in found.items() if names]


def describe_unlimited(names: Sequence[str]) -> str:
    """Return a text about tested relations that have no limit of their own.

    >>> describe_unlimited(["negation"])
    'negation (no limit of its own, in [tool.dstfuzz.gates.relation.negation])'
    """
    own = "its own, in" if len(names) == 1 else "their own, in tables such as"
    return f"{', '.join(names)} (no limit of {own} [tool.dstfuzz.gates.relation.{names[0]}])"


def relation_lines(comparison: Mapping[str, Any]) -> list[str]:
    """Return the failure rates of each relation in both builds, if several relations ran."""
    found = comparison.get("relations", {})
    return [
        f"  {name}: {percent(one['before'])} in the baseline, {percent(one['after'])} now, on "
        f"{format_count(one['variants'], 'variant')}: {one['new']:,} new, {one['gone']:,} gone"
        for name, one in found.items()
        if len(found) > 1
    ]


def list_changed_answers(comparison: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return a pair (turn id, ``slot: before -> after, ...``) for each changed clean answer."""
    return [
        (
            str(answer["turn"]),
            ", ".join(
                f"{item['slot']}: {format_value(item['before'])} -> {format_value(item['after'])}"
                for item in answer["slots"]
            ),
        )
        for answer in comparison.get("clean", {}).get("answers", ())
    ]


def describe_expected(comparison: Mapping[str, Any]) -> str:
    """Return a text on the estimated failures of two builds, or ``""`` without estimates."""
    found = comparison.get("estimated_failures")
    if found is None:
        return ""
    if found["reason"]:
        return f"estimated failures not compared with the baseline: {found['reason']}"
    ends, apart = found["interval"], False
    known = "too few dialogues for an interval"
    if ends is not None:
        known = f"95 % interval {' to '.join(map(rise_per_1000, ends))}"
        apart = not ends[0] <= 0 <= ends[1]
    return (
        f"estimated failures of 1,000 user turns: {per_1000(found['before'])} in the baseline, "
        f"{per_1000(found['after'])} now, on the {found['turns']:,} turns that both have "
        f"({rise_per_1000(found['difference'])}; {known}): the difference is "
        f"{'' if apart else 'not '}significant"
    )


def usage_text(usage: Usage) -> str:
    """Return the tokens and costs of the answers in one line."""
    if usage.uncounted == usage.answers:
        return f"{usage.answers:,} answers; their tokens are not counted"
    text = (
        f"{usage.tokens:,} for {usage.answers:,} answers: {usage.prompt_tokens:,} of prompts, "
        f"{usage.completion_tokens:,} of answers"
    )
    if usage.uncounted:
        text += f" ({usage.uncounted:,} answers came without counts)"
    return text if usage.cost is None else f"{text}; {usage.cost:,.4f} by the prices"


def disagreement_text(measured: Disagreement, settings: TrackerSettings) -> str:
    """Return how often a tracker answered the same context differently, as text.

    The text also explains the effect on the run.
    """
    decider = decider_of(settings)
    text = (
        f"{measured.differed} of {measured.contexts} contexts, asked {measured.answers} times "
        "each before the run, got different answers"
    )
    if not decider.again:
        return (
            f"{text}: violations may be noise, because the run asks each context only once "
            "(--dst-error-rate=no)"
        )
    if isinstance(decider, SequentialTest):
        return (
            f"{text}: each clean turn is asked at least {decider.floor} times, and a sequential "
            f"test decides, with error rates of {percent(decider.false_rate)} (false violations) "
            f"and {percent(decider.missed_rate)} (missed violations)"
        )
    return (
        f"{text}: a majority vote decides, of at least {decider.votes} answers to the clean turn "
        "and to each variant that breaks the relation at first"
    )


def wobble_text(noise: Noise) -> str:
    """Return how often answers to the same clean turn differed during a run, as text."""
    bounds, share = noise.disagreement_interval, 100 * noise.disagreement
    between = (
        "" if bounds is None else f" (95 % interval {100 * bounds[0]:.1f} to {100 * bounds[1]:.1f})"
    )
    return (
        f"{noise.differed:,} of {noise.turns:,} clean turns, asked {noise.answers} times each, got "
        f"different answers; two answers to one turn differ in {share:.1f} % of all cases{between}"
    )


def noise_text(noise: Noise, violations: int) -> str:
    """Return estimates as text: how many violations are noise, and how many would repeat."""
    low, high = noise.real_violations
    text = (
        f"about {noise.expected_noise:.1f} of {violations:,} violations are noise, and about "
        f"{noise.expected_missed:.1f} were missed. A repeated run would find {low:,} to "
        f"{high:,} violations (95 % interval), whether or not the answers are right. The "
        f"majority vote rejected {noise.outvoted:,} more"
    )
    if noise.expected_noise > max(1.0, _MUCH * violations):
        return f"{text}. Causes and smallest edits may be noise too; more votes (dst_votes) help"
    return text


def repeats_text(repeats: Repeats, who: str = "the tracker") -> str:
    """Return a text about variants that got another answer when repeated, or ``""``."""
    if not repeats.changed:
        return ""
    return (
        f"{repeats.violations_changed} of {repeats.violations} violations, and "
        f"{repeats.held_changed} of {repeats.held} variants that held, got another answer when "
        f"asked once more: {who} answers the same messages differently each time, so violations "
        "may be noise. Switch off sampling, and keep no memory from one dialogue to the next; or "
        f"{VOTE}"
    )


#: Reports show a distance that this share of the turns does not exceed.
_MOST_TURNS: Final = 0.95
#: The threshold in the name of a comparison.
_THRESHOLD: Final = re.compile(r"<=([\d.]+)")


def spread_texts(
    turns: Sequence[tuple[float, ...]], compared: str, tracker: TrackerSettings
) -> Iterator[tuple[str, Style]]:
    """Yield sentences on the differences between a bot's replies to the same turn.

    Args:
        turns: see `SpreadTally.rows`.
        compared: the names of the comparisons with their thresholds.
        tracker: the settings of the run.
    """
    spreads = [row for row in turns if row[2] != UNKNOWN]
    if not turns:
        return
    if not spreads:
        if any(replied for replied, *_ in turns):
            why = (
                "of --dst-repeatable"
                if tracker.repeatable
                else "of --dst-error-rate=no"
                if tracker.error_rate == ()
                else "the bot declares that its answers do not vary"
            )
            yield f"not measured: each clean turn was requested only once, because {why}", "plain"
        return
    unstable = int(sum(row[1] for row in turns))
    one = sum(kinds <= 1 for *_, kinds, _ in spreads)
    least = min(answers for _, _, answers, *_ in spreads)
    text = (
        f"{format_count(len(spreads), 'clean turn')}, each asked {least:.0f} times or more: all "
        f"replies agree for {one:,}, and differ for {len(spreads) - one - unstable:,}"
    )
    if unstable:
        text += (
            f"; {unstable:,} not tested, because the replies to them rarely agree: "
            "--dst-compare sets when two replies agree"
        )
    yield f"{text}. Different replies to the clean turn are not violations", "plain"
    if distances := sorted(largest for *_, largest in spreads if largest != UNKNOWN):
        yield from _distances(distances, _THRESHOLD.search(compared))


def _distances(
    distances: Sequence[float], allowed: re.Match[str] | None
) -> Iterator[tuple[str, Style]]:
    """Yield a text about distances between replies. Warn if they exceed the threshold."""
    most = distances[math.ceil(_MOST_TURNS * len(distances)) - 1]
    text = (
        f"the largest distance of two replies to a turn: median {median(distances):.2f}, at most "
        f"{most:.2f} in 95 % of the turns"
    )
    if allowed is None:
        yield text, "plain"
        return
    threshold = float(allowed[1])
    yield f"{text} ({threshold:g} allowed)", "plain"
    beyond = sum(distance > threshold for distance in distances)
    if most > threshold:
        wide = math.ceil(100 * most) / 100
        text = (
            f"two replies to the same clean turn are farther apart than the threshold "
            f"{threshold:g} in {percent(beyond / len(distances))} of the turns: with "
            f"threshold={wide:g}, this happens in at most 5 %"
        )
        yield text, "warning"


@dataclass(frozen=True, slots=True)
class WhoJudged:
    """The object ``outcome.judge`` of the JSON report. Equal campaigns have equal values."""

    model: str
    address: str
    is_tested_model: bool
    protocol_sha256: str
    protocol: str


@dataclass(frozen=True, slots=True)
class WhatItTook:
    """The object ``run.judge`` of the JSON report. Counts depend on the split among workers."""

    pairs: int
    unsure: int
    past_budget: int
    calls: int
    usage: Usage


def improved_text(summary: Summary) -> str:
    """Return how many variants are improved, or ``""`` if they are few.

    Many of them may show labels that agree with wrong answers.
    """
    if summary.improved <= MOST_ERRORS * summary.valid:
        return ""
    share = f"{summary.improved:,} of {format_count(summary.valid, 'variant')}"
    return f"{share} got a right answer instead of a wrong one"


#: A run passes a gate only if at most this share of pairs has no verdict of the judge.
MOST_UNDECIDED: Final = 0.1


def undecided_share(took: WhatItTook | JudgeFacts) -> float:
    """Return the share of reply pairs without a verdict of the judge."""
    return (took.unsure + took.past_budget) / max(1, took.pairs + took.past_budget)


def undecided_text(took: WhatItTook | JudgeFacts) -> str:
    """Return why a gate cannot pass with so many undecided pairs, or ``""``."""
    if (share := undecided_share(took)) <= MOST_UNDECIDED:
        return ""
    return (
        f"the judge decided too few pairs of replies: {percent(share)} are undecided, or were not "
        f"asked because of calls= of the judge. At most {percent(MOST_UNDECIDED)} may be "
        "undecided, because such pairs count as the same"
    )


def judge_line(took: WhatItTook) -> str:
    """Return a sentence about pairs that the judge left undecided, or ``""``."""
    undecided = took.unsure + took.past_budget
    if not undecided:
        return ""
    return (
        f"undecided: the judge has no verdict on {undecided:,} of "
        f"{format_count(took.pairs + took.past_budget, 'pair')} of replies, which count as the same"
    )


def judge_texts(told: WhoJudged, took: WhatItTook) -> Iterator[tuple[str, Style]]:
    """Yield sentences about the judge, its verdicts and its calls."""
    text = (
        f"replies are compared by a judge that is a language model: {told.model} at "
        f"{told.address}, protocol {told.protocol_sha256[:12]} (sha256; its text is in the JSON "
        "report)"
    )
    yield text, "plain"
    if told.is_tested_model:
        yield "the judge is the tested model, which favours its own replies", "warning"
    past = f", {took.past_budget:,} not asked (calls= of the judge)" if took.past_budget else ""
    undecided = took.unsure + took.past_budget
    text = (
        f"{format_count(took.pairs, 'pair')} asked in both orders; {undecided:,} undecided{past}, "
        "which are not violations (each worker counts its own pairs)"
    )
    yield text, "warning" if undecided else "plain"
    unit = "" if took.usage.uncounted == took.usage.answers else "tokens: "
    text = f"{format_count(took.calls, 'call')} apart from those of the bot; {unit}"
    yield f"{text}{usage_text(took.usage)}", "plain"
