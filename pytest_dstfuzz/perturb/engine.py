"""The action space, and the perturber that turns actions into variants."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain, repeat
from typing import Final, NamedTuple

import numpy as np

from pytest_dstfuzz.config import PROFILES, VALIDITIES, VariantSettings
from pytest_dstfuzz.dialogue.dialogues import DialogueSet, Ontology
from pytest_dstfuzz.errors import UserError, unknown_name
from pytest_dstfuzz.noise.model import NoiseModel
from pytest_dstfuzz.perturb import validity
from pytest_dstfuzz.perturb.draft import (
    FREE,
    LOCKED,
    Draft,
    EditResult,
    Mask,
    Source,
    Token,
    value_distances,
)
from pytest_dstfuzz.perturb.edits import apply_edits
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.perturb.operators import (
    IN_WORDS,
    RECOVERABLE,
    Candidates,
    EditPolicy,
    NoiseInUse,
    NoiseSupport,
    candidates,
    transform,
    typo_limit,
)
from pytest_dstfuzz.perturb.reader import SlipReader, count_usage
from pytest_dstfuzz.perturb.validity import StrictCheck
from pytest_dstfuzz.perturb.words import (
    Action,
    Edit,
    Parts,
    Status,
    Variant,
    Word,
    take_apart,
    word_list,
)
from pytest_dstfuzz.selection import Edits, Selection, select
from pytest_dstfuzz.transformations import SHIPPED, TRANSFORMATIONS, of_word_level

__all__ = ["GRID", "ORDERS", "ActionSpace", "Perturber", "inertia"]


#: Every coordinate of an action is a multiple of ``1 / GRID``.
GRID: Final = 1024
#: The second and each later repetition is active if its trigger is at least this number.
TRIGGER: Final = 0.5
#: Edits may touch this share of the words of an utterance. It also limits the repetitions.
WORD_SHARE: Final = 0.25
#: Value of a coordinate without effect. It is the mean of uniform draws, so that it adds nothing to
#: the variance of a coordinate that only sometimes has an effect.
_NEUTRAL: Final = 0.5


#: The reason why no slip mistypes a word, if it is not a lock.
NO_SLIP: Final = "any slip may be read as another word"


def _why_unreached(word: Word, reason: str) -> str:
    """Return the reason why no slip mistypes a word."""
    return NO_SLIP if not reason or (reason in RECOVERABLE and word.text.isalpha()) else reason


class ActionStep(NamedTuple):
    """One chosen transformation."""

    transformation: str  #: Its name.
    importance: float  #: In [0, 1].
    #: Parameters ``(position, operator, choice)`` of each active repetition. There is at least one
    #: repetition. Transformations that drop text have no choice.
    repetitions: tuple[tuple[float, ...], ...]
    slots: int  #: The maximum number ``m`` of repetitions, from the action space.

    def active(self, words: int) -> tuple[tuple[float, ...], ...]:
        """Return the repetitions to run on an utterance of ``words`` words.

        Their number is at most ``max(1, round(importance * min(m, cap)))``. ``cap`` is a quarter of
        the number of words, and at least 1 (method of the thesis).
        """
        if len(self.repetitions) == 1:
            return self.repetitions
        cap = max(1, math.floor(words * WORD_SHARE))
        return self.repetitions[: max(1, round(self.importance * min(self.slots, cap)))]


class ActionSpace:
    """The unit cube of actions, with ``repetitions`` (m) repetitions per transformation.

    Attributes:
        dimension: dimension of the cube.
        most: highest ``k``, the number of transformations in the cube.
    """

    __slots__ = ("_offsets", "_widths", "dimension", "most", "repetitions", "selection")

    def __init__(self, selection: Selection | None = None, repetitions: int = 2) -> None:
        """Compute the layout of the cube.

        Args:
            selection: the transformations from which `decode` chooses; by default, the six shipped
                ones. The cube has coordinates for all six even if a run does not use them.
            repetitions: number of repetitions of each transformation in an action.

        Raises:
            ValueError: If ``repetitions`` is below 1.
        """
        if repetitions < 1:
            raise ValueError(f"repetitions must be at least 1, not {repetitions}")
        self.selection = selection or select()
        self.repetitions = repetitions
        self._offsets: dict[str, int] = {}
        self._widths: dict[str, int] = {}
        self.dimension = 0
        others = [item for item in self.selection.transformations if item not in SHIPPED]
        for item in (*SHIPPED, *sorted(others, key=lambda item: item.name)):
            self._offsets[item.name] = self.dimension
            self._widths[item.name] = 1 + len(item.parameters)
            self.dimension += 1 + repetitions * self._widths[item.name]
        self.most = len(self._offsets)

    def sample(self, rng: np.random.Generator, k: int) -> Action:
        """Draw a uniform point of the grid that applies ``k`` transformations."""
        self._check_k(k)
        grid = np.rint(rng.random(self.dimension) * GRID) / GRID
        return Action(tuple(grid.tolist()), k)

    def block(self, transformation: str) -> slice:
        """Return the slice of the vector with the triggers and parameters of a transformation.

        Its importance is the coordinate before the slice.
        """
        start = self._offsets[transformation] + 1
        return slice(start, start + self.repetitions * self._widths[transformation])

    def parameters(self, transformation: str) -> int:
        """Return the number of parameters per repetition of a transformation."""
        return self._widths[transformation] - 1

    def single(self, action: Action, transformation: str) -> Action:
        """Return an action that applies only this transformation, once, with equal parameters."""
        start = self._offsets[transformation]
        width = self._widths[transformation]
        parameters = action.vector[start + 2 : start + 1 + width]
        return self.encode([ActionStep(transformation, 1.0, (parameters,), self.repetitions)])

    def decode(self, action: Action) -> tuple[ActionStep, ...]:
        """Return the ``k`` most important transformations, word level first.

        Args:
            action: a point, whose coordinates are rounded to the grid. If fewer than ``k``
                transformations are in use, all are returned. If two are equally important, the
                first in order of application has priority.

        Raises:
            ValueError: If the dimension is wrong, or a coordinate is not a number in [0, 1].
            UserError: If ``k`` is not from 1 to `most`.
        """
        self._check_k(action.k)
        vector = action.vector
        if len(vector) != self.dimension:
            raise ValueError(f"an action has {self.dimension} coordinates, not {len(vector)}")
        # min and max may miss a NaN. The sum is then NaN, which does not equal itself.
        total = sum(vector)
        if not (min(vector) >= 0.0 and max(vector) <= 1.0 and total == total):  # noqa: PLR0124
            raise ValueError("every coordinate of an action must be a number in [0, 1]")
        names = self.selection.names
        snapped = [_snap(vector[self._offsets[name]]) for name in names]
        chosen: Sequence[int] = range(len(names))
        if action.k < len(names):
            chosen = sorted(sorted(chosen, key=lambda index: -snapped[index])[: action.k])
        steps = []
        for index in chosen:
            parameters = self._parameters(names[index], vector)
            steps.append(ActionStep(names[index], snapped[index], parameters, self.repetitions))
        return tuple(steps)

    def _parameters(self, name: str, vector: tuple[float, ...]) -> tuple[tuple[float, ...], ...]:
        width = self._widths[name]
        start = self._offsets[name] + 1
        active = []
        for at in range(start, start + self.repetitions * width, width):
            if at == start or _snap(vector[at]) >= TRIGGER:
                parameters = vector[at + 1 : at + width]
                active.append(tuple([round(value * GRID) / GRID for value in parameters]))
        return tuple(active)

    def effective(self, action: Action) -> Action:
        """Return an equivalent action with one half in each coordinate that has no effect.

        A search leaves random values in coordinates without effect. Parameters of unused
        transformations and of inactive repetitions have no effect. The trigger of the first
        repetition has none either, because this repetition is always active.
        """
        vector = [_NEUTRAL] * self.dimension
        for name in self.selection.names:
            vector[self._offsets[name]] = action.vector[self._offsets[name]]
        for step in self.decode(action):
            width, start = self._widths[step.transformation], self.block(step.transformation).start
            for at in range(start, start + self.repetitions * width, width):
                if at > start:
                    vector[at] = action.vector[at]
                if at == start or _snap(vector[at]) >= TRIGGER:
                    vector[at + 1 : at + width] = action.vector[at + 1 : at + width]
        return Action(tuple(vector), action.k)

    def uniform_inertia(self, k: int) -> float:
        """Return the `inertia` of uniform draws that apply ``k`` transformations.

        Every importance counts fully. A parameter counts with the probability that it has an
        effect. For the six shipped transformations and ``m = 2``, the result is (6 + 5 k) / 12. If
        all coordinates counted, it would be D / 12.
        """
        self._check_k(k)
        names = self.selection.names
        further = self.repetitions - 1
        effective = sum(
            self.parameters(name) + further * (1 + self.parameters(name) * (1 - TRIGGER))
            for name in names
        )
        return (len(names) + effective * min(k / len(names), 1.0)) / 12

    def encode(self, steps: Sequence[ActionStep]) -> Action:
        """Return an action that `decode` turns into ``steps`` again.

        All coordinates of transformations without a step are 0. The triggers of active repetitions
        are 1.

        Raises:
            ValueError: If there are no steps or repeated ones, if the number of parameters or
                repetitions is wrong, or if the importances would let `decode` choose a
                transformation without a step.
        """
        vector = [0.0] * self.dimension
        for step in steps:
            start = self._offsets[step.transformation]
            width = self._widths[step.transformation]
            if not 1 <= len(step.repetitions) <= self.repetitions:
                raise ValueError(f"{step.transformation} needs 1 to {self.repetitions} repetitions")
            vector[start] = step.importance
            for index, parameters in enumerate(step.repetitions):
                if len(parameters) != width - 1:
                    raise ValueError(f"{step.transformation} needs {width - 1} parameters")
                at = start + 1 + index * width
                vector[at : at + width] = [1.0, *parameters]
        action = Action(tuple(vector), len(steps))
        if self.decode(action) != tuple(steps):
            raise ValueError("no action decodes to these steps")
        return action

    def _check_k(self, k: int) -> None:
        if not 1 <= k <= self.most:
            raise UserError(
                f"k, the number of associated transformations, must be from 1 to {self.most}, "
                f"not {k}"
            )


def inertia(space: ActionSpace, actions: Sequence[Action]) -> float:
    """Return the sum over dimensions of the variance of actions, or 0 without actions.

    Coordinates without effect are normalised first, see `ActionSpace.effective`. Actions with an
    empty vector are ignored. They belong to variants whose edits were drawn one by one.
    """
    vectors = [space.effective(action).vector for action in actions if action.vector]
    return float(np.var(np.array(vectors), axis=0).sum()) if vectors else 0.0


def _snap(value: float) -> float:
    return round(value * GRID) / GRID


#: The orders in which a position parameter may count places.
ORDERS: Final = ("reading", "distance")


class PartialVariant(NamedTuple):
    """A variant that can take further edits."""

    variant: Variant
    #: The utterance after its edits, with the edits that are still possible.
    draft: Draft


@lru_cache(maxsize=4)
def _support(
    lexicon: Lexicon,
    locks: Locks | None,
    selection: Selection,
    model: NoiseModel,
    reader: SlipReader | None,
    *,
    by_slips: bool,
) -> NoiseSupport:
    """Return the allowed slips. Campaigns with the same locks and noise share them."""
    policy = EditPolicy(lexicon, locks, selection, by_slips=by_slips)
    return NoiseSupport(NoiseInUse(model, None), policy, reader)


class Perturber:
    """Makes variants of utterances under one validity profile."""

    def __init__(  # noqa: PLR0913 - settings, each given by its name
        self,
        lexicon: Lexicon,
        *,
        validity: str,
        max_edit_rate: float = 0.25,
        locks: Sequence[str] = (),
        ontology: Ontology | None = None,
        cue_words: Sequence[str] = (),
        edits: Sequence[str] = (),
        noise: Sequence[str] = ("typing", "casual"),
        slip_rate: float | None = None,
        flat_rate: bool = False,
        order: str = "reading",
        usage: Mapping[str, int] | None = None,
    ) -> None:
        """Build the tables that all utterances share.

        Args:
            lexicon: words for the edits.
            validity: ``strict``, ``natural`` or ``edit-rate``.
            max_edit_rate: limit of both edit rates, 0 to 1.
            locks: words, phrases or ``/regular expressions/`` that no edit may touch. Ignored in
                ``edit-rate``.
            ontology: slot values. Their mentions are locked. Ignored in ``edit-rate``.
            cue_words: additional words that name the purpose of a value. Ignored in ``edit-rate``.
            edits: transformations and operators, see `selection.select`; default: the profile's.
            noise: the noise models for ``natural``, and for operators that need one.
            slip_rate: slips per word, 0 to 1. ``None`` uses the rate of the models.
            flat_rate: apply ``max_edit_rate`` to ``edit_w`` in short utterances too.
            order: the order in which position parameters count places: in ``reading`` order, or by
                ``distance`` to the nearest mention of a slot value. If two places are equally near,
                words that name the purpose of a value come first.
            usage: words that users often say to this bot, see `count_usage`.

        Raises:
            UserError: If a profile, order or transformation is unknown, a rate is outside [0, 1],
                a lock is broken, or the models of ``natural`` make no slip of a name in ``edits``.
        """
        if order not in ORDERS:
            raise unknown_name("order of positions", order, ORDERS)
        if validity not in VALIDITIES:
            raise unknown_name("validity profile", validity, VALIDITIES)
        if not 0.0 <= max_edit_rate <= 1.0:
            raise UserError(f"max_edit_rate must be between 0 and 1, not {max_edit_rate}")
        self.validity = validity
        self.max_edit_rate = max_edit_rate
        self._flat_rate = flat_rate
        values = {} if ontology is None else ontology.values
        self._values = tuple((slot, tuple(found)) for slot, found in values.items())
        # Build the locks in all profiles, so that a broken lock is always an error.
        self._guards = Locks.of(lexicon, ontology, cue_words, locks)
        self.profile = PROFILES[validity]
        self._locks = self._guards if self.profile.locks else None
        self._nearest_first = order == "distance"
        self._lexicon = lexicon
        self._models, self._slip_rate, self._usage = tuple(noise), slip_rate, usage or {}
        self._use(select(tuple(edits), self.profile.operators))
        self._refuse_unknown(Edits.of(edits).named if self.profile.noise else ())

    @classmethod
    def of(
        cls,
        settings: VariantSettings,
        data: DialogueSet,
        lexicon: Lexicon,
        *,
        order: str = "reading",
    ) -> Perturber:
        """Build the perturber of a run from its settings and a data set.

        Raises:
            UserError: As the constructor.
        """
        usage = {}
        if data.ontology is None:
            usage = count_usage([turn.user for turn in one.turns] for one in data.dialogues)
        return cls(
            lexicon,
            validity=settings.validity,
            max_edit_rate=settings.max_edit_rate,
            locks=settings.lock,
            ontology=data.ontology,
            cue_words=data.cue_words,
            edits=settings.edits,
            noise=settings.noise,
            slip_rate=settings.slip_rate,
            flat_rate=settings.flat_edit_rate,
            order=order,
            usage=usage,
        )

    def _use(self, selection: Selection) -> None:
        self.space = ActionSpace(selection)
        self._edit_policy = EditPolicy(
            self._lexicon,
            self._locks,
            selection,
            nearest_first=self._nearest_first,
            by_slips=self.profile.noise,
        )
        self._support = self._find_support(selection) if self._slips else None
        self._check = StrictCheck(self._guards, self._edit_policy) if self._locks else None

    def _find_support(self, selection: Selection) -> NoiseSupport:
        reader = self._reader if self.profile.noise else None
        used = chain.from_iterable(self._edit_policy.operators.values())
        if not all(item.operator.shipped for item in used):  # Those of a suite may change.
            return NoiseSupport(self.noise, self._edit_policy, reader)
        return _support(
            self._lexicon,
            self._locks,
            selection,
            self.noise.model,
            reader,
            by_slips=self.profile.noise,
        )

    @property
    def _slips(self) -> bool:
        """Whether a noise model is in use."""
        used = self._edit_policy.operators.values()
        return any(operator.by_slips for operators in used for operator in operators)

    @cached_property
    def _reader(self) -> SlipReader:
        """The reader of mistyped locked words. Its vocabulary has the words of the data."""
        return SlipReader.of(self._lexicon, self.noise.model, dict(self._values), self._usage)

    @property
    def guards(self) -> Locks:
        """The locks. In every profile they mark the words with slot content."""
        return self._guards

    @cached_property
    def noise(self) -> NoiseInUse:
        """The noise models of the run, merged into one, and their slip rate.

        Raises:
            UserError: If there is no such model, or a file is not a valid one.
        """
        return NoiseInUse.of(self._models, self._slip_rate)

    def _refuse_unknown(self, named: Sequence[str]) -> None:
        """Raise an error if a run names edits that its noise model never makes."""
        lacking = []
        for name in named:
            chosen = select((name,))
            pairs = zip(chosen.names, chosen.operators, strict=True)
            if self.noise.makes.isdisjoint((item, part) for item, parts in pairs for part in parts):
                lacking.append(name)
        for name in lacking:
            # `all` names six transformations, and a model need not make slips of all six.
            if name not in TRANSFORMATIONS or len(lacking) == len(named):
                raise UserError(
                    f"the profile {self.validity} never makes {name!r}, because the noise models "
                    f"in use ({', '.join(self._models)}) have no such slip: use "
                    "--dst-validity=strict"
                )

    @cached_property
    def shipped(self) -> Perturber:
        """A perturber with only the shipped edits, because agents know no others.

        Raises:
            UserError: If no shipped transformation is in use.
        """
        selection = self.space.selection
        if selection.shipped == selection:
            return self
        if not selection.shipped.names:
            raise UserError(
                "an agent needs a shipped transformation, and the run uses only "
                f"{', '.join(selection.written)}: choose another search"
            )
        other = copy.copy(self)
        other._use(selection.shipped)  # noqa: SLF001 - its own
        return other

    def prepare(
        self,
        utterance: str,
        values: Iterable[str] = (),
        system: str = "",
        said: Iterable[str] = (),
    ) -> Source:
        """Compute the locks and limits of an utterance, once for all its variants.

        An utterance with more than `validity.LONGEST_EDITED` characters takes no edits.

        Args:
            utterance: the clean utterance.
            values: the slot values of the turn.
            system: the system utterance before it.
            said: other texts that a reader of the utterance knows: earlier turns and the answer.
        """
        if len(utterance) > validity.LONGEST_EDITED:
            return _unedited(utterance)
        parts = take_apart(utterance)
        distances: Iterable[int] = repeat(0)
        if self._locks or self._nearest_first:
            mask = self._guards.mask(utterance, parts, values, system)
            if self._nearest_first:
                distances = value_distances(mask)
        if not self._locks:
            mask = _open_mask(parts)
        if utterance.isascii():
            different = frozenset([word.lower for word in parts.words])
        else:  # In some scripts the lower case of a word depends on its neighbours.
            different = validity.distinct_words(utterance)
        limit = validity.word_limit(different, self.max_edit_rate, flat=self._flat_rate)
        draft = _draft(utterance, parts, mask, distances)
        if not self._support:
            return Source(utterance, parts, mask, draft, different, limit)
        heard = frozenset(word for text in (system, *said) for word in word_list(text))
        support = self._support.of(utterance, parts, mask, heard)
        pairs = zip(draft.tokens, support.slips, strict=True)
        draft = draft._replace(
            tokens=tuple([token._replace(slips=found) for token, found in pairs]),
            slipping=frozenset(chain.from_iterable(support.slips)),
        )
        return Source(utterance, parts, mask, draft, different, limit, support)

    def apply(self, source: Source, action: Action) -> Variant:
        """Apply an action to an utterance.

        Raises:
            ValueError: If the action is not a point of the action space.
        """
        return self.grow(source, action).variant

    def remake(self, source: Source, edits: Sequence[Edit]) -> Variant:
        """Return the variant of an utterance with these edits, measured and checked.

        Raises:
            ValueError: If the text at the offsets of an edit is not its ``before``.
        """
        return self._finish(source, apply_edits(source.text, edits), tuple(edits))

    def menus(self, source: Source, base: PartialVariant | None = None) -> dict[str, Candidates]:
        """Return the possible edits of each transformation, to an utterance or to its variant."""
        draft = base.draft if base else source.draft
        names = self.space.selection.names
        if base and _mistyped(base.variant.edits):
            names = tuple(name for name in names if not of_word_level(name))
        return {name: candidates(draft, self._edit_policy, name) for name in names}

    def grow(
        self, source: Source, action: Action, base: PartialVariant | None = None
    ) -> PartialVariant:
        """Apply an action to a variant.

        Args:
            source: the prepared utterance.
            action: the action. Word-level transformations are skipped if ``base`` has
                character-level edits, because operators do not find misspelled words.
            base: a variant of the utterance, made by this perturber. ``None`` starts from the
                utterance itself.

        Raises:
            ValueError: If the action is not a point of the action space.
        """
        draft = base.draft if base else source.draft
        edits = list(base.variant.edits) if base else []
        words = len(source.words)
        steps = [(step, step.active(words)) for step in self.space.decode(action)]
        if _mistyped(edits):
            steps = [item for item in steps if not of_word_level(item[0].transformation)]
        # If there is only one step, the quota need not be shared.
        shares = _shares(steps, draft.quota) if len(steps) > 1 else []
        for index, (step, repetitions) in enumerate(steps):
            # Reserve the quota of later steps.
            later = sum(shares[index + 1 :])
            if later:
                draft = draft._replace(quota=draft.quota - later)
            for parameters in repetitions:
                made = transform(draft, self._edit_policy, step.transformation, parameters)
                if made is not None and self._within_rate(source, made):
                    draft = made.draft
                    edits.append(made.edit)
            if later:
                draft = draft._replace(quota=draft.quota + later)
        return PartialVariant(self._finish(source, draft.text, tuple(edits)), draft)

    def _within_rate(self, source: Source, made: EditResult) -> bool:
        """Return whether a word edit keeps the edit rate.

        Profiles other than ``strict`` allow it.
        """
        if self._check is None or not of_word_level(made.edit.transformation):
            return True
        return validity.edit_w(source.different, made.draft.text) <= source.word_limit

    def unreached(self, source: Source) -> list[tuple[str, str]]:
        """Return the words that no slip of the noise model mistypes, each with the reason.

        The reason is the lock, or `NO_SLIP` if each slip may be read as another word. If there is
        no noise model, no word is returned.
        """
        if source.support is None:
            return []
        return [
            (word.lower, _why_unreached(word, reason))
            for word, reason, slips in zip(
                source.words, source.mask.reasons, source.support.slips, strict=True
            )
            if not any(place.kind in IN_WORDS for some in slips.values() for place in some.places)
        ]

    def check(self, source: Source, text: str, edits: Sequence[Edit]) -> tuple[Status, str]:
        """Check any list of edits to an utterance.

        Returns:
            Status and reason, as in `Variant`. Edits that do not lead to ``text`` are vetoed with
            the reason ``edits``.
        """
        try:
            if apply_edits(source.text, edits) != text:
                return "vetoed", "edits"
        except ValueError:
            return "vetoed", "edits"
        variant = self._finish(source, text, tuple(edits))
        return variant.status, variant.reason

    def count_touched(self, source: Source, edits: Sequence[Edit]) -> int | None:
        """Return how many words the edits touch: ``None`` if a lock forbids them, 0 without locks.

        If no word is near two edits, the number for both is the sum of their numbers.
        """
        if self._check is None:
            return 0
        text = apply_edits(source.text, edits)
        touched, reason = self._check.count_touched(source, text, edits)
        return None if reason else touched

    def within_rates(self, source: Source, edits: Sequence[Edit]) -> bool:
        """Return whether edits change the utterance within the limits of length and rates.

        Locks, the number of touched words and the noise model are not checked.
        """
        text = apply_edits(source.text, edits)
        if text == source.text or _is_too_long(source.text, text):
            return False
        return not self._exceeded(source, *self._rates(source, text, edits))

    def is_possible(self, source: Source, edits: Sequence[Edit]) -> bool:
        """Return whether the noise model can make the variant. It makes any without a model."""
        return self._log_probability(source, apply_edits(source.text, edits)) != -math.inf

    def _rates(self, source: Source, text: str, edits: Sequence[Edit]) -> tuple[float, float]:
        """Return the rates of a variant: `Variant.edit_w` and `Variant.edit_c`."""
        middle, words_done = source.text, len(edits)
        while words_done and not of_word_level(edits[words_done - 1].transformation):
            words_done -= 1
        word_rate = 0.0
        if words_done:
            middle = apply_edits(source.text, edits[:words_done])
            word_rate = validity.edit_w(source.different, middle)
        return word_rate, validity.edit_c(middle, text)

    def _exceeded(self, source: Source, word_rate: float, char_rate: float) -> str:
        """Return the name of the rate that exceeds its limit, or ``""``."""
        if word_rate > source.word_limit:
            return "edit_w"
        return "edit_c" if char_rate > self.max_edit_rate else ""

    def _finish(self, source: Source, text: str, edits: tuple[Edit, ...]) -> Variant:
        clean = source.text
        if edits and _is_too_long(clean, text):
            return Variant(clean, text, edits, 0.0, 0.0, "vetoed", "length")
        word_rate, char_rate = self._rates(source, text, edits)
        status: Status = "valid"
        reason = ""
        if text == clean:
            status = "vacuous"
        elif self._check and (reason := self._check.veto(source, text, edits)):
            status = "vetoed"
        elif reason := self._exceeded(source, word_rate, char_rate):
            status = "over_rate"
        likely = self._log_probability(source, text)
        if likely == -math.inf:
            likely = None
            if status == "valid":
                status, reason = "vetoed", "unlikely"
        return Variant(clean, text, edits, word_rate, char_rate, status, reason, likely)

    def _log_probability(self, source: Source, text: str) -> float | None:
        """Return the log probability of a text given the locks, ``None`` without a model."""
        if not self.profile.noise or source.support is None:
            return None
        return source.support.noisy.log_probability(text, self.noise.rate)


def _is_too_long(clean: str, text: str) -> bool:
    """Return whether an utterance or its variant is too long to be edited."""
    return max(len(clean), len(text) // 2) > validity.LONGEST_EDITED


def _mistyped(edits: Sequence[Edit]) -> bool:
    """Return whether there are edits of char level. These come after all others."""
    return bool(edits) and not of_word_level(edits[-1].transformation)


def _shares(steps: Sequence[tuple[ActionStep, Sequence[object]]], quota: int) -> list[int]:
    """Distribute the quota of touched words to the steps.

    Each step gets one word, in order of importance. Then each further repetition gets one.
    Otherwise the word-level steps would use up the quota, because they run first.
    """
    shares = [0] * len(steps)
    ranking = sorted(range(len(steps)), key=lambda index: -steps[index][0].importance)
    rounds = max((len(repetitions) for _, repetitions in steps), default=0)
    for turn in range(rounds):
        for index in ranking:
            if quota and turn < len(steps[index][1]):
                shares[index] += 1
                quota -= 1
    return shares


def _open_mask(parts: Parts) -> Mask:
    """Return a mask without locks. Words are still inserted only at blanks."""
    count = len(parts.words)
    inner = [gap[-1:].isspace() for gap in parts.gaps[1:-1]]
    return Mask((FREE,) * count, ("",) * count, (True, *inner, True) if count else (True,))


def _unedited(utterance: str) -> Source:
    """Return a source that takes no edits."""
    mask = Mask((), (), (False,))
    draft = Draft(utterance, (), utterance, open_end=False, quota=0)
    return Source(utterance, take_apart(""), mask, draft, frozenset(), 0.0)


def _draft(text: str, parts: Parts, mask: Mask, distances: Iterable[int]) -> Draft:
    words, gaps = parts.words, parts.gaps
    tokens = map(_token, [word.text for word in words], gaps, mask.roles, mask.open, distances)
    quota = max(1, int(len(words) * WORD_SHARE))
    return Draft(text, tuple(tokens), gaps[-1], mask.open[-1], quota)


@lru_cache(maxsize=1 << 15)
def _token(text: str, gap: str, role: int, is_open: bool, distance: int) -> Token:
    """Return one token of a draft. Tokens are cached because most recur."""
    typos = 0 if role == LOCKED else typo_limit(len(text))
    return Token(text, text.lower(), gap, role, is_open, typos, distance=distance)
