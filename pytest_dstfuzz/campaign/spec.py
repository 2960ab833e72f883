"""The rules of a campaign, built once from its settings."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from functools import cached_property

from pytest_dstfuzz.campaign.answers import AS_GIVEN, Folding
from pytest_dstfuzz.campaign.deciding import ONCE, Decider
from pytest_dstfuzz.comparisons.comparison import EXACT, Comparison
from pytest_dstfuzz.config import JUDGE, PROFILES, ReplySettings, VariantSettings
from pytest_dstfuzz.dialogue.calls import AnswerPath
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.kinds.kind import AnswerKind
from pytest_dstfuzz.perturb.draft import Source
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.relations.registry import relation_for
from pytest_dstfuzz.relations.relation import Relation, Scenes
from pytest_dstfuzz.search.protocol import Search
from pytest_dstfuzz.search.registry import search_by_name

__all__ = ["CampaignSpec"]


class LabelledNames(Container[str]):
    """The slots, or the tools and arguments, that any label of the data names."""

    def __init__(self, kind: AnswerKind, data: DialogueSet) -> None:
        """Store the data. Its labels are read when a name is looked for."""
        self._kind, self._data = kind, data

    def __contains__(self, path: object) -> bool:
        """Return whether a label names the slot or the part of a call."""
        return AnswerPath.of(str(path)).part[1] in self._names

    @cached_property
    def _names(self) -> frozenset[str]:
        labels = (
            self._kind.label(dialogue, index)
            for dialogue in self._data.dialogues
            for index in range(len(dialogue.turns))
        )
        paths = {path for label in labels for path in label or ()}
        return frozenset(AnswerPath.of(path).part[1] for path in paths)


@dataclass(frozen=True, slots=True)
class CampaignSpec:
    """The rules of a campaign, which apply to every dialogue."""

    settings: VariantSettings
    data: DialogueSet
    relation: Relation
    search: Search
    perturber: Perturber
    #: Builds the scenes that a relation receives.
    scenes: Scenes
    #: Combines several answers to one context.
    decider: Decider = ONCE
    #: Whether a few contexts are requested again, see `deciding`.
    repeats: bool = False
    #: The tested part of an answer.
    reply: ReplySettings = field(default_factory=ReplySettings)
    #: Decides whether two answers agree.
    folding: Folding = AS_GIVEN
    #: The slots, tools and arguments that labels name; ``None`` = all.
    labelled: Container[str] | None = None
    #: Prepared turns, for a round that the search learns from. The lessons need each turn again.
    #: `None` prepares each turn anew.
    sources: dict[tuple[object, ...], Source] | None = None

    @property
    def by_density(self) -> bool:
        """Whether the variants of a turn are a full sample from its noise model."""
        if self.own_edits:
            return False
        settings = self.settings
        return self.search.by_density and not settings.stop_at_first and settings.variant is None

    @property
    def conversations(self) -> tuple[int, ...]:
        """The numbers of the contexts that run as whole conversations with slips.

        With the attack design ``cumulative``, the noise model draws all turns of such a context.
        """
        if not self.by_density or self.settings.attack != "cumulative":
            return ()
        return tuple(filter(self.search.samples, range(self.settings.variants)))

    @property
    def own_edits(self) -> bool:
        """Whether the relation makes the edits. If so, search and attack design are ignored."""
        return self.relation.edits == "own"

    @property
    def learns(self) -> bool:
        """Whether the relation or search is adaptive, whichever makes the edits."""
        return self.relation.adaptive if self.own_edits else self.search.adaptive

    @property
    def kind(self) -> AnswerKind:
        """The tested kind of answer."""
        return KINDS[self.reply.outcome]

    @property
    def adds_up(self) -> bool:
        """Whether answers accumulate over turns. States and the calls of a rollout do."""
        return self.kind.adds_up(self.reply.history)

    def first_of(self, last: int) -> int:
        """Return the first turn with a result, if ``last`` is the last turn of the dialogue."""
        return last if self.relation.unit == "dialogue" else 0

    @classmethod
    def of(  # noqa: PLR0913 - all but the first four are given by their names
        cls,
        settings: VariantSettings,
        data: DialogueSet,
        lexicon: Lexicon,
        search: Search | None = None,
        *,
        relation: Relation | None = None,
        decider: Decider = ONCE,
        repeats: bool = False,
        reply: ReplySettings | None = None,
        comparison: Comparison = EXACT,
    ) -> CampaignSpec:
        """Build the rules of ``settings``. A given search or relation replaces the named one."""
        reply = reply or ReplySettings()
        relation = relation_for(relation or settings.relation, data, reply.outcome)
        own = relation.edits == "own"
        if search is None:
            k = settings.transformations
            search = search_by_name(settings.search, seed=settings.seed, k=k)
        if search.by_density and not own and not PROFILES[settings.validity].noise:
            raise UserError(
                f"the search {search.name} samples the slips of people: it needs the profile "
                f"natural (--dst-validity=natural), not {settings.validity}"
            )
        if JUDGE in reply.context_checks and comparison.context_judge is None:
            raise UserError(
                f"the context check {JUDGE!r} needs a chat model: name it in --dst-compare, as in "
                "--dst-compare=numbers,judge:openai+http://localhost:8000/v1"
            )
        perturber = Perturber.of(settings, data, lexicon, order=search.order)
        folding = AS_GIVEN if comparison.exact else Folding(comparison)
        scenes = Scenes(
            data,
            lexicon,
            perturber.guards,
            settings.seed,
            reply,
            settings.variants,
            folding.agree,
            comparison.context_judge,
        )
        return cls(
            settings,
            data,
            relation,
            search,
            perturber,
            scenes,
            decider,
            repeats,
            reply,
            folding,
            LabelledNames(KINDS[reply.outcome], data),
        )
