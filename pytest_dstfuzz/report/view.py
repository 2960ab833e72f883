"""A JSON report prepared for pages: verdict, figures, circumstances of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

from pytest_dstfuzz.campaign.figures import tally_results
from pytest_dstfuzz.campaign.results import Minimal, Results, TurnResult, VariantResult
from pytest_dstfuzz.campaign.summary import Summary
from pytest_dstfuzz.config import Settings, settings_of_json
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.kinds.kind import Words
from pytest_dstfuzz.perturb.edits import apply_edits
from pytest_dstfuzz.report.explain import (
    OPTIONS,
    accept_command,
    accept_options,
    keyword,
    repeat_command,
)
from pytest_dstfuzz.report.figures import (
    describe_unlimited,
    spread_texts,
)
from pytest_dstfuzz.report.json_report import RunInfo, info_of, report_turns
from pytest_dstfuzz.report.packing import reports_of
from pytest_dstfuzz.report.page import Style
from pytest_dstfuzz.report.screen import (
    Fact,
    corrector_facts,
    cost_text,
    run_facts,
    verdict_fact,
)
from pytest_dstfuzz.report.weaknesses import Card, cards_of, wanted_examples
from pytest_dstfuzz.report.wording import earlier_edits, shorten
from pytest_dstfuzz.totals.plainest import Novelty, OnPage, OnPageTally
from pytest_dstfuzz.totals.totals import AddedSection, RelationFacts, RelationTotals, Totals
from pytest_dstfuzz.weaknesses.advice import Mending
from pytest_dstfuzz.weaknesses.groups import member_id

__all__ = ["View"]

#: Parts of a report on settings, data and run, in the order of display.
_PARTS = ("settings", "data", "run")
#: Required keys of the object ``gate`` of a report, its findings and its comparison.
_GATE = ("verdict", "troubles", "not_compared", "findings", "comparison")
_FINDING = ("part", "verdict", "reason")
_COMPARISON = (
    *("baseline", "turns", "dialogues", "share", "variants", "before", "after", "difference"),
    *("interval", "p_value", "new_violations", "gone_violations"),
    *("domains", "slots", "transformations"),
)
_EXPECTED = ("before", "after", "difference", "interval", "turns", "reason")
_ROW = ("variants", "before", "after")
_REGRESSION = ("id", "status", "reason", "turn", "changed", "outcome")
_MOST_REASONS = 5
#: Maximum number of new violations on a page.
_MOST_NEW = 20
#: Maximum length of a message on a damaged edit, because the edit may contain any text.
_MOST_CHARACTERS = 200

Kind = Literal["good", "bad", "warning"]
#: Style of a verdict -> its kind.
_KINDS: Final[Mapping[Style, Kind]] = {"good": "good", "bad": "bad", "warning": "warning"}
#: Verdicts of limits that fail the run.
_FAILED: Final = {"drift", "regression"}


class Headline(NamedTuple):
    """The verdict at the top of a page."""

    kind: Kind
    headline: str
    #: Sentences with the reasons.
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class View:
    """A report, its totals, and the data to show.

    The settings have no paths and devices, because reports do not store these. ``gate`` is ``None``
    without a verdict of a gate.
    """

    report: Mapping[str, Any]
    settings: Settings
    gate: Mapping[str, Any] | None
    totals: Totals
    #: The weaknesses in the report, worst first.
    weaknesses: tuple[Card, ...]

    @classmethod
    def of(cls, report: Mapping[str, Any], totals: Totals | None = None) -> View:
        """Return the view of a report.

        Args:
            report: a report from `build_report` or `read_report`.
            totals: the totals of its results; by default computed from its turns.

        Raises:
            DataError: the report does not match its schema.
        """
        wrong = [name for name in _PARTS if not isinstance(report.get(name), Mapping)]
        if wrong:
            raise _incomplete(f"{', '.join(wrong)} missing")
        settings, gate = settings_of_json(report["settings"]), _gate(report.get("gate"))
        if totals is None:
            totals, cards = _read_totals(report, gate, settings)
        else:
            examples = [weakness.example for weakness in totals.weaknesses]
            cards = cards_of(report, {one.id: (one.turn, one.variant) for one in examples})
        return cls(report, settings, gate, totals, cards)

    @cached_property
    def turns(self) -> Results:
        """The turns in the report."""
        return report_turns(self.report)

    @cached_property
    def on_page(self) -> OnPage:
        """The violations that fit on the page."""
        members = [card.members for card in self.weaknesses]
        return tally_results(OnPageTally(members), self.turns).chosen

    @cached_property
    def new_violations(self) -> list[tuple[TurnResult, VariantResult]]:
        """The plainest violations that are new since the baseline."""
        return self.totals.novelty.plainest_new(self.turns, _MOST_NEW)

    @property
    def summary(self) -> Summary:
        """The figures of the first relation. Figures of several relations are never added up."""
        return self.first.summary

    @cached_property
    def sections(self) -> tuple[RelationTotals, ...]:
        """The results under each relation, in the order of the options."""
        return self.totals.sections(self.settings.variant.relation)

    @cached_property
    def first(self) -> RelationTotals:
        """The results under the first relation."""
        return self.totals.first(self.settings.variant.relation)

    @property
    def by_relation(self) -> bool:
        """Whether there are several relations, or one that makes edits or expects a change."""
        own = any(one.follows or one.facts.edits == "own" for one in self.sections)
        return own or len(self.sections) > 1

    @property
    def words(self) -> Words:
        """The words for the kind of answer."""
        return self.totals.kind.words

    @property
    def title(self) -> str:
        """The tested system and the data, in a few words."""
        model = (
            self.settings.tracker.model or f"the suite's own {self.words.who.removeprefix('the ')}"
        )
        data = self.report["data"]
        return f"{model} on {data.get('name', 'data')}, {data.get('split', 'unknown')} split"

    @property
    def own_spread(self) -> tuple[str, ...]:
        """Sentences about how much a bot's own replies vary. Belief states have none."""
        compared = str(self.report.get("outcome", {}).get("compared", ""))
        spread = spread_texts(self.totals.replies.rows(), compared, self.settings.tracker)
        return tuple(text for text, _ in spread)

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of the run."""
        return tuple(str(note) for note in self.report["run"].get("notes", ()))

    @cached_property
    def verdict(self) -> Headline:
        """The verdict of the gate. Without a gate, the verdict of the first screen."""
        verdict = "" if self.gate is None else str(self.gate["verdict"])
        fact = verdict_fact(self.totals, self.sections, self.settings, verdict)
        reasons = [] if self.gate is None else _reasons(self.gate)
        headline = f"{fact.text[:1].upper()}{fact.text[1:]}"
        return Headline(_KINDS[fact.style], headline, (*reasons, *self._caveats()))

    @cached_property
    def info(self) -> RunInfo:
        """The facts of the run."""
        return info_of(self.report)

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        """The facts of the first screen that stand between the verdict and the violations."""
        return tuple(run_facts(self.totals, self.settings.variant.relation, self.info))

    @property
    def advice(self) -> tuple[Fact, ...]:
        """The advice of the first screen."""
        effect = self.report.get("spelling_corrector")  # Reports of earlier versions lack it.
        return tuple(corrector_facts(None if effect is None else Mending(**effect)))

    @property
    def cost(self) -> str:
        """The cost of the run, as on the first screen."""
        return cost_text(self.sections, self.info)

    def repeat(self, turn: TurnResult, variant: VariantResult) -> str:
        """Return the command that repeats a violation."""
        return repeat_command(self.info.repeat, keyword(turn.id), variant.index)

    def accept(self, turn: TurnResult) -> str:
        """Return the commands that accept the violations of a turn."""
        return accept_command(self.info.repeat, keyword(turn.id), turn.id, self.baseline)

    def accept_weakness(self, card: Card) -> str:
        """Return the commands that accept a weakness."""
        return f"{self.info.repeat or OPTIONS} {accept_options(card.id)}"

    @property
    def baseline(self) -> str:
        """The file of the baseline that the run was compared with, or ``""``."""
        return "" if self.comparison is None else str(self.report["run"].get("baseline") or "")

    def _caveats(self) -> list[str]:
        """Return a sentence for each relation that did not apply to all turns."""
        partly = [one.applied for one in self.sections if one.applied]
        more = [f"{text}." for text in partly[:_MOST_REASONS]]
        if (rest := len(partly) - _MOST_REASONS) > 0:
            more.append(f"{rest} more relations applied to a part of the turns.")
        return more

    @property
    def findings(self) -> Sequence[Mapping[str, Any]]:
        """The result of each limit."""
        return () if self.gate is None else list(self.gate["findings"])

    @property
    def comparison(self) -> Mapping[str, Any] | None:
        """The comparison with a baseline, if there is one."""
        return None if self.gate is None else self.gate["comparison"]

    @property
    def regressions(self) -> Sequence[Mapping[str, Any]]:
        """The remembered violations that the run replayed. Old reports have none."""
        given = self.report.get("regressions", [])
        if not isinstance(given, list):
            raise _incomplete("'regressions' is not a list")
        for entry in given:
            if not isinstance(entry, Mapping) or any(name not in entry for name in _REGRESSION):
                text = "an entry of 'regressions' lacks something"
                raise _incomplete(text)
        return given

    def entries(self, part: str) -> list[tuple[str, str]]:
        """Return the section ``settings``, ``data`` or ``run`` as pairs (name, text).

        Entries without a text are left out.
        """
        return [
            (name.replace("_", " "), text)
            for name, value in self.report[part].items()
            if name not in ("notes", "repeat") and (text := _text(value))
        ]


def views_of(report: Mapping[str, Any]) -> dict[str, View]:
    """Return the views of a report from a file, by tracker name."""
    return {name: View.of(one) for name, one in reports_of(report).items()}


def _read_totals(
    report: Mapping[str, Any], gate: Mapping[str, Any] | None, settings: Settings
) -> tuple[Totals, tuple[Card, ...]]:
    """Compute the totals and the weaknesses from the turns of a report in a file."""
    totals = Totals(_facts(report), settings.reply.fallback)
    wanted = wanted_examples(report)
    found: dict[str, tuple[TurnResult, VariantResult]] = {}
    for turn in report_turns(report):
        _check_edits(turn)
        totals.add(turn)
        for variant in turn.violations:
            if (name := member_id(turn, variant)) in wanted:
                found[name] = (turn, variant)
    added = report.get("sections", ())
    totals.added = tuple(AddedSection(one["title"], tuple(one["lines"])) for one in added)
    totals.novelty = Novelty.of(None if gate is None else gate["comparison"])
    return totals, cards_of(report, found)


def _reasons(gate: Mapping[str, Any]) -> list[str]:
    """Return the reasons of the gate, one sentence each."""
    failed = {gate["verdict"]} | (_FAILED if gate["verdict"] in _FAILED else set())
    found = [item for item in gate["findings"] if item["verdict"] in failed]
    found.sort(key=lambda item: item.get("gate") != "max-new-violations")
    why = [*gate["troubles"], *gate["not_compared"], *(item["reason"] for item in found)]
    if names := [str(name) for name in gate.get("not_judged", ())]:  # Missing in earlier versions.
        why.insert(0, f"not judged: {describe_unlimited(names)}")
    reasons = [_sentence(str(reason)) for reason in why]
    if (rest := len(reasons) - _MOST_REASONS) > 0:
        reasons[_MOST_REASONS:] = [f"And {rest} more; see the limits."]
    return reasons


def _facts(report: Mapping[str, Any]) -> dict[str, RelationFacts]:
    """Return the facts of the relations, by name."""
    entries = report.get("relations", ())  # Missing in reports of earlier versions.
    try:
        return {
            str(entry["name"]): RelationFacts(
                str(entry["expects"]), str(entry["source"]), entry["unit"], entry["edits"]
            )
            for entry in entries
        }
    except (KeyError, TypeError) as error:
        raise _incomplete(f"its 'relations' lack {error}") from None


def _check_edits(turn: TurnResult) -> None:
    """Raise a `DataError` if an edit does not fit its text, since pages mark edits in texts."""
    shown: list[VariantResult | Minimal] = list(turn.variants)
    shown += [variant.minimal for variant in turn.variants if variant.minimal]
    try:
        for one in shown:
            apply_edits(turn.user, one.edits)
            for _, text, edits in earlier_edits(one):
                apply_edits(text, edits)
    except (ValueError, IndexError) as error:
        why = shorten(str(error), _MOST_CHARACTERS)
        raise _incomplete(f"the edits of turn {turn.id}: {why}") from None


def _gate(gate: object) -> Mapping[str, Any] | None:
    """Return the gate of a report if it gave a verdict. Check its keys."""
    if gate is None:
        return None
    try:
        known = {name: gate[name] for name in _GATE}  # type: ignore[index]  # that is the question
        for finding in known["findings"]:
            known.update({name: finding[name] for name in _FINDING})
        if known["comparison"] is not None:
            known.update({name: known["comparison"][name] for name in _COMPARISON})
            # Missing in reports of earlier versions.
            if (expected := known["comparison"].get("estimated_failures")) is not None:
                known.update({name: expected[name] for name in _EXPECTED})
            for part in ("domains", "slots", "transformations"):
                for row in known[part].values():
                    known.update({name: row[name] for name in _ROW})
    except (KeyError, TypeError) as error:
        raise _incomplete(f"its 'gate' lacks {error}") from None
    judged = gate["findings"] or gate["troubles"] or gate["not_compared"]  # type: ignore[index]
    return gate if judged else None  # type: ignore[return-value]


def _incomplete(why: str) -> DataError:
    return DataError(f"this is not a complete report: {why}")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _text(value: object) -> str:
    """Return a value of a report as text, or ``""`` if there is nothing to show."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {text}" for name, item in value.items() if (text := _text(item)))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(_text(item) for item in value)
    return "" if value is None else str(value)
