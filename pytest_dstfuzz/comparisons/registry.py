"""Comparisons by name: shipped ones, and those of packages and test suites."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from pytest_dstfuzz.comparisons.comparison import (
    CheckedComparison,
    Comparison,
    ComparisonResult,
    Exact,
    OwnFunction,
    TextPair,
)
from pytest_dstfuzz.comparisons.embedding import SHIPPED, SameMeaning
from pytest_dstfuzz.comparisons.facts import (
    SameEntities,
    SameIds,
    SameNames,
    SameNumbers,
    adds_detail,
    without_echo,
)
from pytest_dstfuzz.comparisons.judge import Judge, Judges
from pytest_dstfuzz.comparisons.polarity import SamePolarity, is_fallback
from pytest_dstfuzz.config import JUDGE, ReplySettings
from pytest_dstfuzz.config.parsers import QUOTES, is_word
from pytest_dstfuzz.dialogue.calls import Outcome
from pytest_dstfuzz.dialogue.dialogues import Context, ContextJudge
from pytest_dstfuzz.errors import UserError, unknown_name
from pytest_dstfuzz.registry import Registry, blame_errors
from pytest_dstfuzz.trackers.registry import load_attribute

__all__ = ["DEFAULT", "Comparison", "ComparisonResult", "comparison_by_name"]

#: The group of entry points for comparisons. An entry point names a function, an object, or a class
#: whose constructor needs no arguments.
ENTRY_POINT_GROUP: Final = "pytest_dstfuzz.comparisons"
#: The default comparison of replies.
DEFAULT: Final = "numbers,entities,polarity,embedding"
#: Comparisons that compute distances.
_MEASURES: Final = ("embedding",)
#: Comparisons that reject a reply with more details.
_DETAILS: Final = ("numbers", "embedding")
#: Prefix of an embedding that is not shipped.
_FOREIGN: Final = "embedding:"
_Given = TypeVar("_Given")


def _shipped() -> dict[str, Callable[[ReplySettings], Comparison]]:
    return {
        "exact": lambda settings: Exact(),  # noqa: ARG005 - functions of one signature
        "numbers": lambda settings: SameNumbers(),  # noqa: ARG005 - likewise
        "names": lambda settings: SameNames(),  # noqa: ARG005 - likewise
        "entities": lambda settings: SameEntities(),  # noqa: ARG005 - likewise
        "polarity": lambda settings: SamePolarity(settings.fallback),
        "ids": lambda settings: SameIds(settings.cited),
        "embedding": lambda settings: SameMeaning(None, settings.threshold),
        JUDGE: Judge,
    }


_FACTORIES: Final = _shipped()
COMPARISONS: Final[Registry[Any]] = Registry("comparison", ENTRY_POINT_GROUP, _FACTORIES)


class AllOf(Comparison):
    """Combines comparisons. Two texts agree if all comparisons accept them."""

    def __init__(
        self,
        parts: Sequence[Comparison],
        fallbacks: tuple[str, ...] | None = None,
        *,
        echoes: bool = True,
        details: bool = True,
    ) -> None:
        """Store the comparisons and further options.

        If ``fallbacks`` are given, two fallback replies agree, and a fallback reply differs from an
        answer. If ``fallbacks`` is ``None``, fallback replies are compared like others. If
        ``echoes`` is false, an opening that only repeats the question is ignored. If ``details`` is
        false, and one reply only adds to the other, the result is undecided.
        """
        self._parts = tuple(parts)
        self._fallbacks = fallbacks
        self._echoes = echoes
        self._details = details

    @property
    def name(self) -> str:
        """The names, separated by commas."""
        return ",".join(part.name for part in self._parts)

    @property
    def identity(self) -> str:
        """The identities of all comparisons in order, and the fallbacks."""
        given = "".join(f"|{one}" for one in self._fallbacks or ())
        return ",".join(part.identity for part in self._parts) + given

    @property
    def context_judge(self) -> ContextJudge | None:
        """The language model of the first comparison that has one."""
        return next((part.context_judge for part in self._parts if part.context_judge), None)

    def align(self, before: Outcome, found: Outcome) -> Outcome:
        """Return ``found`` after each comparison has aligned its items to those of ``before``."""
        for part in self._parts:
            found = part.align(before, found)
        return found

    def prepare(self, pairs: Sequence[TextPair]) -> None:
        """Prepare each comparison. The expensive judge gets only pairs that all others accept."""
        pairs = [self._looked_at(pair) for pair in pairs]
        for place, part in enumerate(self._parts):
            if isinstance(part, Judge):
                before = AllOf(self._parts[:place], self._fallbacks)
                pairs = [
                    pair
                    for pair in pairs
                    if not self._given_up(pair.before, pair.found) and before.compare(*pair).same
                ]
            part.prepare(pairs)

    def _looked_at(self, pair: TextPair) -> TextPair:
        if self._echoes:
            return pair
        asked = pair.asked.user
        before, found = without_echo(pair.before, asked), without_echo(pair.found, asked)
        return pair._replace(before=before, found=found)

    def _given_up(self, *texts: str) -> bool:
        """Return whether any text is a fallback reply, if ``fallbacks`` are given."""
        return self._fallbacks is not None and any(
            is_fallback(text, self._fallbacks) for text in texts
        )

    def compare(self, path: str, before: str, found: str, asked: Context) -> ComparisonResult:
        """Return the first difference.

        If there is none, return the result with the most distance.
        """
        _, before, found, _ = self._looked_at(TextPair(path, before, found, asked))
        if self._fallbacks is not None:
            gives_up = [is_fallback(text, self._fallbacks) for text in (before, found)]
            if all(gives_up):
                return ComparisonResult(same=True)
            if any(gives_up):
                told = ("no answer" if given_up else "an answer" for given_up in gives_up)
                return ComparisonResult(same=False, why=" / ".join(told))
        farthest, unsure = ComparisonResult(same=True), False
        for part in self._parts:
            one = part.compare(path, before, found, asked)
            if not one.same:
                more = not self._details and part.name.startswith(_DETAILS)
                if more and self._only_adds(path, before, found, asked):
                    return replace(one, same=True, unsure=True)
                return one
            if one.distance is not None and one.distance >= (farthest.distance or 0.0):
                farthest = one
            unsure = unsure or one.unsure
        return replace(farthest, unsure=unsure)

    def _only_adds(self, path: str, before: str, found: str, asked: Context) -> bool:
        """Return whether one reply adds to the other, and no comparison finds a contradiction."""
        others = (part for part in self._parts if not part.name.startswith(_DETAILS))
        return adds_detail(before, found, asked.user) and all(
            part.compare(path, before, found, asked).same for part in others
        )


def register_comparison(comparison: _Given) -> _Given:
    """Register a comparison by its name, for example in a ``conftest.py``.

    Args:
        comparison: a `Comparison`, its class if it needs no arguments, or a function
            ``same(before, found)``. The name of a function is the name of the comparison. For a
            class or a function, `register_comparison` is also a decorator.

    Returns:
        The argument.

    Raises:
        UserError: the object is not a comparison, or a shipped one has the same name.
    """
    COMPARISONS.register(_own(comparison, "register_comparison()", None).name, comparison)
    return comparison


def comparison_by_name(
    names: str | None,
    settings: ReplySettings,
    search_path: tuple[str, ...] = (),
    judges: Judges | None = None,
) -> Comparison:
    """Return the comparison for one or several names, separated by commas.

    Args:
        names: shipped or registered names, or ``module:function``; ``None`` = `DEFAULT`.
        settings: defaults for the values that the names do not give: the threshold, the regular
            expression of cited ids, and the regular expressions of fallback replies.
        search_path: folders to search for a module; empty = the working folder.
        judges: the judges of the process with their verdicts and budgets; ``None`` = new judges.

    Raises:
        UserError: the comparison does not exist. The message suggests a similar name. Another
            error: there is a threshold, but no comparison computes distances.
    """
    listed = [name.strip() for name in (names or DEFAULT).split(",")]
    # The judge always comes last, so that it gets only pairs that all others accept.
    listed.sort(key=JUDGE.__eq__)
    made = judges or Judges()
    parts = [
        made.of(settings) if name == JUDGE else _named(name, settings, search_path)
        for name in listed
    ]
    if settings.threshold is not None and all(
        name in COMPARISONS.shipped and name not in _MEASURES for name in listed
    ):
        raise UserError(
            f"a threshold needs a comparison with distances, and {', '.join(listed)} "
            f"{'have' if len(listed) > 1 else 'has'} none: add {' or '.join(_MEASURES)}, or your "
            "own function that returns a distance"
        )
    ships = (name in COMPARISONS.shipped or name.startswith(_FOREIGN) for name in listed)
    if listed == ["exact"] or not all(ships):
        return parts[0] if len(parts) == 1 else AllOf(parts)
    details = ",".join(listed) != DEFAULT
    return AllOf(parts, settings.fallback, echoes="exact" in listed, details=details)


def as_comparison(
    given: object, where: str, settings: ReplySettings, judges: Judges | None = None
) -> Comparison:
    """Return the comparison for a name, a function, an object or a class.

    Error messages begin with ``where``. `comparison_by_name` describes ``judges``.
    """
    if isinstance(given, str):
        return comparison_by_name(given, settings, judges=judges)
    return _own(given, where, settings.threshold)


def _named(name: str, settings: ReplySettings, search_path: tuple[str, ...]) -> Comparison:
    if factory := _FACTORIES.get(name):
        return factory(settings)
    if name.startswith(_FOREIGN):
        return _foreign(name.removeprefix(_FOREIGN), settings)
    if ":" in name:
        found = load_attribute(name, search_path, "comparison")
        return _own(found, f"the comparison {name!r}", settings.threshold, name)
    if name not in COMPARISONS.names:
        error = unknown_name("comparison", name, COMPARISONS.names)
        hint = "" if is_word(name) else f" Or {QUOTES}."
        raise UserError(f"{error} Write your own comparison as package.module:function.{hint}")
    found = COMPARISONS.find(name)
    return _own(found, COMPARISONS.where(name), settings.threshold, name)


def _foreign(name: str, settings: ReplySettings) -> Comparison:
    if name in ("", SHIPPED):
        return SameMeaning(None, settings.threshold)
    if settings.threshold is None:
        raise UserError(
            f"embedding:{name} has no default threshold: give one as "
            f"embedding:{name}:threshold=DISTANCE; "
            f"`dstfuzz calibrate --embedding={name} --data=...` finds it"
        )
    from pytest_dstfuzz.comparisons.foreign import SentenceEmbedding  # noqa: PLC0415 - torch

    return SameMeaning(SentenceEmbedding(name), settings.threshold)


def _own(given: Any, where: str, threshold: float | None, called: str = "") -> Comparison:
    """Return a user's comparison, with checks of its results."""
    if isinstance(given, type):
        with blame_errors(f"{where}: {given.__name__}()"):
            given = given()
    if type(given).__module__.startswith(f"{__package__}."):
        return given  # type: ignore[no-any-return]  # a shipped one
    if not hasattr(given, "compare") and callable(given):
        name = called or re.sub(r"[^\w.]", "", getattr(given, "__name__", type(given).__name__))
        return OwnFunction(given, name, threshold)
    COMPARISONS.check_shape(
        given, where, "compare(path, before, found, asked)", "a ComparisonResult"
    )
    return CheckedComparison(given, where)
