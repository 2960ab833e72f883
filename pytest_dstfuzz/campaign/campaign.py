"""Campaigns from Python, without pytest.

They use the engine of the pytest plugin, so the same settings on the same dialogues give the same
results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from pytest_dstfuzz.campaign.code import code_of_rules, code_of_tracker
from pytest_dstfuzz.campaign.deciding import SequentialTest, decider_of, idle_test
from pytest_dstfuzz.campaign.engine import CampaignEngine, PlannedTurn, data_digest, predictor_for
from pytest_dstfuzz.campaign.predictor import Budget, Predictor
from pytest_dstfuzz.campaign.results import Listener, TurnResult
from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.campaign.summary import Summary, summarise
from pytest_dstfuzz.comparisons.calls import comparison_of_values
from pytest_dstfuzz.comparisons.comparison import Comparison
from pytest_dstfuzz.comparisons.judge import Judges
from pytest_dstfuzz.comparisons.registry import DEFAULT, as_comparison
from pytest_dstfuzz.config import (
    ReplySettings,
    Settings,
    identity_of,
)
from pytest_dstfuzz.dialogue.calls import OutcomeKind
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.dialogue.ontology import with_call_values, with_slots
from pytest_dstfuzz.dialogue.paraphrases import with_paraphrases
from pytest_dstfuzz.dialogue.sampling import note_unlabelled, part_of, sample_turns, with_history
from pytest_dstfuzz.errors import UserError, redact_messages
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon, load_lexicon
from pytest_dstfuzz.printable import describe
from pytest_dstfuzz.relations.registry import as_relation, relations_named
from pytest_dstfuzz.relations.relation import Relation
from pytest_dstfuzz.relations.sources import with_frozen
from pytest_dstfuzz.search.protocol import Search
from pytest_dstfuzz.search.registry import as_search, find_training
from pytest_dstfuzz.trackers.adapters import as_tracker, bound_concurrency
from pytest_dstfuzz.trackers.registry import factory_options_of, tracker_for
from pytest_dstfuzz.trackers.tracker import (
    Tracker,
    fingerprint_of,
    is_repeatable,
    service_model_of,
)
from pytest_dstfuzz.trackers.validation import PREFLIGHT_CONTEXTS, bound_time, preflight


class Campaign:
    """A robustness test of a tracker, run from Python.

    ::

        for result in Campaign(track, "conversations.jsonl", Settings.of(turns=50)):
            print(result.id, result.outcome)

    Iteration calls the tracker in full batches and yields one result per turn, in the order of the
    dialogues. Several relations run one after the other. Each clean turn is requested only once. If
    you stop early, `results` has the results so far. If you iterate again, you first get these
    results without calls of the tracker, and then the rest. The same arguments give the same
    results. Only the settings of tracker, data, variants and budget apply. Reports, gate, cache and
    regressions need pytest.

    Args:
        tracker: a value of ``--dst-model`` (a registered name, ``package.module:attribute``, an
            address) or an object: a tracker, a function from a `Context` to ``{slot: value}``, an
            object with ``reset()`` and ``update()``.
        dialogues: a value of ``--dst-data`` (a name or a path) or dialogues. ``None`` = the data of
            the settings.
        settings: the settings of the campaign; ``None`` = the defaults.
        search: the search, which chooses the variants; ``None`` = the search of the settings.
        relation: a relation, a name, several names separated by commas, or a sequence of relations;
            ``None`` = the relations of the settings.
        compare: the comparison, which decides whether two replies agree: names separated by commas,
            a function of two texts or a `Comparison`; ``None`` = the comparison of the settings.
            Only for systems that reply.
        lexicon: words for the perturbations; ``None`` = the shipped words.
        listener: a function that receives events, see `pytest_dstfuzz.campaign.results`.

    Raises:
        UserError: tracker, dialogues or settings cannot be used. If only a call of the tracker can
            reveal an error, the first iteration raises it.
    """

    def __init__(
        self,
        tracker: object,
        dialogues: DialogueSet | Sequence[Dialogue] | str | Path | None = None,
        settings: Settings | None = None,
        *,
        search: Search | None = None,
        relation: Relation | str | Sequence[Relation | str] | None = None,
        compare: object = None,
        lexicon: Lexicon | None = None,
        listener: Listener | None = None,
    ) -> None:
        settings = Settings() if settings is None else settings
        if isinstance(tracker, str):
            settings = settings.replace_options(model=tracker)
        # The tracker reads its files after this. It may take long to load.
        self._decided = identity_of(settings)
        #: The name of the tracker, if the settings have it.
        self._named = settings.tracker.model or ""
        self.settings = settings
        # Only the plugin ends the redaction, because another campaign of the process may need it.
        if settings.output.redact:
            redact_messages(True)
        given = with_slots(_dialogues(dialogues, settings), settings.data.slots)
        given = note_unlabelled(given, settings.data.domains)
        given = with_history(given, settings.reply)
        given = with_paraphrases(given, settings.data.tools_paraphrase)
        self.data = with_frozen(given, settings.data.frozen)
        self._search = None if search is None else as_search(search, "Campaign(search=...)")
        named = settings.variant.relation if relation is None else relation
        self._relations = _relations(named, self.data, settings.reply.outcome)
        self._lexicon = load_lexicon() if lexicon is None else lexicon
        # Raise an error now if the settings name something that does not exist.
        for one in self._relations:
            CampaignSpec.of(
                settings.variant,
                self.data,
                self._lexicon,
                self._search,
                relation=one,
                reply=settings.reply,
            )
        #: The language models that compare replies, with the number of undecided pairs.
        self.judges = Judges()
        self._comparison = _comparison(compare, settings.reply, self.data, self.judges)
        self._listener = listener
        how = settings.data
        self._drawn = sample_turns(self.data, how.turns, settings.variant.seed, how.domains)
        self._plan = part_of(self._drawn, how.shard)
        self._budget = Budget(settings.budget)
        self.tracker: Tracker = self._find_tracker(tracker)
        self._fingerprint = fingerprint_of(self.tracker)
        #: Name of a relation -> an engine with its rules and an empty plan.
        self._first: dict[str, CampaignEngine] = {}
        self._started = False

    def _find_tracker(self, tracker: object) -> Tracker:
        """Return the tracker that the user named or gave."""
        settings = self.settings
        if isinstance(tracker, str):
            return tracker_for(settings, self.data, deadline=self._budget.deadline)
        own = as_tracker(
            tracker,
            normalisation=self.data.normalisation,
            outcome=settings.reply.outcome,
            history=settings.reply.history,
        )
        return bound_concurrency(own, settings.tracker.concurrency)

    def __len__(self) -> int:
        turns = sum(last + 1 for _, last in self._plan)
        whole = [relation.unit == "dialogue" for relation in self._relations]
        return whole.count(False) * turns + whole.count(True) * len(self._plan)

    def __iter__(self) -> Iterator[TurnResult]:
        for engine in self._engines:
            yield from engine.run()

    @property
    def results(self) -> tuple[TurnResult, ...]:
        """The results so far, in the order of `__iter__`, without calls of the tracker."""
        engines = self._engines if self._started else ()
        return tuple(result for engine in engines for result in engine.known())

    def summary(self) -> Summary:
        """Return the figures of `results`.

        Raises:
            UserError: there are several relations. Use `summaries`: figures of relations are never
                added up, because some answers should change and others should not.
        """
        if len(self._relations) > 1:
            raise UserError(
                f"this campaign has {len(self._relations)} relations, whose figures are not added "
                "up: summaries() has the figures of each relation by its name"
            )
        return summarise(self.results)

    def summaries(self) -> dict[str, Summary]:
        """Return the figures of `results` for each relation, by its name."""
        found = self.results
        return {
            relation.name: summarise(one for one in found if one.relation == relation.name)
            for relation in self._relations
        }

    @property
    def drawn(self) -> Sequence[PlannedTurn]:
        """The sampled dialogues, each with its last turn, in the order of the data."""
        return self._drawn

    @property
    def plan(self) -> Sequence[PlannedTurn]:
        """The sampled dialogues to run: all, or the ``shard`` of the settings."""
        return self._plan

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The relations to test, in this order."""
        return self._relations

    @property
    def comparison(self) -> Comparison:
        """The comparison, which decides whether two answers agree."""
        return self._comparison

    @property
    def lexicon(self) -> Lexicon:
        """The words for perturbations."""
        return self._lexicon

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that affects the results, by name. It is the key for stored results.

        It identifies the settings (see `identity_of`), the data that were read, the tracker, the
        words, the policy of the search, and the files with a user's own code. ``shard`` and the
        drawn dialogues are not included.
        """
        settings = self.settings
        search, comparison = settings.variant.search, self._comparison
        searched = any(relation.edits == "search" for relation in self._relations)
        found = find_training(search) if searched and self._search is None else None
        return {
            **self._decided,
            "data": data_digest(self.data),
            "fingerprint": self._fingerprint or "",
            "relations": [relation.name for relation in self._relations],
            "the model of the service": service_model_of(self.tracker),
            "compared": "" if comparison.exact else comparison.name,
            # A judge without a name is the model that its service has at present.
            "the comparison": "" if comparison.exact else comparison.identity,
            "lexicon": self._lexicon.fingerprint,
            "policy": "" if found is None else [found.fingerprint, found.code],
            "code": self._code(),
            "the options of the tracker's factory": factory_options_of(settings.tracker),
        }

    def late_settings(self) -> dict[str, Any]:
        """Return the settings that changed since the campaign was made, with their identity now.

        A file that a setting names may have another content, for example.
        """
        now, before = identity_of(self.settings), self._decided
        return {name: value for name, value in now.items() if before[name] != value}

    def late_code(self) -> dict[str, str]:
        """Return the code of objects that changed since `identity` was computed.

        The keys are the names of the objects. A run may load code late. Only then is it known which
        files this code uses.
        """
        before = self.identity["code"]
        return {name: code for name, code in self._code().items() if before.get(name) != code}

    def _code(self) -> dict[str, str]:
        """Return a digest of the files with code for each user-defined object."""
        of_tracker = code_of_tracker(str(self._named), self.tracker)
        return of_tracker | code_of_rules(self.settings, self._relations, self._search)

    @cached_property
    def predictor(self) -> Predictor:
        """The predictor, which calls the tracker. The tracker has passed the preflight.

        Raises:
            UserError: the preflight found that results would be meaningless.
        """
        settings, data, budget = self.settings, self.data, self._budget
        first = islice(
            ((dialogue, index) for dialogue, last in self._drawn for index in range(last + 1)),
            PREFLIGHT_CONTEXTS,
        )
        contexts = [dialogue.context(index) for dialogue, index in first]
        budget.deadline.start()
        repeatable = is_repeatable(
            self.tracker, settings.tracker.repeatable, settings.reply.outcome
        )
        if repeatable and isinstance(decider_of(settings.tracker), SequentialTest):
            raise UserError(idle_test(settings.tracker, KINDS[settings.reply.outcome].words.who))
        with bound_time(budget.deadline, settings.budget.preflight_seconds):
            self.judges.reach()
            preflight(
                self.tracker,
                budget.checks(contexts),
                ontology=data.ontology,
                deadline=budget.deadline,
                repeatable=repeatable,
                outcome=settings.reply.outcome,
                spend=budget.besides,
            )
        return predictor_for(
            settings,
            data,
            self.tracker,
            self._listener,
            budget=budget,
            wobbles=not repeatable,
            fingerprint=self._fingerprint,
        )

    def engine(self, relation: Relation, plan: Sequence[PlannedTurn]) -> CampaignEngine:
        """Return an engine for a part of the plan under one relation.

        All engines share the `predictor`. The rules of a relation are built only once.
        """
        if relation.name not in self._first:
            self._first[relation.name] = CampaignEngine(
                self.settings,
                self.data,
                self.predictor,
                self._lexicon,
                plan=(),
                sample=self._drawn,
                listener=self._listener,
                search=self._search,
                relation=relation,
                comparison=self._comparison,
            )
        return self._first[relation.name].on(plan)

    @cached_property
    def _engines(self) -> tuple[CampaignEngine, ...]:
        engines = tuple(self.engine(relation, self._plan) for relation in self._relations)
        self._started = True
        return engines


def _comparison(
    given: object, settings: ReplySettings, data: DialogueSet, judges: Judges
) -> Comparison:
    """Return the comparison of answers, from the argument or from the settings."""
    if KINDS[settings.outcome].words.values:
        if given is not None:
            raise UserError(
                "compare is for replies: add outcome='reply' to the settings, or leave compare out"
            )
        return comparison_of_values(data, settings)
    chosen = (settings.compare or DEFAULT) if given is None else given
    return as_comparison(chosen, "Campaign(compare=...)", settings, judges)


def _relations(given: object, data: DialogueSet, outcome: OutcomeKind) -> tuple[Relation, ...]:
    """Return the relations of a campaign, given as names or as objects."""
    several = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    found: list[Relation] = []
    for one in several:
        if isinstance(one, str):
            found += relations_named(one, data, outcome)
        else:
            found.append(as_relation(one, "Campaign(relation=...)"))
    names = [relation.name for relation in found]
    if not found:
        raise UserError("a campaign needs a relation, such as 'metamorphic'")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UserError(f"two relations of the campaign have the name {twice!r}")
    return tuple(found)


def _dialogues(given: object, settings: Settings) -> DialogueSet:
    if isinstance(given, DialogueSet):
        found = given
    elif given is None or isinstance(given, str | Path):
        source = settings.data.data if given is None else str(given)
        how, outcome = settings.data, settings.reply.outcome
        return load_dialogues(source, how.split, outcome=outcome, tools=how.tools)
    elif isinstance(given, Sequence) and all(isinstance(one, Dialogue) for one in given):
        found = DialogueSet("dialogues", settings.data.split, tuple(given))
        if KINDS[settings.reply.outcome].has_tools:
            found = with_call_values(found)
    else:
        raise UserError(
            "the dialogues of a campaign must be a name or a path as for --dst-data, the result of "
            f"load_dialogues(), or a list of Dialogue objects, not {describe(given)}"
        )
    if not found.dialogues:
        raise UserError("there is no dialogue to test")
    counted = Counter(found.ids)
    if twice := next((name for name, count in counted.items() if count > 1), None):
        raise UserError(f"two dialogues have the id {twice!r}: give each its own id")
    return found
