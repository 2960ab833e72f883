"""Finds shipped searches, and searches of other packages and test suites, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from pytest_dstfuzz.config import PROFILES, Settings
from pytest_dstfuzz.errors import UserError, redact_text, unknown_name
from pytest_dstfuzz.own_values import values_of
from pytest_dstfuzz.perturb.engine import ORDERS
from pytest_dstfuzz.registry import Registry, blame_errors, entry_points
from pytest_dstfuzz.search.adaptive import AdaptiveSearch
from pytest_dstfuzz.search.protocol import (
    Feedback,
    Lesson,
    Proposal,
    Search,
    SearchFamily,
    SearchTask,
    TrainingRecord,
    TurnSearch,
)
from pytest_dstfuzz.search.searches import (
    DIALTEST,
    GREEDY,
    HillClimbSearch,
    NearValueSearch,
    NoiseSearch,
    RandomSearch,
    SampleAndSearch,
)
from pytest_dstfuzz.trackers.tracker import NAMELESS

__all__ = [
    "CheckedSearch",
    "default_search",
    "describe_trained",
    "find_training",
    "search_by_name",
]

#: Called as ``factory(seed=..., k=...)`` with the seed of the campaign and the number of
#: transformations in a variant.
SearchFactory = Callable[..., object]
#: The group of entry points for searches. An entry point names a factory, or a `SearchFamily`
#: for several searches.
ENTRY_POINT_GROUP: Final = "pytest_dstfuzz.searches"
#: Tracker and profile -> the shipped search that was trained on them.
_BEST: Final = {("trade", "natural"): "bandit"}
#: Prefix of the name of a search that leaves half of the variants to a sample of the noise model.
SAMPLED: Final = f"{NoiseSearch.name}+"
_SHIPPED: Final = (
    *(RandomSearch, NearValueSearch, HillClimbSearch, NoiseSearch, AdaptiveSearch),
    SampleAndSearch,
)


class _Searches(Registry[SearchFactory | SearchFamily]):
    """The registered searches. Some names take an argument, such as ``agent:PATH``."""

    @property
    def names(self) -> tuple[str, ...]:
        """All valid names: first the shipped searches, then the others in all their forms."""
        others = self.single[len(self.shipped) :]
        return (*self.shipped, *(form for name in others for form in self._forms(name)))

    def _forms(self, name: str) -> tuple[str, ...]:
        # If an entry point cannot be loaded, only its name is known.
        with suppress(UserError):
            if isinstance(found := self.find(name), SearchFamily):
                return found.forms
        return (name,)

    def of(self, name: str) -> SearchFactory | SearchFamily:
        """Return the factory or the family of a search. ``name`` may contain an argument."""
        base, colon, _ = name.partition(":")
        if not colon:
            return self.find(name)
        family = self.find(base) if base in self.single else None
        if not isinstance(family, SearchFamily):
            raise unknown_name("search", name, self.names)
        return family


SEARCHES: Final = _Searches(
    "search",
    ENTRY_POINT_GROUP,
    {
        RandomSearch.name: RandomSearch,
        NearValueSearch.name: NearValueSearch,
        GREEDY.name: lambda seed, k: HillClimbSearch(GREEDY, seed),  # noqa: ARG005 - one edit per step
        DIALTEST.name: lambda seed, k: HillClimbSearch(DIALTEST, seed),  # noqa: ARG005 - likewise
        NoiseSearch.name: NoiseSearch,
        AdaptiveSearch.name: AdaptiveSearch,
    },
    expects="a search class, a function that returns a search, or a SearchFamily",
    fits=lambda found: callable(found) or isinstance(found, SearchFamily),
)


def register_search(name: str, factory: SearchFactory | SearchFamily) -> None:
    """Register a search under a name, for example in a ``conftest.py``.

    Args:
        name: the name for the option ``search``.
        factory: a class or a function. It is called as ``factory(seed=..., k=...)`` and returns a
            `Search`. A `SearchFamily` makes searches for names with an argument, ``NAME:ARGUMENT``.

    Raises:
        UserError: a shipped search has this name, or the name is invalid.
    """
    SEARCHES.register(name, factory)


def search_by_name(name: str, *, seed: int, k: int) -> Search:
    """Build the search that the option ``search`` names. `SearchFactory` explains ``k``."""
    if name.startswith(SAMPLED):
        searched = search_by_name(name.removeprefix(SAMPLED), seed=seed, k=k)
        if searched.by_density:
            raise UserError(
                f"the search {name!r} draws from the noise model twice, since {searched.name} "
                f"draws from it, too: use {searched.name} or {SAMPLED}random"
            )
        return SampleAndSearch(NoiseSearch(seed, k), searched)
    factory, where = SEARCHES.of(name), SEARCHES.where(name)
    with blame_errors(f"the factory of {where}, called with seed= and k=,"):
        if isinstance(factory, SearchFamily):
            made = factory.make(name, seed=seed, k=k)
        else:
            made = factory(seed=seed, k=k)
    base = name.partition(":")[0]
    found = as_search(made, where, base)
    if found.name != base:
        raise UserError(f"{where} calls itself {found.name!r}: give it the name {base!r}")
    return found


def default_search(settings: Settings) -> str:
    """Return the search of a run if the user names none.

    If the profile has a noise model, this model draws half of the variants, for estimates of
    failure rates. A search makes the other half. This is the search with the most violations per
    call: the scorer trained on a shipped tracker (``examples/curves``), or ``random`` if it is not
    installed.
    """
    validity, model = settings.variant.validity, settings.tracker
    search = RandomSearch.name
    best = _BEST.get((model.model or "", validity))
    if best and model.checkpoint is None:
        # The wing that brings it may be a package of its own.
        installed = entry_points(ENTRY_POINT_GROUP).select(name=best)
        search = best if installed else search
    profile = PROFILES.get(validity)
    return f"{SAMPLED}{search}" if profile and profile.noise else search


def find_training(name: str) -> TrainingRecord | None:
    """Return the training of the search that the option ``search`` names.

    Returns ``None`` if the search was not trained.

    Raises:
        UserError: the search does not exist, or its file is missing or broken.
    """
    name = name.removeprefix(SAMPLED)
    family = SEARCHES.of(name)
    return family.find_training(name) if isinstance(family, SearchFamily) else None


def describe_trained(name: str, model: str | None, checkpoint: str | None) -> tuple[str, str]:
    """Return the fingerprint of a trained search and a sentence about its training.

    Both are empty if the search was not trained. ``model`` is the tracker under test as the user
    named it, or ``None`` if a test suite provides the tracker.
    """
    found = find_training(name)
    if found is None:
        return "", ""
    used = model or NAMELESS
    if checkpoint is not None:
        used += f" with the checkpoint {checkpoint}"
    elsewhere = "" if used == found.tracker else f", and is used on {used}"
    return found.fingerprint, (
        f"the search {name.removeprefix(SAMPLED)} is a {found.what} (sha256 {found.fingerprint}) "
        f"that was trained on the tracker {found.tracker}, {found.data}, {found.validity} "
        f"profile{elsewhere}"
    )


def as_search(given: object, where: str, known_as: str = "") -> Search:
    """Wrap a search to check its attributes and proposals.

    Shipped searches stay as they are.

    Args:
        given: the search.
        where: the place of its registration. Each error message begins with it.
        known_as: the name under which the search was found.
    """
    if isinstance(given, CheckedSearch) or type(given) in _SHIPPED:
        return given  # type: ignore[return-value]  # each is a Search
    return CheckedSearch(given, where, known_as)


class CheckedSearch(Search):
    """Wraps a search that a user wrote, and checks its attributes and proposals."""

    name = order = ""
    adaptive = by_density = waits = False
    associates = True
    lessons = 0

    def __init__(self, search: Any, where: str, known_as: str = "") -> None:
        answer = "an object with propose(number, draw, seen)"
        SEARCHES.check_shape(search, where, "turn(task)", answer, known_as)
        self.wrapped = search
        #: See `values_of`. A run may change the values.
        self.values = values_of(search)
        self._known_as = known_as
        self.name = str(search.name)
        self.order = str(getattr(search, "order", super().order))
        self.adaptive = bool(getattr(search, "adaptive", super().adaptive))
        self.associates = bool(getattr(search, "associates", super().associates))
        self.by_density = bool(getattr(search, "by_density", super().by_density))
        self.waits = bool(getattr(search, "waits", super().waits))
        self.lessons = int(getattr(search, "lessons", super().lessons))
        if self.order not in ORDERS:
            raise UserError(
                f"{where}: order of {type(search).__name__} is {self.order!r}, but must be "
                f"{' or '.join(ORDERS)}"
            )

    @property
    def learned(self) -> str:
        """The text that identifies the knowledge of the user's search."""
        return str(getattr(self.wrapped, "learned", super().learned))

    def learn(self, lessons: Sequence[Lesson]) -> Search:
        """Return the user's search that has also learned from these results."""
        with blame_errors(f"learn() of the search {self.name!r}"):
            found = self.wrapped.learn(lessons)
        return as_search(found, f"learn() of the search {self.name!r}", self._known_as)

    def context_variant(self, number: int) -> int:
        """Return the user's result. It must be from 0 to ``number``."""
        ask = getattr(self.wrapped, "context_variant", super().context_variant)
        with blame_errors(f"context_variant() of the search {self.name!r}"):
            found: object = ask(number)
        if not isinstance(found, int) or not 0 <= found <= number:
            raise UserError(
                f"context_variant({number}) of the search {self.name!r} returned "
                f"{redact_text(repr(found))}: it must return a number from 0 to {number}"
            )
        return found

    def turn(self, task: SearchTask) -> TurnSearch:
        """Return the user's object for a turn. It must be able to propose variants."""
        with blame_errors(f"turn() of the search {self.name!r}"):
            begun = self.wrapped.turn(task)
        if not callable(getattr(begun, "propose", None)):
            raise UserError(
                f"turn() of the search {self.name!r} returned {type(begun).__name__}: it must "
                "return an object with propose(number, draw, seen)"
            )
        return CheckedTurn(self.name, begun)


class CheckedTurn(TurnSearch):
    """Wraps the user's object for one turn, and checks its proposals."""

    def __init__(self, search: str, begun: Any) -> None:
        self._search = search
        self._begun = begun

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:
        """Return the user's proposal after checking its type."""
        with blame_errors(f"propose() of the search {self._search!r}"):
            found: object = self._begun.propose(number, draw, seen)
        if not isinstance(found, Proposal):
            raise UserError(
                f"propose() of the search {self._search!r} returned {type(found).__name__}: it "
                "must return a Proposal, such as task.proposal(action)"
            )
        return found
