"""The scorer of the search ``bandit`` in numpy: features, network and file.

A scorer estimates the probability that an edit changes the value of a slot.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from pytest_dstfuzz import __version__
from pytest_dstfuzz.agents.policies import Floats, bucket
from pytest_dstfuzz.dialogue.dialogues import DONTCARE
from pytest_dstfuzz.json_data import from_json
from pytest_dstfuzz.lexicon import Lexicon, load_lexicon
from pytest_dstfuzz.models.weights import check_shapes, read_weights, write_weights
from pytest_dstfuzz.perturb.draft import FREE, KEPT, LOCKED, TYPO, Source
from pytest_dstfuzz.perturb.values import canonical
from pytest_dstfuzz.perturb.words import Variant, word_list
from pytest_dstfuzz.search.candidates import Candidate, find_mention, made_of
from pytest_dstfuzz.trackers.tracker import Prediction

#: Minimum impurity of a slot without a value to be scored separately.
_UNSURE: Final = 0.02
#: Placeholder for all other slots together.
REST: Final = ""
_SLOT_BUCKETS, _WORD_BUCKETS, _SIDE_BUCKETS, _OPERATOR_BUCKETS = 16, 128, 64, 24
#: Number of distance classes in words: 0 to 3, further, and none.
_RINGS: Final = 6
_ROLES: Final = (FREE, TYPO, LOCKED, KEPT)
_TIME: Final = re.compile(r"\d{1,2}[:.]\d\d")
_FAMILIES: Final = ("yes-no", "number", "any", "name", "choice", "none")
#: A value with more words counts as a name.
_SHORT: Final = 2
#: Number of features about earlier attempts, per slot and edit.
_TRIED: Final = 8
#: Higher numbers of attempts are clipped to this one, the maximum in training.
_MANY: Final = 12

#: Sizes of the features: of a slot and its turn, of an edit, and of a pair of slot and edit.
SLOT_SIZE: Final = 16 + len(_FAMILIES) + _SLOT_BUCKETS
EDIT_SIZE: Final = 12 + len(_ROLES) + _RINGS + _OPERATOR_BUCKETS + _WORD_BUCKETS + 2 * _SIDE_BUCKETS
PAIR_SIZE: Final = 2 * _RINGS + 4 + _TRIED


class ScoredAttempt(NamedTuple):
    """An earlier variant of a turn, and the tracker's answer to it."""

    variant: Variant
    answer: Prediction | None  #: ``None`` if the tracker was not asked or failed.
    broken: bool = False  #: Whether the variant violated the relation.


class SlotView:
    """Computes the scorer's features for one turn, for each slot and each candidate edit."""

    def __init__(
        self,
        source: Source,
        candidates: Sequence[Candidate],
        clean: Prediction,
        system: str,
        turn_index: int,
    ) -> None:
        self.candidates = tuple(candidates)
        self._clean = clean
        self._source = source
        unsure = [slot for slot, value in (clean.impurities or {}).items() if value >= _UNSURE]
        #: Slots that are scored separately, and `REST`.
        self.slots = (*sorted({*clean.state, *unsure}), REST)
        words = [canonical(token.lower) for token in source.draft.tokens]
        self._mentions = [find_mention(words, clean.state.get(slot)) for slot in self.slots]
        #: [slots, SLOT_SIZE], in [0, 2].
        self.of_slots = self._slots(words, system, turn_index)
        lexicon = load_lexicon()
        rows = [_of_edit(source, one, lexicon) for one in candidates]
        #: [candidates, EDIT_SIZE], in [0, 1.2].
        self.of_edits: Floats = np.array(rows, np.float32).reshape(-1, EDIT_SIZE)
        self._untried = self._pairs(words)
        self._known: dict[str, Floats] = {}

    def _slots(self, words: Sequence[str], system: str, turn_index: int) -> Floats:
        state, impurities = self._clean.state, self._clean.impurities or {}
        values = list(impurities.values())
        turn = [
            _scaled(max(values, default=0.0), 4),
            _scaled(sum(values) / max(len(values), 1), 5),
            min(len(words), 40) / 20,
            min(turn_index, 10) / 10,
            min(len(state), 12) / 12,
        ]
        said = [canonical(word) for word in word_list(system)]
        rows = []
        for slot, mention in zip(self.slots, self._mentions, strict=True):
            value, (domain, name) = state.get(slot), _parts(slot)
            others = [(one, held) for one, held in state.items() if one != slot]
            impurity, family = impurities.get(slot, 0.0), _family(value)
            row = [
                value is not None,
                _scaled(impurity, 4),
                impurity,
                slot == REST,
                bool(mention),
                bool(find_mention(said, value)),
                bool(domain) and canonical(domain) in words,
                bool(domain) and canonical(domain) in said,
                min(sum(_parts(one)[0] == domain for one, _ in others), 5) / 5,
                any(held == value for _, held in others),
                min(len(word_list(value or "")), 5) / 5,
                *turn,
                *(family == one for one in _FAMILIES),
            ]
            rows.append([*row, *_one_hot(bucket(name, _SLOT_BUCKETS), _SLOT_BUCKETS)])
        return np.array(rows, np.float32)

    def _pairs(self, words: Sequence[str]) -> Floats:
        """Return the features of pairs before any attempt: [slots, candidates, PAIR_SIZE]."""
        found = np.zeros((len(self.slots), len(self.candidates), PAIR_SIZE), np.float32)
        for number, (slot, mention) in enumerate(zip(self.slots, self._mentions, strict=True)):
            domain, name = _parts(slot)
            names = {canonical(word) for word in word_list(re.sub(r"[-_.]", " ", name))} - {""}
            for row, one in zip(found[number], self.candidates, strict=True):
                first, last = one.words[0], one.words[-1]
                ahead = min((place - last for place in mention if place >= last), default=99)
                back = min((first - place for place in mention if place <= first), default=99)
                nearest = _ring(ahead) if ahead <= back else _RINGS + _ring(back)
                row[nearest if mention else 2 * _RINGS] = 1.0
                touched = {words[place] for place in one.words}
                row[2 * _RINGS + 1 : 2 * _RINGS + 4] = [
                    not names.isdisjoint(touched),
                    bool(domain) and canonical(domain) in touched,
                    bool(mention) and first < mention[0] <= last + 3,
                ]
        return found

    def pairs(self, attempts: Iterable[ScoredAttempt]) -> Floats:
        """Return the features of pairs of slot and edit: [slots, candidates, PAIR_SIZE].

        The features depend on the earlier ``attempts`` that touched the words of the edit. They say
        whether the slot's value changed in these attempts, and how much its impurity rose. The
        values are in [-1, 1], and negative if the impurity fell.
        """
        every = list(attempts)
        found, at = self._untried.copy(), PAIR_SIZE - _TRIED
        found[:, :, at] = math.log1p(min(len(every), _MANY)) / math.log1p(_MANY)
        answered = [(one.variant, one.answer) for one in every if one.answer is not None]
        if not answered:
            return found
        made = np.stack([self.made_of(variant) for variant, _ in answered])
        touched = np.array([self._touches(variant) for variant, _ in answered], np.float32)
        rises = np.array([self._rises(answer) for _, answer in answered], np.float32)
        moved = np.array([self.changed(answer) for _, answer in answered], np.float32)
        often = touched.sum(axis=0)
        found[:, :, at + 1] = np.minimum(often, 4.0) / 4
        found[:, :, at + 2] = np.minimum(made.sum(axis=0), 2.0) / 2
        found[:, :, at + 3] = rises.T @ touched / np.maximum(often, 1.0)
        found[:, :, at + 4] = (rises[:, :, None] * touched[:, None, :]).max(axis=0)
        found[:, :, at + 5] = rises.max(axis=0)[:, None]
        found[:, :, at + 6] = moved.max(axis=0)[:, None]
        found[:, :, at + 7] = (moved[:, :, None] * made[:, None, :]).max(axis=0)
        return found

    def made_of(self, variant: Variant) -> Floats:
        """Return for each candidate edit 1 if a variant contains it, otherwise 0: [candidates]."""
        if variant.text not in self._known:
            self._known[variant.text] = np.array(made_of(self.candidates, variant), np.float32)
        return self._known[variant.text]

    def _touches(self, variant: Variant) -> list[bool]:
        made = zip(self.candidates, self.made_of(variant), strict=True)
        words = {word for one, is_made in made if is_made for word in one.words}
        return [not words.isdisjoint(one.words) for one in self.candidates]

    def _rises(self, answer: Prediction) -> list[float]:
        """Return the signed square root of the rise in impurity for each slot, in [-1, 1]."""
        before, after = self._clean.impurities or {}, answer.impurities or {}
        differences = [after.get(slot, 0.0) - before.get(slot, 0.0) for slot in self.slots]
        if not before or not after:
            differences = [0.0] * len(self.slots)
        return [math.copysign(math.sqrt(abs(one)), one) for one in differences]

    def changed(self, answer: Prediction) -> list[bool]:
        """Return for each slot whether its value changed.

        The last entry is for `REST`, all other slots. It is true if any of these slots is filled.
        """
        before, after = self._clean.state, answer.state
        own = [before.get(slot) != after.get(slot) for slot in self.slots[:-1]]
        return [*own, any(slot not in self.slots for slot in after)]


def _parts(slot: str) -> tuple[str, str]:
    """Split a slot into its domain and its name. The domain is ``""`` if the slot has none."""
    domain, mark, name = slot.partition("-")
    return (domain, name) if mark else ("", slot)


def _family(value: str | None) -> str:
    """Return the type of a value, one of `_FAMILIES`, such as number, name or yes-no."""
    if value is None:
        return "none"
    if value in ("yes", "no", "true", "false"):
        return "yes-no"
    if value == DONTCARE:
        return "any"
    if _TIME.fullmatch(value) or value.isdecimal():
        return "number"
    return "name" if len(word_list(value)) > _SHORT else "choice"


def _of_edit(source: Source, one: Candidate, lexicon: Lexicon) -> list[float]:
    """Return the features of an edit, of shape [EDIT_SIZE]."""
    tokens, starts, edit = source.draft.tokens, source.parts.starts, one.edit
    first, last = one.words[0], one.words[-1]
    token = tokens[first]
    made = source.text[: edit.start] + edit.after + source.text[edit.end :]
    new = set(word_list(made)) - {other.lower for other in tokens}
    known = [lexicon.is_word(word) for word in new]
    left = tokens[first - 1].lower if first else "^"
    right = tokens[last + 1].lower if last + 1 < len(tokens) else "$"
    row = [
        min(len(token.text), 12) / 10,
        first / len(tokens),
        token.lower in lexicon.stop_words,
        edit.start <= starts[first] < edit.end,
        not any(map(str.isalpha, edit.before + edit.after)),
        bool(edit.before) and edit.before.lower() == edit.after.lower(),
        not edit.before,
        not edit.after,
        bool(known) and all(known),
        bool(known) and not any(known),
        len(one.words) > 1,
        1.0 + math.log10(max(one.chance, 1e-9)) / 9,
        *(token.role == role for role in _ROLES),
        *_one_hot(_ring(min(tokens[place].distance for place in one.words)), _RINGS),
    ]
    name = f"{edit.transformation}/{edit.operator}"
    row += _one_hot(bucket(name, _OPERATOR_BUCKETS), _OPERATOR_BUCKETS)
    row += _one_hot(bucket(token.lower, _WORD_BUCKETS), _WORD_BUCKETS)
    row += _one_hot(bucket(left, _SIDE_BUCKETS), _SIDE_BUCKETS)
    return [*row, *_one_hot(bucket(right, _SIDE_BUCKETS), _SIDE_BUCKETS)]


def _scaled(impurity: float, digits: int) -> float:
    """Return the logarithm of an impurity, scaled so that ``10**-digits`` is 0 and 1 is 1."""
    return 1.0 + math.log10(max(impurity, 10.0**-digits)) / digits


def _ring(distance: int) -> int:
    """Return the class of a distance in words, from 0 to ``_RINGS - 1``."""
    return distance if distance < 4 else 4 if distance < 90 else 5


def _one_hot(place: int, size: int) -> list[float]:
    row = [0.0] * size
    row[place] = 1.0
    return row


#: Maximum probability of a change, so that nothing is certain.
_MOST: Final = 0.999
#: Minimum logit. Below it, the exponential overflows 32 bits.
_LOWEST: Final = -80.0
#: Tensors whose first dimensions are the sizes of the two hidden layers.
HIDDEN: Final = ("slot", "hidden.weight")


def shapes(wide: int, narrow: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a scorer's tensors.

    Its hidden layers have ``wide`` and ``narrow`` units.
    """
    return {
        "slot": (wide, SLOT_SIZE),
        "slot.bias": (wide,),
        "edit": (wide, EDIT_SIZE),
        "pair": (wide, PAIR_SIZE),
        "hidden.weight": (narrow, wide),
        "hidden.bias": (narrow,),
        "out.weight": (1, narrow),
        "out.bias": (1,),
    }


class Scorer:
    """Computes the scorer's network in numpy.

    The network adds the projections of three inputs (slot, edit, pair), and has two hidden layers
    with ReLU. See `shapes` for the names and shapes of its weights.
    """

    def __init__(self, weights: Mapping[str, Floats]) -> None:
        self._weights = weights

    def chances(self, view: SlotView, attempts: Iterable[ScoredAttempt]) -> Floats:
        """Return each edit's probability to change each slot: [slots, candidates], in [0, 1)."""
        weights = self._weights
        slots = view.of_slots @ weights["slot"].T + weights["slot.bias"]
        edits = view.of_edits @ weights["edit"].T
        both = view.pairs(attempts) @ weights["pair"].T
        hidden = np.maximum(slots[:, None, :] + edits[None, :, :] + both, 0.0)
        hidden = np.maximum(hidden @ weights["hidden.weight"].T + weights["hidden.bias"], 0.0)
        logits = (hidden @ weights["out.weight"].T + weights["out.bias"])[:, :, 0]
        logits = np.maximum(logits, _LOWEST)
        found: Floats = np.minimum(1.0 / (1.0 + np.exp(-logits)), _MOST).astype(np.float32)
        return found


def chance_of_any(chances: Floats) -> Floats:
    """Return the probability that each edit changes at least one slot: [candidates]."""
    found: Floats = 1.0 - np.prod(1.0 - chances, axis=0)
    return found


def chance_of_variant(single: Floats, chosen: Sequence[int]) -> float:
    """Return the probability that a variant changes at least one slot.

    Args:
        single: the probability for each candidate edit, the result of `chance_of_any`.
        chosen: the indices of the edits that the variant combines.
    """
    return float(1.0 - np.prod(1.0 - single[list(chosen)]))


#: Increase when the file or the meaning of a feature changes.
FORMAT_VERSION: Final = 1
#: File name of a scorer in its training folder.
SCORER_FILE: Final = "bandit.safetensors"
_FORMAT: Final = "dstfuzz-scorer"
_KIND: Final = "scorer of the search bandit"


@dataclass(frozen=True, slots=True)
class ScorerAbout:
    """Facts about a scorer's training: tracker, data and settings."""

    tracker: str  #: Tracker of the training, as named by the user.
    data: str  #: Data set and splits of the training dialogues.
    dialogues: int  #: Number of dialogues played.
    validity: str  #: Validity profile.
    seed: int  #: Seed of the training.
    attempts: int  #: Number of variants in the training data.
    calls: int  #: Number of contexts sent to the tracker, including clean ones.
    version: str = __version__  #: Version of the package.


class SavedScorer(NamedTuple):
    """A scorer read from a file."""

    scorer: Scorer
    about: ScorerAbout  #: Origin of the scorer.
    fingerprint: str  #: First 12 hexadecimal digits of the file's SHA-256.


def save_scorer(path: Path, weights: Mapping[str, Floats], about: ScorerAbout) -> None:
    """Write a scorer with 16-bit weights atomically.

    The same arguments give the same bytes.

    Raises:
        UserError: a weight is not finite, or too large for 16 bits.
    """
    with np.errstate(over="ignore"):  # Values too large become infinite, and are rejected.
        halves = {name: weight.astype(np.float16) for name, weight in weights.items()}
    described = {"format": _FORMAT, "version": FORMAT_VERSION, "about": asdict(about)}
    write_weights(path, halves, described)


def load_scorer(path: str | Path) -> SavedScorer:
    """Read a scorer from its file or its training folder.

    Raises:
        UserError: the file is missing or damaged.
    """
    path = Path(path)
    if path.is_dir():
        path /= SCORER_FILE
    file = read_weights(_KIND, path, _FORMAT, FORMAT_VERSION, "dstfuzz train-bandit")
    check_shapes(file, shapes(*(file.rows(name) for name in HIDDEN)))
    try:
        about = from_json(ScorerAbout, file.described.get("about", {}))
    except ValueError as error:
        raise file.bad(f"its metadata is damaged: {error}") from None
    weights = {name: tensor.astype(np.float32) for name, tensor in file.tensors.items()}
    return SavedScorer(Scorer(weights), about, hashlib.sha256(file.content).hexdigest()[:12])
