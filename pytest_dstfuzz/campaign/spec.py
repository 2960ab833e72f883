"""What a campaign does to every dialogue, built once from its settings."""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_dstfuzz.campaign.answers import AS_GIVEN, Folding
from pytest_dstfuzz.campaign.deciding import ONCE, Decider
from pytest_dstfuzz.comparisons.comparison import EXACT, Comparison
from pytest_dstfuzz.config import PROFILES, ReplySettings, VariantSettings
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.kinds.kind import AnswerKind
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.relations.registry import relation_for
from pytest_dstfuzz.relations.relation import Relation, Scenes
from pytest_dstfuzz.search.protocol import Search
from pytest_dstfuzz.search.registry import search_by_name

__all__ = ["CampaignSpec"]


@dataclass(frozen=True, slots=True)
class CampaignSpec:
    """What a campaign does to every dialogue, built once from its settings."""

    settings: VariantSettings
    data: DialogueSet
    relation: Relation
    search: Search
    perturber: Perturber
    #: Makes what a relation gets to see.
    scenes: Scenes
    #: What several answers to one context come to.
    decider: Decider = ONCE
    #: Whether a few contexts are asked once more, see `deciding`.
    repeats: bool = False
    #: What of an answer is tested.
    reply: ReplySettings = field(default_factory=ReplySettings)
    #: When two answers count as one.
    folding: Folding = AS_GIVEN

    @property
    def by_density(self) -> bool:
        """Whether the variants of a turn are a whole sample of what people make of it."""
        if self.own_edits:
            return False
        settings = self.settings
        return self.search.by_density and not settings.stop_at_first and settings.variant is None

    @property
    def own_edits(self) -> bool:
        """Whether the relation makes the edits: then neither search nor attack design counts."""
        return self.relation.edits == "own"

    @property
    def learns(self) -> bool:
        """Whether whoever makes the edits wants to know what earlier ones showed."""
        return self.relation.adaptive if self.own_edits else self.search.adaptive

    @property
    def kind(self) -> AnswerKind:
        """What of an answer is tested."""
        return KINDS[self.reply.outcome]

    @property
    def adds_up(self) -> bool:
        """Whether an answer is a running total: a state, or all calls of a rollout."""
        return self.kind.adds_up(self.reply.history)

    def first_of(self, last: int) -> int:
        """Return the first turn of a dialogue that has a result, where ``last`` is the last one."""
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
        """Build the rules of ``settings``; a search or relation given stands for the named one."""
        reply = reply or ReplySettings()
        relation = relation_for(relation or settings.relation, data, reply.outcome)
        own = relation.edits == "own"
        if search is None:
            k = settings.transformations
            search = search_by_name(settings.search, seed=settings.seed, k=k)
        if search.by_density and not own and not PROFILES[settings.validity].noise:
            raise UserError(
                f"the search {search.name} draws what people make of a turn: it needs the profile "
                f"natural (--dst-validity=natural), not {settings.validity}"
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
        )
