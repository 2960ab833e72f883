"""One campaign of an experiment, and what tells it from every other one."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pytest_dstfuzz.campaign.engine import CampaignEngine, predictor_for
from pytest_dstfuzz.campaign.events import Event, TurnDone
from pytest_dstfuzz.config import Settings, names_of, settings_json
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.perturb.action import inertia
from pytest_dstfuzz.perturb.engine import Perturber
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

    def run(self, settings: Settings, done: Callable[[int], None] | None = None) -> CampaignFigures:
        """Run one campaign over all the dialogues, with a predictor of its own.

        ``done`` is told after each turn how many are done.

        Raises:
            UserError: the settings cannot be used.
            GivenUpError: nobody answers any more.
        """
        started, turns = time.monotonic(), 0

        def listen(event: Event) -> None:
            nonlocal turns
            if isinstance(event, TurnDone):
                turns += 1
                if done is not None:
                    done(turns)

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
        figures = all_turn_figures(results, self._veto(settings))
        return CampaignFigures(figures, inertia(search.actions), time.monotonic() - started)

    def _veto(self, settings: Settings) -> StrictVeto | None:
        if settings.variant.validity == "strict":
            return None
        strict = replace(settings.variant, validity="strict")
        perturber = Perturber.of(strict, self.data, load_lexicon())
        return StrictVeto(perturber, self.data)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What all campaigns of an experiment have in common, so that others are not taken for them.

    Attributes:
        code: digest of the code and the shipped resources that outcomes depend on.
        tracker: how it did on the data: it may be an object whose code nobody sees.
        dialogues: digest of the dialogues.
        checkpoint: digest of the weights that were named.
    """

    code: str
    tracker: tuple[tuple[str, int, int, int], ...]
    dialogues: str
    checkpoint: str

    @classmethod
    def of(
        cls, data: DialogueSet, evaluations: Sequence[Evaluation], checkpoint: str | None
    ) -> Fingerprint:
        """Take the fingerprint of a tracker and dialogues."""
        code = [path for part in _CODE for path in _files(_PACKAGE / part)]
        return cls(
            code=_digest([path for path in code if path.suffix not in (".pyc", ".md")]),
            tracker=tuple(
                (item.split, item.turns, item.right, item.right_slots) for item in evaluations
            ),
            dialogues=hashlib.sha256(repr(data).encode("utf-8")).hexdigest(),
            checkpoint=_digest(_files(Path(checkpoint))) if checkpoint else "",
        )

    def key(self, settings: Settings) -> dict[str, Any]:
        """Return what tells a campaign from every other one, as JSON."""
        agent = is_agent(settings.variant.search)
        return {
            **{
                name: value
                for name, value in settings_json(settings).items()
                if name not in _PLACES
            },
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


def _digest(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.name.encode("utf-8") + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


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
