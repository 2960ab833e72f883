"""Comparisons by name: those that ship, those that packages bring, those of a suite."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from pytest_dstfuzz.comparisons.comparison import (
    CheckedComparison,
    Compared,
    Comparison,
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
    without_echo,
)
from pytest_dstfuzz.comparisons.judge import Judge, Judges
from pytest_dstfuzz.comparisons.polarity import SamePolarity, is_fallback
from pytest_dstfuzz.config import JUDGE, ReplySettings
from pytest_dstfuzz.config.parsers import QUOTES, is_word
from pytest_dstfuzz.dialogue.calls import Outcome
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.errors import UserError, unknown_name
from pytest_dstfuzz.registry import Registry, blamed
from pytest_dstfuzz.trackers.registry import load_attribute

__all__ = ["comparison_by_name"]

#: A package brings a comparison by an entry point of this group that names a function, an object,
#: or a class that is made without arguments.
ENTRY_POINT_GROUP: Final = "pytest_dstfuzz.comparisons"
#: What replies are compared by where nothing is said.
DEFAULT: Final = "numbers,entities,polarity,embedding"
#: Those that have distances.
_MEASURES: Final = ("embedding",)
#: Before the name of an embedding that does not ship.
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
    """Several comparisons: two texts say the same where all of them say so."""

    def __init__(
        self,
        parts: Sequence[Comparison],
        fallbacks: tuple[str, ...] | None = None,
        *,
        echoes: bool = True,
    ) -> None:
        """Take comparisons, and further fallbacks where any two are one reply, and no answer.

        With ``None`` they are compared as all replies are. Without ``echoes`` an opening that
        only repeats the question is not looked at.
        """
        self._parts = tuple(parts)
        self._fallbacks = fallbacks
        self._echoes = echoes

    @property
    def name(self) -> str:
        """The names, with commas between them."""
        return ",".join(part.name for part in self._parts)

    @property
    def identity(self) -> str:
        """The identities of all, in their order, and the fallbacks."""
        given = "".join(f"|{one}" for one in self._fallbacks or ())
        return ",".join(part.identity for part in self._parts) + given

    def align(self, before: Outcome, found: Outcome) -> Outcome:
        """Return what all of them make of the paths, one after the other."""
        for part in self._parts:
            found = part.align(before, found)
        return found

    def prepare(self, pairs: Sequence[TextPair]) -> None:
        """Let each get ready; a judge, which is dear, only for what all before it agree on."""
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
        """Whether one of some texts is no answer, by the further fallbacks."""
        return self._fallbacks is not None and any(
            is_fallback(text, self._fallbacks) for text in texts
        )

    def compare(self, path: str, before: str, found: str, asked: Context) -> Compared:
        """Return what the first says that finds a difference, else the largest distance."""
        _, before, found, _ = self._looked_at(TextPair(path, before, found, asked))
        if self._fallbacks is not None:
            gives_up = [is_fallback(text, self._fallbacks) for text in (before, found)]
            if all(gives_up):
                return Compared(same=True)
            if any(gives_up):
                told = ("no answer" if given_up else "an answer" for given_up in gives_up)
                return Compared(same=False, why=" / ".join(told))
        farthest, unsure = Compared(same=True), False
        for part in self._parts:
            one = part.compare(path, before, found, asked)
            if not one.same:
                return one
            if one.distance is not None and one.distance >= (farthest.distance or 0.0):
                farthest = one
            unsure = unsure or one.unsure
        return replace(farthest, unsure=unsure)


def register_comparison(comparison: _Given) -> _Given:
    """Make a comparison known by its name, such as in a ``conftest.py``.

    Args:
        comparison: a `Comparison`, a class of one that is made without arguments, or a function
            ``same(before, found)``, whose name it then has; it is a decorator for both.

    Returns:
        What was given.

    Raises:
        UserError: it is none, or one that ships has its name.
    """
    COMPARISONS.register(_own(comparison, "register_comparison()", None).name, comparison)
    return comparison


def comparison_by_name(
    names: str | None,
    settings: ReplySettings,
    search_path: tuple[str, ...] = (),
    judges: Judges | None = None,
) -> Comparison:
    """Return the comparison of one or several names, with commas between them.

    Args:
        names: shipped or registered ones, ``module:function``; ``None`` = `DEFAULT`.
        settings: what else is said of it: threshold, cited ids, further fallbacks.
        search_path: folders in which a module is looked for; empty = the working folder.
        judges: those of the process, for what they know and may be asked; ``None`` = a new one.

    Raises:
        UserError: there is no such comparison, the nearest name is said; or a threshold is given
            that nothing is held against.
    """
    listed = [name.strip() for name in (names or DEFAULT).split(",")]
    # A judge is asked about what all others agree on, wherever it is named.
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
            f"a threshold is for comparisons that have distances, and {', '.join(listed)} "
            f"{'have' if len(listed) > 1 else 'has'} none: add {' or '.join(_MEASURES)}, or a "
            "function of yours that returns one"
        )
    ships = (name in COMPARISONS.shipped or name.startswith(_FOREIGN) for name in listed)
    if listed == ["exact"] or not all(ships):
        return parts[0] if len(parts) == 1 else AllOf(parts)
    return AllOf(parts, settings.fallback, echoes="exact" in listed)


def as_comparison(given: object, where: str, settings: ReplySettings) -> Comparison:
    """Return what somebody gave as a comparison: a name, a function, an object or a class.

    Messages begin with ``where`` it comes from.
    """
    if isinstance(given, str):
        return comparison_by_name(given, settings)
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
        raise UserError(f"{error} Your own is named as package.module:function.{hint}")
    found = COMPARISONS.find(name)
    return _own(found, f"the comparison {name!r}", settings.threshold, name)


def _foreign(name: str, settings: ReplySettings) -> Comparison:
    if name in ("", SHIPPED):
        return SameMeaning(None, settings.threshold)
    if settings.threshold is None:
        raise UserError(
            f"embedding:{name} has no threshold of its own: give one as "
            f"embedding:{name}:threshold=DISTANCE; "
            f"`dstfuzz calibrate --embedding={name} --data=...` says which"
        )
    from pytest_dstfuzz.comparisons.foreign import SentenceEmbedding  # noqa: PLC0415 - torch

    return SameMeaning(SentenceEmbedding(name), settings.threshold)


def _own(given: Any, where: str, threshold: float | None, called: str = "") -> Comparison:
    """Return somebody else's comparison, checked whenever it answers."""
    if isinstance(given, type):
        with blamed(f"{where}: {given.__name__}()"):
            given = given()
    if type(given).__module__.startswith(f"{__package__}."):
        return given  # type: ignore[no-any-return]  # one of ours
    if not hasattr(given, "compare") and callable(given):
        name = called or re.sub(r"[^\w.]", "", getattr(given, "__name__", type(given).__name__))
        return OwnFunction(given, name, threshold)
    COMPARISONS.check_shape(given, where, "compare(path, before, found, asked)", "a Compared")
    return CheckedComparison(given, where)
