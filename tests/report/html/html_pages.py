"""Reports to make pages of: by hand, with odd texts, and of any size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Difference
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.report.json_report import RunInfo, build_report, report_turns
from pytest_dstfuzz.report.weaknesses import weaknesses_json
from pytest_dstfuzz.weaknesses.groups import find_weaknesses

INFO = RunInfo("multiwoz21", "test", "multiwoz", "original", 999, 7372)

#: What would do something if it were taken for markup, script, style or the end of either.
NASTY = (
    "</script><script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    '"><svg onload=alert(1)>',
    "<!--<script>",
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "</style><style>*{display:none}</style>",
    "&lt;b&gt; &amp; \u2028 \u202e \x00 \ud800",
)


def build(
    results: Sequence[TurnResult],
    gate: dict[str, Any] | None = None,
    settings: Settings | None = None,
    info: RunInfo = INFO,
) -> dict[str, Any]:
    """Return the JSON report of ``results``."""
    return build_report(results, settings or Settings(), info, gate=gate)


def nasty_turn(text: str, index: int = 0) -> TurnResult:
    """Return a broken turn in which every text is ``text``, or begins with it."""
    user = f"{text} please"
    edit = Edit(text, text, len(text), len(text), "", f" {text}")
    variant = VariantResult(
        index=0,
        text=f"{text} {text} please",
        context=(),
        edits=(edit,),
        edit_w=0.1,
        edit_c=0.0,
        valid=True,
        reason="",
        outcome="violation",
        state=BeliefState({}),
        changed_slots=(Difference(f"hotel-{text}", text, None),),
        cause="turn",
    )
    broken = replace(variant, index=1, outcome="error", reason=text, changed_slots=(), cause=None)
    vetoed = replace(variant, index=2, outcome="vetoed", valid=False, reason=text, cause=None)
    return TurnResult(
        id=f"{text}-t{index}",
        dialogue_id=text,
        turn_index=index,
        system=text,
        user=user,
        clean_state=BeliefState({f"hotel-{text}": text, text: text}),
        outcome="error",
        variants=(variant, broken, vetoed),
    )


def nasty_report(texts: Sequence[str] = NASTY) -> dict[str, Any]:
    """Return a report with such turns, and such settings and notes."""
    info = replace(
        INFO, data=texts[0], split=texts[-1], notes=tuple(texts), command=texts[0], ended=texts[-1]
    )
    # Blanks alone name no model.
    settings = Settings.of(model=texts[0] if texts[0].strip() else "model", lock=tuple(texts))
    return build([nasty_turn(text) for text in texts], judgement(texts[0]), settings, info)


def judgement(text: str = "hotel-area") -> dict[str, Any]:
    """Return the object ``gate`` of a report with a comparison, ``text`` wherever it may be."""
    rates = {"variants": 50, "before": 0.1, "after": 0.16}
    finding = {
        "part": None,
        "gate": "max-regression",
        "limit": 0.02,
        "verdict": "regression",
        "reason": f"the failure rate rose by 6 pp against the baseline {text}",
        "value": 0.06,
        "interval": [0.01, 0.11],
        "dialogues_needed": None,
    }
    part = {"kind": "slot", "name": text}
    return {
        "verdict": "regression",
        "troubles": [],
        "not_compared": [],
        "findings": [finding, {**finding, "part": part, "verdict": "inconclusive"}],
        "comparison": {
            "baseline": {"model": text, "version": "1.2"},
            "turns": 20,
            "only_baseline": 1,
            "only_run": 2,
            "dialogues": 9,
            "share": 0.9,
            **rates,
            "difference": 0.06,
            "interval": [0.01, 0.11],
            "p_value": 0.012,
            "estimated_failures": {
                **dict.fromkeys(("before", "after", "difference", "interval")),
                "turns": 20,
                "dialogues": 9,
                "reason": f"lock: {text} in the baseline, x now",
            },
            "new_violations": [["multiwoz21-test-SNG0073-t1", 1], [text, 0]],
            "gone_violations": [[text, 3]],
            "domains": {"train": rates},
            "slots": {text: rates},
            "transformations": {"char_drop": rates},
        },
    }


def repeated(report: dict[str, Any], violations: int) -> dict[str, Any]:
    """Return a report with at least so many violations: the same turns under other ids."""
    turns: list[dict[str, Any]] = []
    found = number = 0
    while found < violations:
        for turn in report["turns"]:
            names = {name: f"{turn[name]}-r{number}" for name in ("id", "dialogue_id")}
            turns.append({**turn, **names})
            found += sum(variant["outcome"] == "violation" for variant in turn["variants"])
        number += 1
    more = {**report, "turns": turns}
    return {**more, "weaknesses": weaknesses_json(find_weaknesses(report_turns(more)))}
