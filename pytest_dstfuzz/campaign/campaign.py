"""A campaign from Python, without pytest: a tracker and dialogues in, one result a turn out.

It is run by the engine that runs the robustness tests of pytest, so that the same settings on
the same dialogues give the same results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from pytest_dstfuzz.campaign.attempts import CampaignSpec
from pytest_dstfuzz.campaign.budget import Budget
from pytest_dstfuzz.campaign.engine import CampaignEngine, predictor_for
from pytest_dstfuzz.campaign.events import Listener
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.summary import Summary, summarise
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.dialogue.ontology import with_slots
from pytest_dstfuzz.dialogue.sampling import sample_turns
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon, load_lexicon
from pytest_dstfuzz.relations.registry import as_relation
from pytest_dstfuzz.relations.relation import Relation
from pytest_dstfuzz.search.protocol import Search
from pytest_dstfuzz.search.registry import as_search
from pytest_dstfuzz.trackers.adapters import as_tracker
from pytest_dstfuzz.trackers.preflight import PREFLIGHT_CONTEXTS, bounded, preflight
from pytest_dstfuzz.trackers.registry import tracker_for
from pytest_dstfuzz.trackers.tracker import Tracker, is_repeatable
from pytest_dstfuzz.trackers.validation import describe


class Campaign:
    """Robustness tests of a tracker from Python, turn by turn.

    ::

        for result in Campaign(track, "conversations.jsonl", Settings.of(turns=50)):
            print(result.id, result.outcome)

    To iterate asks the tracker, in full batches, and yields the results in the order of the
    dialogues. Whoever stops early has what was found in `results`; who iterates again gets it
    again without asking, and then the rest. The same arguments give the same results. Of the
    settings those of tracker, data, variants and budget count; reports, gate, cache and
    regressions are for pytest.

    Args:
        tracker: what ``--dst-model`` takes (a registered name, ``package.module:attribute``, an
            address), or the thing itself: a tracker, a function from a `Context` to
            ``{slot: value}``, an object with ``reset()`` and ``update()``.
        dialogues: what ``--dst-data`` takes (a name or a path), or dialogues; ``None`` = those
            that the settings name.
        settings: what to do; ``None`` = the defaults.
        search: who chooses the variants; ``None`` = the search that the settings name.
        relation: what must hold; ``None`` = the relation that the settings name.
        lexicon: words for the perturbations; ``None`` = those that ship.
        listener: told what happens, see `pytest_dstfuzz.campaign.events`.

    Raises:
        UserError: tracker, dialogues or settings cannot be used. What only shows when the tracker
            is asked is raised by the first iteration.
    """

    def __init__(
        self,
        tracker: object,
        dialogues: DialogueSet | Sequence[Dialogue] | str | Path | None = None,
        settings: Settings | None = None,
        *,
        search: Search | None = None,
        relation: Relation | None = None,
        lexicon: Lexicon | None = None,
        listener: Listener | None = None,
    ) -> None:
        settings = Settings() if settings is None else settings
        if isinstance(tracker, str):
            settings = settings.replace_options(model=tracker)
        self.settings = settings
        self.data = with_slots(_dialogues(dialogues, settings), settings.data.slots)
        self._search = None if search is None else as_search(search, "Campaign(search=...)")
        self._relation = (
            None if relation is None else as_relation(relation, "Campaign(relation=...)")
        )
        self._lexicon = load_lexicon() if lexicon is None else lexicon
        # Refuses what the settings name and there is not.
        CampaignSpec.of(
            settings.variant, self.data, self._lexicon, self._search, relation=self._relation
        )
        self._listener = listener
        self._plan = sample_turns(
            self.data, settings.data.turns, settings.variant.seed, settings.data.domains
        )
        self._budget = Budget(settings.budget)
        self.tracker: Tracker = (
            tracker_for(settings, self.data, deadline=self._budget.deadline)
            if isinstance(tracker, str)
            else as_tracker(tracker, normalisation=self.data.normalisation)
        )
        self._started = False

    def __len__(self) -> int:
        return sum(last + 1 for _, last in self._plan)

    def __iter__(self) -> Iterator[TurnResult]:
        return self._engine.run()

    @property
    def results(self) -> tuple[TurnResult, ...]:
        """What was found so far, in the order of the dialogues; the tracker is not asked."""
        return self._engine.known() if self._started else ()

    def summary(self) -> Summary:
        """Return the figures of `results`."""
        return summarise(self.results)

    @cached_property
    def _engine(self) -> CampaignEngine:
        """The engine, once a preflight has shown that results would mean something."""
        settings, data, budget = self.settings, self.data, self._budget
        turns = [(dialogue, index) for dialogue, last in self._plan for index in range(last + 1)]
        contexts = [dialogue.context(index) for dialogue, index in turns[:PREFLIGHT_CONTEXTS]]
        budget.deadline.start()
        repeatable = is_repeatable(self.tracker, settings.tracker.repeatable)
        with bounded(budget.deadline, settings.budget.preflight_seconds):
            preflight(
                self.tracker,
                contexts,
                ontology=data.ontology,
                deadline=budget.deadline,
                repeatable=repeatable,
            )
        predictor = predictor_for(
            settings, data, self.tracker, self._listener, budget=budget, wobbles=not repeatable
        )
        engine = CampaignEngine(
            settings,
            data,
            predictor,
            self._lexicon,
            plan=self._plan,
            listener=self._listener,
            search=self._search,
            relation=self._relation,
        )
        self._started = True
        return engine


def _dialogues(given: object, settings: Settings) -> DialogueSet:
    if isinstance(given, DialogueSet):
        found = given
    elif given is None or isinstance(given, str | Path):
        return load_dialogues(
            settings.data.data if given is None else str(given), settings.data.split
        )
    elif isinstance(given, Sequence) and all(isinstance(one, Dialogue) for one in given):
        found = DialogueSet("dialogues", settings.data.split, tuple(given))
    else:
        raise UserError(
            "the dialogues of a campaign are a name or a path, as --dst-data takes them, or what "
            f"load_dialogues() returns, or some Dialogue: not {describe(given)}"
        )
    if not found.dialogues:
        raise UserError("there is no dialogue to test a tracker with")
    counted = Counter(dialogue.id for dialogue in found.dialogues)
    if twice := next((name for name, count in counted.items() if count > 1), None):
        raise UserError(f"two of the dialogues have the id {twice!r}: ids tell results apart")
    return found
