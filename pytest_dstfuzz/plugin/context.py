"""What the robustness tests of one process share and nothing changes: settings, data, words."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.comparisons.call_rules import comparison_of_values
from pytest_dstfuzz.comparisons.comparison import Comparison
from pytest_dstfuzz.comparisons.judge import Judges
from pytest_dstfuzz.comparisons.registry import comparison_by_name
from pytest_dstfuzz.config import ReplySettings, Settings
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, DialogueSet
from pytest_dstfuzz.dialogue.load import SAMPLE, load_dialogues
from pytest_dstfuzz.dialogue.ontology import with_slots
from pytest_dstfuzz.dialogue.paraphrases import with_paraphrases
from pytest_dstfuzz.dialogue.rollout import with_history
from pytest_dstfuzz.dialogue.sampling import part_of, sample_set, sample_turns
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon, load_lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.plugin.options import given_options, read_settings, table_rules_of
from pytest_dstfuzz.plugin.relations import each_of
from pytest_dstfuzz.plugin.stored import StoredRun, stored_run
from pytest_dstfuzz.relations.applicable import why_hopeless
from pytest_dstfuzz.relations.registry import ALL, REPEATS, relations_named
from pytest_dstfuzz.relations.relation import Relation
from pytest_dstfuzz.relations.scene import Scenes
from pytest_dstfuzz.relations.sources.rows import with_frozen
from pytest_dstfuzz.trackers.preflight import PREFLIGHT_CONTEXTS


@dataclass(frozen=True)
class RunContext:
    """What a session is about; its settings, of which a marker may change some for its test.

    ``model_on_command_line`` says whether the command line names a tracker: an ini file that does
    serves runs of other tests too.
    """

    config: pytest.Config
    settings: Settings
    model_on_command_line: bool
    _pid: int = field(default_factory=os.getpid)

    @classmethod
    def of(cls, config: pytest.Config) -> RunContext:
        """Read the options."""
        given = given_options(config)
        named = any(option.name == "model" and option.on_command_line for option in given)
        return cls(config, read_settings(config), named)

    @cached_property
    def data(self) -> DialogueSet:
        """The dialogues of the session."""
        settings = self.settings.data
        outcome = self.settings.reply.outcome
        where, split = settings.data, settings.split
        read = load_dialogues(where, split, outcome=outcome, tools=settings.tools)
        found = with_history(with_slots(read, settings.slots), self.settings.reply)
        found = with_paraphrases(found, settings.tools_paraphrase)
        return with_frozen(found, settings.frozen)

    @cached_property
    def lexicon(self) -> Lexicon:
        """The shipped words for the perturbations; a suite may bring its own."""
        return load_lexicon()

    @property
    def worker(self) -> Mapping[str, Any]:
        """What xdist told this process, where it is one of its workers."""
        told: Mapping[str, Any] = getattr(self.config, "workerinput", {})
        return told

    @property
    def workers(self) -> int:
        """How many of xdist's workers there are, where this process is one; 0 = it is none."""
        return int(self.worker.get("workercount", 0))

    @property
    def sends_results(self) -> bool:
        """Whether another process reports: that of xdist, or the one that this one left."""
        return self.workers > 0 or os.getpid() != self._pid

    @property
    def judges_nothing(self) -> bool:
        """Whether this process is a worker, or only collects."""
        return self.workers > 0 or bool(self.config.getoption("collectonly"))

    def tests_its_tracker(self, *others: object) -> bool:
        """Whether this run is to test a tracker that the settings name.

        ``others`` show that where only an ini file names it: tests about turns, results.
        """
        return self.settings.tracker.model is not None and (
            self.model_on_command_line or any(others)
        )

    @cached_property
    def stored(self) -> StoredRun | None:
        """The folder of results that is judged in the place of a run, where one is named."""
        path = self.settings.output.results
        return None if path is None else stored_run(Path(path))

    def relations(self, settings: Settings) -> tuple[Relation, ...]:
        """Return the relations that some settings name, in their order.

        Of all that ship (``all``), those that can say something about a turn of the data.
        """
        named = settings.variant.relation
        key = named, settings.reply.outcome
        if key not in self._relations:
            found = relations_named(named, self.data, settings.reply.outcome)
            if named == ALL:
                found = tuple(relation for relation in found if not self.hopeless(relation))
            self._relations[key] = found
        return self._relations[key]

    @property
    def left_out(self) -> str:
        """Say which of the relations that ship ``all`` does not run, and why; ``""`` elsewhere."""
        if self.settings.variant.relation != ALL or self.mistake is not None or self.stored:
            return ""
        used = self.relations(self.settings)
        outcome = self.settings.reply.outcome
        names = [one.name for one in relations_named(ALL, outcome=outcome) if one not in used]
        text = f"all leaves out {REPEATS}: it repeats metamorphic where the clean answer is right"
        apart = ", ".join(names)
        return f"{text}; relations that apply to no turn of the data: {apart}" if names else text

    @property
    def not_own_questions(self) -> str:
        """Say that a bot that replies is asked the shipped questions; ``""`` elsewhere."""
        if KINDS[self.settings.reply.outcome].words.values or self.settings.data.data != SAMPLE:
            return ""
        return (
            "the questions are those of the shipped dialogues, about restaurants and hotels: "
            "name your own with --dst-data=FILE"
        )

    def comparison(self, settings: ReplySettings) -> Comparison:
        """Return what says of two answers whether they are the same."""
        if settings not in self._comparisons:
            self._comparisons[settings] = self._compared_by(settings)
        return self._comparisons[settings]

    def _compared_by(self, settings: ReplySettings) -> Comparison:
        if KINDS[settings.outcome].words.values:
            return comparison_of_values(self.data, settings, self.search_path, self._table_rules)
        return comparison_by_name(settings.compare, settings, self.search_path, self.judges)

    @cached_property
    def _table_rules(self) -> list[str]:
        return table_rules_of(self.config)

    @cached_property
    def judges(self) -> Judges:
        """The language models that this process asks whether two replies say the same."""
        return Judges(self.workers)

    @property
    def search_path(self) -> tuple[str, ...]:
        """The folders in which modules of the user's are looked for first."""
        folders = (self.config.invocation_params.dir, self.config.rootpath)
        return tuple(dict.fromkeys(map(str, folders)))

    def hopeless(self, relation: Relation) -> str:
        """Say why a relation can say nothing about the data; ``""`` where it can."""
        if relation.name not in self._hopeless:
            reply = self.settings.reply
            # A recorded reply is no right one: there the answers alone can tell.
            known = reply if KINDS[reply.outcome].has_exact_labels else None
            seed = self.settings.variant.seed
            scenes = Scenes(self.data, self.lexicon, self._guards, seed, known)
            self._hopeless[relation.name] = why_hopeless(relation, self.data, scenes)
        return self._hopeless[relation.name]

    def turns(self, settings: Settings) -> list[tuple[Dialogue, int]]:
        """Return the turns that are run with some settings, dialogue by dialogue.

        They are those that are drawn, or the part of their dialogues that the settings name.
        """
        part = part_of(self.drawn(settings), settings.data.shard)
        return [(dialogue, index) for dialogue, last in part for index in range(last + 1)]

    def drawn(self, settings: Settings) -> Sequence[tuple[Dialogue, int]]:
        """Return the dialogues that are drawn with some settings, each with its last turn."""
        wanted = settings.data
        return sample_turns(self.data, wanted.turns, settings.variant.seed, wanted.domains)

    @property
    def sampled(self) -> DialogueSet:
        """The data with only the turns that are drawn."""
        wanted, seed = self.settings.data, self.settings.variant.seed
        return sample_set(self.data, wanted.turns, seed, wanted.domains)

    def first_contexts(self) -> list[Context]:
        """Return what a tracker is asked for before it is tested: in every part the same."""
        turns = (
            (dialogue, index)
            for dialogue, last in self.drawn(self.settings)
            for index in range(last + 1)
        )
        first = islice(turns, PREFLIGHT_CONTEXTS)
        return [dialogue.context(index) for dialogue, index in first]

    def check(self, settings: Settings) -> None:
        """Refuse settings that contradict the data; those of a folder of results were tested."""
        if settings not in self._checked and self.stored is None:
            self.drawn(settings)
            comparison = self.comparison(settings.reply)
            for one in each_of(settings, self.relations(settings)):
                CampaignSpec.of(
                    one.settings.variant,
                    self.data,
                    self.lexicon,
                    reply=settings.reply,
                    comparison=comparison,
                )
                if why := self.hopeless(one.relation):
                    raise UserError(why)
            self._checked.add(settings)

    @cached_property
    def mistake(self) -> UserError | None:
        """What is wrong with the settings of the session, which is no mistake of any test."""
        try:
            self.check(self.settings)
        except UserError as error:
            return error
        return None

    @cached_property
    def _relations(self) -> dict[tuple[str, str], tuple[Relation, ...]]:
        """As they are named, and what of an answer is tested -> the relations."""
        return {}

    @cached_property
    def _hopeless(self) -> dict[str, str]:
        """Name of a relation -> why it can say nothing about the data."""
        return {}

    @cached_property
    def _comparisons(self) -> dict[ReplySettings, Comparison]:
        return {}

    @cached_property
    def _guards(self) -> Locks:
        locks = self.settings.variant.lock
        return Locks(self.lexicon, self.data.ontology, self.data.cue_words, locks)

    @cached_property
    def _checked(self) -> set[Settings]:
        return set()
