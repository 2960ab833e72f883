"""What was found at whole dialogues, kept beside the predictions that it rests on.

Where a second run does what the first one did, neither are its variants made again nor are they
judged. Results may stand for a dialogue only where all that they depend on is known to be the same:
this is so of trackers whose predictions are kept and that repeat themselves, of belief states, and
of words, relations and operators that ship, and of searches that ship or say what their code is.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cache
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Final

import numpy as np

from pytest_dstfuzz.campaign.answers import Answer, TrackerFailure
from pytest_dstfuzz.campaign.cache import PredictionCache, restarts
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, DialogueSet
from pytest_dstfuzz.files import digest_of
from pytest_dstfuzz.garbage import gc_paused
from pytest_dstfuzz.json_data import json_decoder, json_encoded, to_json
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon, load_lexicon
from pytest_dstfuzz.relations.registry import is_shipped
from pytest_dstfuzz.search.registry import SEARCHES, trained
from pytest_dstfuzz.transformations import find_operator

#: Fields of `DialogueSet` that decide nothing, and the one that is gone over.
_NOT_DATA: Final = ("dialogues", "layout", "notes")
#: A dialogue, and the index of its last turn that was run.
_Planned = tuple[Dialogue, int]


@dataclass(frozen=True, slots=True)
class KeptDialogue:
    """What was found at a dialogue."""

    #: How many answers it rests on.
    answers: int
    results: list[TurnResult]


_KEPT: Final = json_decoder(KeptDialogue)


class ResultCache:
    """The results of dialogues under the rules of one campaign; ``scope`` tells it from others."""

    def __init__(self, cache: PredictionCache, scope: str) -> None:
        self._cache = cache
        self._scope = scope

    def recall(self, planned: Sequence[_Planned]) -> dict[str, KeptDialogue]:
        """Return what is kept, by the ids of dialogues."""
        found = self._cache.texts({one[0].id: self._key(one) for one in planned})
        kept: dict[str, KeptDialogue] = {}
        with gc_paused():
            for name, text in found.items():
                # One that cannot be read is made again.
                with suppress(ValueError):
                    kept[name] = _KEPT(text)
        return kept

    def keep(
        self, found: Sequence[tuple[_Planned, Mapping[Context, Answer], list[TurnResult]]]
    ) -> None:
        """Keep results with the answers that they rest on, where each of these is kept too."""
        texts = [
            (self._key(planned), text)
            for planned, answers, results in found
            if not any(isinstance(one, TrackerFailure) for one in answers.values())
            and not any(map(restarts, answers))
            and (text := _encoded(KeptDialogue(len(answers), results))) is not None
        ]
        self._cache.keep_texts(texts)

    def _key(self, planned: _Planned) -> list[object]:
        dialogue, last = planned
        return ["results", self._scope, dialogue.id, last]


def kept_results(
    cache: PredictionCache | None, rules: CampaignSpec, lexicon: Lexicon
) -> ResultCache | None:
    """Return where the results of a campaign are kept; ``None`` = nothing may be kept of them.

    Args:
        cache: that of its tracker.
        rules: of the campaign, its search made by its name.
        lexicon: its words.
    """
    # Words of a suite's own may change under the same fingerprint.
    if cache is None or not _depends_on_known(rules) or lexicon is not load_lexicon():
        return None
    data, code = cache.digest_of(rules.data, _digest_of_data), _digest_of_code()
    if data is None or code is None:
        return None
    noise = rules.perturber.noise if rules.settings.noisy else None
    policy = trained(rules.settings.search)
    parts = [
        code,
        data,
        lexicon.fingerprint,
        None if noise is None else [noise.model.name, noise.model.fingerprint, noise.rate],
        "" if policy is None else [policy.fingerprint, policy.code],
        rules.relation.name,
        to_json(rules.settings),
        to_json(rules.reply),
        rules.repeats,
    ]
    text = _encoded(parts)
    return None if text is None else ResultCache(cache, hashlib.sha256(text).hexdigest())


def _depends_on_known(rules: CampaignSpec) -> bool:
    """Say whether nothing but what ships and what is kept decides what is found."""
    operators = (
        find_operator(item.name, name)
        for item, names in zip(*rules.settings.selection, strict=True)
        for name in names
    )
    return (
        rules.kind.has_slots
        and rules.folding.exact
        and rules.repeats
        and not rules.decider.again
        and is_shipped(rules.relation)
        and _is_known(rules.settings.search)
        and all(one.shipped for one in operators)
    )


def _is_known(search: str) -> bool:
    """Say whether a search ships, or tells its code from any other."""
    if search in SEARCHES.shipped:
        return True
    found = trained(search)
    return found is not None and bool(found.code)


@cache
def _digest_of_code() -> str | None:
    """Return what tells this code, and what it counts and draws with, from any other.

    ``None`` where a file of it cannot be read, or there is none.
    """
    package = Path(__file__).parents[1]
    tables = package / "resources"
    files = [*package.rglob("*.py")]
    for end in ("json", "tsv", "txt"):
        files += tables.rglob(f"*.{end}")
    used = [platform.python_version(), np.__version__, version("jellyfish"), version("msgspec")]
    try:
        return " ".join([digest_of(sorted(files)), *used]) if files else None
    except OSError:
        return None


def _digest_of_data(data: DialogueSet) -> str | None:
    """Return what tells data from any other; ``None`` where a text of theirs has no form there."""
    names = (one.name for one in fields(data))
    about = {name: getattr(data, name) for name in names if name not in _NOT_DATA}
    digest = hashlib.sha256()
    for part in chain[object]([about], data.dialogues):
        text = _encoded(part)
        if text is None:
            return None
        digest.update(text + b"\n")
    return digest.hexdigest()


def _encoded(value: object) -> bytes | None:
    try:
        return json_encoded(value)
    except UnicodeEncodeError:  # Half of a surrogate pair.
        return None
