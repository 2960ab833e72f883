"""A campaign of scripted variants, and the real lexicon."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from toybots import FussyBot, Play, WordBot, data_of, scripted

from pytest_dstfuzz.campaign.engine import CampaignEngine
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon, load_lexicon


@pytest.fixture(scope="session")
def lexicon() -> Lexicon:
    return load_lexicon()


@pytest.fixture(scope="session")
def play(lexicon: Lexicon) -> Play:
    """Build a scripted campaign: ``play(dialogue, texts, bot, attack=...)``."""

    def build(dialogue: Any, texts: Any, bot: Any = None, **given: Any) -> SimpleNamespace:
        dialogues = dialogue if isinstance(dialogue, tuple) else (dialogue,)
        ontology = {"ontology": given.pop("ontology")} if "ontology" in given else {}
        data = data_of(*dialogues, **ontology)
        extra = {name: given.pop(name) for name in ("window", "tracker") if name in given}
        search = given.pop("by", None)
        settings = Settings.of(
            **{"variants": 1, "attack": "cumulative", "validity": "strict", **given}
        )
        tracker = extra.pop("tracker", None) or bot or WordBot()
        events: list[Any] = []
        campaign = CampaignEngine(
            settings,
            data,
            tracker,
            lexicon,
            plan=[(d, len(d.turns) - 1) for d in dialogues],
            listener=events.append,
            **extra,
        )
        script = scripted(campaign, texts, settings, data, search)
        return SimpleNamespace(
            campaign=campaign, bot=tracker, events=events, script=script, data=data
        )

    return build


@pytest.fixture(scope="session")
def play_any(play: Play) -> Play:
    """Like ``play``, with a tracker that fails on some utterances."""
    return lambda dialogue, texts, **given: play(dialogue, texts, FussyBot(), **given)
