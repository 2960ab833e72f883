"""One campaign of an experiment, and what tells it from every other one."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_dstfuzz.campaign.engine import CampaignEngine, predictor_for
from pytest_dstfuzz.campaign.events import Event, TurnDone
from pytest_dstfuzz.config import Settings, VariantSettings, names_of, settings_json
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.files import digest_of
from pytest_dstfuzz.perturb.action import inertia
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.types import Action
from pytest_dstfuzz.research.campaign_figures import (
    CampaignFigures,
    StrictVeto,
    all_turn_figures,
)
from pytest_dstfuzz.search.policy import is_agent, named_policy
from pytest_dstfuzz.search.protocol import Feedback, Proposal, Search, SearchTask, TurnSearch
from pytest_dstfuzz.search.registry import search_by_name
from pytest_dstfuzz.trackers.evaluate import Evaluation
from pytest_dstfuzz.trackers.tracker import Tracker
from pytest_dstfuzz.training.right_dialogues import Paced, Say

_PACKAGE: Final = Path(__file__).parents[1]
#: What the outcome of a campaign depends on.
_CODE: Final = (
    "agents",
    "campaign",
    "dialogue",
    "research/campaign_figures.py",
    "training/right_dialogues.py",
    "perturb",
    "relations",
    "resources",
    "search",
    "trackers",
)
#: Settings that say where something lies, or how it is reached; what it is, is in the key.
_PLACES: Final = {"search", *names_of("place")} - {"slot_map", "prompt", "device"}
#: Dialogue, turn, number of the variant, draw: what an action was taken for.
_Place = tuple[str, int, int, int]


@dataclass(frozen=True, slots=True)
class CampaignRunner:
    """Runs campaigns on some dialogues."""

    tracker: Tracker
    data: DialogueSet

    def run(
        self, settings: Settings, say: Say | None = None, name: str | None = None
    ) -> CampaignFigures:
        """Run one campaign over all the dialogues, with a predictor of its own.

        ``say`` is told now and then how many turns are done, under the campaign's ``name``.
        """
        started, done, turns = time.monotonic(), 0, self.data.turn_count()
        tell = say and Paced(say)

        def listen(event: Event) -> None:
            nonlocal done
            done += isinstance(event, TurnDone)
            if tell and isinstance(event, TurnDone):
                tell(f"{name or title(settings.variant)}: {done} of {turns} turns")

        k = settings.variant.transformations
        # The clean contexts are calls of every search.
        predictor = predictor_for(settings, self.data, self.tracker)
        search = Recording(search_by_name(settings.variant.search, seed=settings.variant.seed, k=k))
        campaign = CampaignEngine(
            settings,
            self.data,
            predictor,
            load_lexicon(),
            plan=[(dialogue, len(dialogue.turns) - 1) for dialogue in self.data.dialogues],
            listener=listen,
            search=search,
        )
        results = list(campaign.run())
        predictor.refuse_if_given_up()
        strict = settings.variant.validity == "strict"
        veto = None if strict else StrictVeto(settings.variant, self.data)
        figures = all_turn_figures(results, veto)
        return CampaignFigures(figures, inertia(search.actions), time.monotonic() - started)


def title(settings: VariantSettings) -> str:
    """Name a campaign in a line of progress."""
    until = ", until broken" if settings.stop_at_first else ""
    return (
        f"{settings.validity}, {settings.search}, k = {settings.transformations}, "
        f"{settings.variants} variants{until}, seed {settings.seed}"
    )


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What all campaigns of an experiment have in common, so that others are not taken for them."""

    code: str  #: Digest of the code and the shipped resources that outcomes depend on.
    #: How it did on the data: it may be an object whose code nobody sees.
    tracker: tuple[tuple[str, int, int, int], ...]
    dialogues: str  #: Digest of the dialogues.
    checkpoint: str  #: Digest of the weights that were named.

    @classmethod
    def of(
        cls, data: DialogueSet, evaluations: Sequence[Evaluation], checkpoint: str | None
    ) -> Fingerprint:
        """Take the fingerprint of a tracker and dialogues."""
        code = [path for part in _CODE for path in _files(_PACKAGE / part)]
        return cls(
            code=digest_of(path for path in code if path.suffix not in (".pyc", ".md")),
            tracker=tuple(
                (item.split, item.turns, item.right, item.right_slots) for item in evaluations
            ),
            dialogues=hashlib.sha256(repr(data).encode("utf-8")).hexdigest(),
            checkpoint=digest_of(_files(Path(checkpoint))) if checkpoint else "",
        )

    def key(self, settings: Settings) -> dict[str, Any]:
        """Return what tells a campaign from every other one, as JSON."""
        agent, given = is_agent(settings.variant.search), settings_json(settings)
        return {
            **{name: value for name, value in given.items() if name not in _PLACES},
            "search": "agent" if agent else settings.variant.search,
            "policy": named_policy(settings.variant.search).fingerprint if agent else "",
            "code": self.code,
            "tracker": [list(item) for item in self.tracker],
            "dialogues": self.dialogues,
            "checkpoint": self.checkpoint,
        }


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(item for item in path.rglob("*") if item.is_file())
    return [path] if path.is_file() else []


class Recording:
    """Hands everything on to another search and keeps the actions of its proposals."""

    def __init__(self, search: Search) -> None:
        self.name, self.order, self.adaptive = search.name, search.order, search.adaptive
        self.context_variant = search.context_variant
        self._begin = search.turn
        # By place, so that a turn that is run again is not counted twice.
        self._taken: dict[_Place, Action] = {}

    @property
    def actions(self) -> tuple[Action, ...]:
        """The action of every draw so far, redraws included, sorted by what it was for."""
        return tuple(action for _, action in sorted(self._taken.items(), key=lambda item: item[0]))

    def turn(self, task: SearchTask) -> RecordingTurn:
        """Begin a turn."""
        return RecordingTurn(self._begin(task), (task.dialogue.id, task.turn_index), self._taken)


@dataclass(frozen=True, slots=True)
class RecordingTurn:
    """The attempts of a `Recording` at one turn."""

    attempts: TurnSearch
    place: tuple[str, int]
    taken: dict[_Place, Action]

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:
        """Return what the search proposes."""
        proposal = self.attempts.propose(number, draw, seen)
        self.taken[(*self.place, number, draw)] = proposal.action
        return proposal
