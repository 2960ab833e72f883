"""The campaigns of a session. A campaign starts when the first of its tests needs a result."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import Any, Final

import pytest

from pytest_dstfuzz.campaign.code import code_of_rules
from pytest_dstfuzz.campaign.cost import SLOW, ExpectedCalls, expected_calls, rehearse
from pytest_dstfuzz.campaign.engine import CampaignEngine
from pytest_dstfuzz.campaign.predictor import Budget, Predictor
from pytest_dstfuzz.campaign.results import (
    BatchDone,
    BudgetReached,
    Event,
    Listener,
    PilotFinished,
    TurnDone,
    TurnResult,
)
from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.comparisons.comparison import Comparison
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.calls import OutcomeKind
from pytest_dstfuzz.dialogue.dialogues import Dialogue
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.plugin.context import RunContext, TrackerPool
from pytest_dstfuzz.plugin.items import (
    CampaignKey,
    FixtureValues,
    Origins,
    TurnParam,
    own_settings,
    param_of,
)
from pytest_dstfuzz.plugin.results import OWN_EDITS, ItemOutcome, clean_tally, group_key
from pytest_dstfuzz.plugin.turn import REDRAWS, DstProposer
from pytest_dstfuzz.printable import format_count, printable
from pytest_dstfuzz.relations.relation import Relation
from pytest_dstfuzz.search.registry import describe_trained
from pytest_dstfuzz.totals.totals import RelationFacts
from pytest_dstfuzz.totals.troubles import LEAST_TESTED, AnswersTally

#: Seconds without output before a progress message.
PATIENCE = 20.0
#: Minimum number of turns to estimate the total cost.
_TELLING = 8


class Progress:
    """Listens to campaigns and prints a message if nothing was printed for a long time.

    pytest prints a dot for each finished test. A campaign runs a group of dialogues at once, so the
    first test of a group waits for the whole group. A worker of xdist has no terminal and prints
    nothing.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._last_sign = time.monotonic()
        #: Number of results that the selected tests need, as far as known.
        self.planned = 0
        #: The budget of the run, with the time and cost of a call so far.
        self.budget = Budget()
        self._turns = self._done = 0
        #: Number of contexts until the end of a campaign, estimated from its first turns.
        self._whole = 0.0

    def __call__(self, event: Event) -> None:
        """Handle an event of a campaign."""
        if isinstance(event, PilotFinished):
            self._whole = self._done - event.asked + event.calls
            self._say(
                f"after {format_count(event.asked, 'call')}: "
                f"{_cost_text(event.calls, self.budget, (event.low, event.high))} for all "
                f"{format_count(event.planned, 'turn')}"
            )
        elif isinstance(event, TurnDone):
            self._turns += 1
        elif isinstance(event, BudgetReached):
            self._say(f"{event.reason}: the rest is skipped")
        elif isinstance(event, BatchDone):
            self._done += event.contexts
            if time.monotonic() - self._last_sign >= PATIENCE:
                self._say(self._text())

    def _text(self) -> str:
        text = f"{self._done:,} contexts predicted, {self._turns:,} turns done"
        # After a pilot, all other turns run together. A budget is spread over the turns, too.
        if self._whole > self._done:
            text = f"{self._done:,} of about {self._whole:,.0f} contexts predicted"
        elif not (self._whole or self.budget.limited) and _TELLING <= self._turns < self.planned:
            whole = self._done * self.planned / self._turns
            text += f"; about {whole:,.0f} contexts for all {self.planned:,} turns"
        return text

    def sign_of_life(self) -> None:
        """Record that something was printed."""
        self._last_sign = time.monotonic()

    def _say(self, text: str) -> None:
        self.sign_of_life()
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None or self._config.get_verbosity() < 0:
            return
        # A campaign runs inside a test, whose output pytest captures.
        capture: Any = self._config.pluginmanager.get_plugin("capturemanager")
        with capture.global_and_fixture_disabled() if capture else nullcontext():
            reporter.ensure_newline()
            reporter.write_line(printable(f"dstfuzz: {text}"))
            reporter.flush()


def _cost_text(calls: float, budget: Budget, ends: Sequence[float] = ()) -> str:
    """Return a text about a number of calls, with their time and cost if these are known.

    If the number is an estimate, ``ends`` are the ends of its 95 % interval.
    """
    text = f"about {calls:,.0f} calls"
    if len({calls, *ends}) > 1:
        low, high = (end if end == calls else float(f"{end:.2g}") for end in ends)
        text += f" ({max(low, 0):,.0f} to {high:,.0f})"
    if budget.seconds_each is not None:
        text += f", {duration_text(calls * budget.seconds_each)}"
    if budget.cost_each is not None:
        text += f", {calls * budget.cost_each:,.2f} by the prices"
    return text


def duration_text(seconds: float) -> str:
    """Return a duration in seconds as text with at most two digits."""
    if seconds < 100:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


#: Part of the seconds of a budget that is promised: a bot may become slower.
_PART: Final = 0.85


def _is_dear(campaigns: Sequence[ExpectedCalls], budget: Budget) -> bool:
    """Return whether a run is slow or paid, or its budget may be too small."""
    least = sum(one.least for one in campaigns)
    seconds = least * (budget.seconds_each or 0.0)
    return seconds >= SLOW or budget.cost_each is not None or budget.guess(_PART) < least


def cost_lines(
    campaigns: Sequence[ExpectedCalls], budget: Budget, settings: Settings, *, always: bool
) -> list[str]:
    """Return lines about the cost of a run before it starts.

    Args:
        campaigns: for each campaign, the estimated number of calls.
        budget: the budget of the run. It has timed the first answers.
        settings: the settings of the run.
        always: whether to return lines even if the run is short and costs nothing.
    """
    left, least = budget.guess(_PART), sum(one.least for one in campaigns)
    if not (campaigns and (always or _is_dear(campaigns, budget))):
        return []
    expected = campaigns[0]
    turns = format_count(expected.turns, "turn")
    most = _cost_text(sum(one.most for one in campaigns), budget).removeprefix("about ")
    several = f" under each of {len(campaigns)} relations" if len(campaigns) > 1 else ""
    whole = f"{_cost_text(least, budget)} for {turns}{several}"
    lines = [f"{whole} without violations; up to {most} if every variant is a violation"]
    if left >= least:
        return lines
    if several:
        lines.append(
            f"{budget.name} is enough for about {left:,.0f} of these calls. Relations run one "
            "after the other, so the last ones may be missing"
        )
        return lines
    fits = int(expected.turns * left / expected.first)
    if fits >= expected.turns:
        lines.append(
            f"{budget.name} is enough for about {left:,.0f} of these calls, so every turn gets "
            "only some "
            f"of its {format_count(settings.variant.variants, 'variant')}"
        )
        return lines
    few = "" if fits >= LEAST_TESTED * expected.turns else ", too few for a gate"
    lines.append(
        f"{budget.name} is enough for one variant of about {fits:,} of {turns}{few}: lower "
        f"--dst-turns to {max(fits, 1):,}, or allow {_cost_text(expected.first, budget)}"
    )
    return lines


class SessionCampaigns:
    """Runs the campaigns of the tests. A campaign starts when its first test needs a result."""

    def __init__(self, context: RunContext, pool: TrackerPool, listener: Listener) -> None:
        self._context = context
        self._pool = pool
        self._listener = listener
        self._origins = Origins()
        #: The values of the tests' fixtures.
        self.fixtures = FixtureValues(
            self._origins, context.settings.variant.relation, shared=context.workers > 0
        )
        #: The parameters of the selected tests, with the origins of their trackers.
        self._params: list[tuple[TurnParam, str]] = []
        #: (outcome, origin) -> name of the tracker, see `Origins.model`.
        self._models: dict[tuple[OutcomeKind, str], str] = {}
        #: (settings, origin) -> dialogue id -> dialogue and last turn that a test needs.
        self._plans: dict[tuple[Settings, str], dict[str, tuple[Dialogue, int]]] = {}
        #: Name of a trained search -> fingerprint of its policy, and a note on it.
        self._policies: dict[str, tuple[str, str]] = {}
        self._codes: dict[CampaignKey, Mapping[str, str]] = {}
        self._engines: dict[CampaignKey, CampaignEngine] = {}
        #: (name of the tracker, identity of the comparison) -> the clean answers.
        self._answers: dict[tuple[str, str], AnswersTally | None] = {}
        #: Name of a tracker -> number of results that the selected tests need.
        self.planned: dict[str, int] = {}
        #: Relations of the settings, in the order of the tests.
        self.relations: list[str] = []

    def trackers_of(self, items: Iterable[pytest.Item]) -> set[tuple[str, str]]:
        """Return the files of some tests, each with the name of a tracker."""
        base = self._context.settings
        about = ((item, param_of(item)) for item in items)
        return {
            (item.nodeid.partition("::")[0], self._origins.model(item, param.settings, base))
            for item, param in about
            if param is not None
        }

    def plan(self, items: Sequence[pytest.Item]) -> None:
        """Record the turns of the selected tests. A campaign then tests several turns at once."""
        about = [(item, param) for item in items if (param := param_of(item)) is not None]
        self._origins.learn(item for item, _ in about)
        self._params = [(param, self._origins.of(item)) for item, param in about]
        base = self._context.settings
        for (item, _), (param, origin) in zip(about, self._params, strict=True):
            model = self._origins.model(item, param.settings, base)
            self._models[param.settings.reply.outcome, origin] = model
            last = self._plans.setdefault((param.settings, origin), {})
            _, index = last.get(param.dialogue.id, (param.dialogue, -1))
            last[param.dialogue.id] = (param.dialogue, max(index, param.turn_index))
        asked = {(param.settings, origin, param.turn_id) for param, origin in self._params}
        planned = Counter(self._models[how.reply.outcome, origin] for how, origin, _ in asked)
        self.planned = dict(sorted(planned.items()))
        self.relations = list(
            dict.fromkeys(one.settings.variant.relation for one, _ in self._params)
        )

    def cost_lines(self, *, always: bool) -> list[str]:
        """Return lines about the cost of the run before it starts. See `cost_lines`."""
        budget, expected = self._pool.budget, self._expected(closely=False)
        if always or _is_dear(expected, budget):
            expected = self._expected(closely=True)
        return cost_lines(expected, budget, self._context.settings, always=always)

    def _expected(self, *, closely: bool) -> list[ExpectedCalls]:
        """Return the estimated number of calls of each campaign.

        ``closely`` makes the variants for it, which takes some time.
        """
        relations, known = list[ExpectedCalls](), set[OutcomeKind]()
        for (settings, _), turns in self._plans.items():
            plan, outcome = [*turns.values()], settings.reply.outcome
            decider = self._pool.decider(outcome)
            relation = self._context.relations(settings)[0]
            found = expected_calls(settings.variant, relation, decider, plan)
            # If the settings do not fit together, the tests report the error.
            with suppress(UserError):
                found = rehearse(found, self._rules(settings), plan) if closely else found
            # Several relations share the answers to clean turns.
            relations.append(found.without_clean() if outcome in known else found)
            known.add(outcome)
        return relations

    def _rules(self, settings: Settings) -> CampaignSpec:
        """Return the rules of a campaign with the tracker of the settings."""
        context, decider = self._context, self._pool.decider(settings.reply.outcome)
        return CampaignSpec.of(
            settings.variant,
            context.data_of(settings),
            context.lexicon,
            relation=context.relations(settings)[0],
            decider=decider,
            repeats=not decider.again,
            reply=settings.reply,
            comparison=context.comparison(settings.reply),
        )

    def predictor(self, model: object, item: pytest.Item, outcome: OutcomeKind) -> Predictor:
        """Return the predictor for the tracker of a test."""
        made = self.fixtures.made(item, "dst_model", model)
        return self._pool.predictor(model, made.source, outcome)

    def result(
        self, param: TurnParam, model: object, key: CampaignKey, planned: Settings
    ) -> TurnResult:
        """Return the result of a test's turn.

        ``planned`` holds the settings that `plan` recorded for the turn.
        """
        # An unusable tracker is refused before the settings are checked.
        source = key.made[0].source
        predictor = self._pool.predictor(model, source, key.effective.reply.outcome)
        if key not in self._engines:
            data, turns = self._context.data_of(key.effective), self._plans[planned, key.origin]
            worker, config = self._context.workers > 0, self._context.config
            every = {dialogue.id: dialogue for dialogue in data.dialogues}
            drawn = self._context.drawn(key.effective)
            soon = bool(
                config.getoption("maxfail", 0) or config.getoption("stepwise", default=False)
            )
            self._engines[key] = CampaignEngine(
                key.effective,
                data,
                predictor,
                key.lexicon,
                plan=[turns[name] for name in data.ids if name in turns],
                sample=[(every[dialogue.id], last) for dialogue, last in drawn],
                listener=self._listener,
                # Another worker may run the turns ahead. A run that stops at the first failure (-x,
                # --stepwise) requests one dialogue at a time.
                window=1 if soon else self._context.settings.tracker.batch_size if worker else None,
                ahead=not (worker or soon),
                spread=not (worker or soon),
                search=self.fixtures.own(key.search_id),
                relation=self.fixtures.own(key.relation_id),
                comparison=self._comparison(key),
            )
        result = self._engines[key].result(param.dialogue.id, param.turn_index)
        if (answers := self._answers_of(key)) is not None:
            answers.add(result, param.dialogue.context(param.turn_index))
        return result

    def _answers_of(self, key: CampaignKey) -> AnswersTally | None:
        """Return the tally of the clean answers, see `clean_tally`."""
        comparison = self._comparison(key)
        model = self._models[key.settings.reply.outcome, key.origin]
        known = model, comparison.identity
        if known not in self._answers:
            fallbacks = self._context.settings.reply.fallback
            self._answers[known] = clean_tally(comparison, fallbacks)
        return self._answers[known]

    def found(self, param: TurnParam, key: CampaignKey, result: TurnResult) -> ItemOutcome:
        """Return the result of a test, with additional facts for reports and the gate."""
        words, variant = key.lexicon.fingerprint, key.effective.variant
        relation = self._relation(key)
        # If the relation makes the edits, the results do not depend on the search.
        search = variant.search if relation.edits == "search" else OWN_EDITS
        own = own_settings(param.settings, self._context.settings)
        comparison = self._comparison(key)
        answers = self._answers_of(key)
        nameless = search == OWN_EDITS or key.search_id
        # The reporting process knows the cost of its own trackers.
        worker = self._context.worker.get("workerid", "")
        return ItemOutcome(
            key=group_key(key.origin, own, search, words, comparison, relation.name),
            result=result,
            lexicon=words,
            policy=("", "") if nameless else self._policy(search),
            model=self._models[key.settings.reply.outcome, key.origin],
            planned=self.planned,
            own=own,
            relation=relation.name,
            compared="" if comparison.exact else comparison.name,
            compared_by="" if comparison.exact else comparison.identity,
            told_apart=None if answers is None else answers.told_apart,
            code=self._code(key),
            about_relation=RelationFacts(
                KINDS[key.effective.reply.outcome].words.fill(relation.expects),
                relation.source,
                relation.unit,
                relation.edits,
            ),
            chosen={} if "search" in param.marked or search == OWN_EDITS else {"search": search},
            worker=worker,
            made=key.made if worker else (),
            facts=self._pool.facts() if worker else None,
        )

    def finished(self) -> Iterator[ItemOutcome]:
        """Yield the results of campaigns whose tests did not run.

        After an interrupt, some tests have not run although their campaign has finished. This
        function yields their results in the process that runs the tests. With workers of xdist,
        only results that reached the controller are reported.
        """
        for key, engine in self._engines.items():
            finished = {turn.id: turn for turn in engine.finished()}
            for param, origin in self._params:
                result = finished.get(param.turn_id)
                if result is None or result.outcome == "skipped":
                    continue
                if (param.settings, origin) == (key.settings, key.origin):
                    yield self.found(param, key, result)

    def proposer(self, model: object, lexicon: Lexicon, search: str) -> DstProposer:
        """Return the value of the fixture ``dst_proposer`` for the search with this name."""
        # A search is the same under all relations without edits of their own.
        settings = self._context.settings.replace_options(
            search=search, redraws=REDRAWS, relation="metamorphic"
        )
        spec = CampaignSpec.of(settings.variant, self._context.data, lexicon)
        return DstProposer(spec, self._pool.predictor(model, outcome=settings.reply.outcome))

    def _relation(self, key: CampaignKey) -> Relation:
        """Return the relation of a campaign."""
        given: Relation | None = self.fixtures.own(key.relation_id)
        # Each turn asks for it, and the context keeps the relations that it has looked up.
        return given or self._context.relations(key.effective)[0]

    def _comparison(self, key: CampaignKey) -> Comparison:
        """Return the comparison that a campaign uses for answers."""
        given: Comparison | None = self.fixtures.own(key.compare_id)
        return given or self._context.comparison(key.effective.reply)

    def _code(self, key: CampaignKey) -> Mapping[str, str]:
        """Return the digests of the user's own code that a campaign uses, except the tracker."""
        if key not in self._codes:
            search = self.fixtures.own(key.search_id)
            path = self._context.search_path
            self._codes[key] = code_of_rules(key.effective, [self._relation(key)], search, path)
        return self._codes[key]

    def _policy(self, search: str) -> tuple[str, str]:
        """Return the fingerprint of a trained search and a note about it."""
        if search not in self._policies:
            named = self._context.settings.tracker
            self._policies[search] = describe_trained(search, named.model, named.checkpoint)
        return self._policies[search]
