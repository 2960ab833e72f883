"""The results of one tracker of a session, and their figures.

A session may test several trackers: a fixture has parameters, or modules have fixtures of their
own. Each has figures of its own, and the gate judges each by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from pytest_dstfuzz.campaign.result_views import MappedResults
from pytest_dstfuzz.campaign.results import Results, TurnResult
from pytest_dstfuzz.campaign.summary import Summary
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.plugin.relations import PARTED
from pytest_dstfuzz.plugin.result_collector import ResultCollector
from pytest_dstfuzz.report.redact import redacted
from pytest_dstfuzz.totals.totals import Totals
from pytest_dstfuzz.trackers.tracker import NAMELESS


@dataclass(eq=False)
class ModelResults:
    """The results of one tracker in a session."""

    #: ``""`` where the session tests one.
    name: str
    collector: ResultCollector
    _settings: Settings
    _data: DialogueSet
    #: Weakness -> why it may stay.
    _accepted: Mapping[str, str]

    @cached_property
    def settings(self) -> Settings:
        """The settings of the session, with the tracker and what fixtures gave by their names."""
        named = self.collector.named(self._settings)
        return named.replace_options(model=self.name) if self.name else named

    @cached_property
    def _found(self) -> Results:
        found = self.collector.results(self._data) if self.collector else ()
        return MappedResults(found, self.marked) if self.name else found

    @cached_property
    def results(self) -> Results:
        """The results as reports show them."""
        redact = self._settings.output.redact
        return MappedResults(self._found, redacted) if redact else self._found

    def marked(self, result: TurnResult) -> TurnResult:
        """Return a result with the name of its tracker."""
        return replace(result, model=self.name) if self.name else result

    @cached_property
    def totals(self) -> Totals:
        """All figures, from one pass over the results."""
        hide = redacted if self._settings.output.redact else None
        relations, fallbacks = self.collector.relations, self._settings.reply.fallback
        totals = Totals(relations, fallbacks, hide, self._accepted)
        totals.order = tuple(self.settings.variant.relation.split(PARTED))
        for group, result in self.collector.grouped(self._data) if self.collector else ():
            totals.add(self.marked(result), group)
        return totals

    @cached_property
    def summary(self) -> Summary:
        """The figures of the first relation: those of several are never added up."""
        return self.totals.first(self.settings.variant.relation).summary


def models_of(
    collector: ResultCollector,
    settings: Settings,
    data: DialogueSet,
    accepted: Mapping[str, str],
) -> tuple[ModelResults, ...]:
    """Return the results of each tracker of a session, by the names of the trackers."""
    found = collector.models()
    several = len(found) > 1
    nameless = settings.tracker.model or NAMELESS
    return tuple(
        ModelResults(name or nameless if several else "", one, settings, data, accepted)
        for name, one in found.items()
    )
