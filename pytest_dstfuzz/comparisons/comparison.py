"""The protocol of a comparison, equality of texts, and checks of user comparisons."""

from __future__ import annotations

import inspect
import unicodedata
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from numbers import Real
from typing import Any, Final, NamedTuple, Protocol

from pytest_dstfuzz.dialogue.calls import REPLY, Outcome
from pytest_dstfuzz.dialogue.dialogues import Context, ContextJudge, Exchange
from pytest_dstfuzz.errors import DstFuzzError, UserError, redact_text
from pytest_dstfuzz.own_code import code_of
from pytest_dstfuzz.own_values import digest_with_values, values_of
from pytest_dstfuzz.printable import format_count, shorten_text
from pytest_dstfuzz.registry import blame_errors
from pytest_dstfuzz.trackers.calls import CallJudge


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """The result of a comparison of two texts."""

    same: bool
    #: The distance from 0 (the same) to 2; ``None`` if the comparison computes no distances.
    distance: float | None = None
    #: The difference in one readable line: ``1969 / 1970``; empty if there is none.
    why: str = ""
    #: Whether the comparison could not decide. If so, ``same`` is true, and the run reports no
    #: violation, even if the text should have changed.
    unsure: bool = False


class TextPair(NamedTuple):
    """Two texts that a run will compare: the arguments of `Comparison.compare`."""

    path: str
    before: str
    found: str
    asked: Context


class Comparison(Protocol):
    """Decides whether two texts are equivalent.

    A subclass must define ``name`` and ``compare``. All other members have defaults. The result
    must depend only on the arguments. A text must agree with itself. Two texts must get the same
    verdict in both orders. `pytest_dstfuzz.testing.check_comparison` checks these rules.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in reports, with the threshold if there is one."""

    @property
    def exact(self) -> bool:
        """Whether the comparison is plain equality, so that no answer is normalised."""
        return False

    @property
    def identity(self) -> str:
        """Everything that affects results, for the keys of caches and baselines.

        Depending on the comparison, this is the name, the threshold, a digest of the weights, or
        the source of a function.
        """
        return self.name

    def align(self, before: Outcome, found: Outcome) -> Outcome:
        """Return ``found`` with its items under the paths of ``before``.

        By default, return ``found`` unchanged.
        """
        del before
        return found

    def one_sided(self, path: str, *, gone: bool) -> str:
        """Return an explanation for a path that only one answer has; ``""`` if none is needed.

        Args:
            path: the path in the answer.
            gone: true if only the clean answer has the path, false if only the other answer has it.
        """
        del path, gone
        return ""

    @property
    def context_judge(self) -> ContextJudge | None:
        """The language model of the comparison, or ``None`` if it has none."""
        return None

    def prepare(self, pairs: Sequence[TextPair]) -> None:
        """Prepare the comparison of all given pairs, because one batch is cheaper than many."""
        del pairs

    @abstractmethod
    def compare(self, path: str, before: str, found: str, asked: Context) -> ComparisonResult:
        """Return whether ``found`` is equivalent to ``before``.

        Args:
            path: the path of the texts in the answers, such as ``reply``.
            before: the reference, such as the reply to the clean turn.
            found: the other text.
            asked: the clean context of the answers. Its last utterance is the question.
        """


class _Equality(Comparison):
    """Equality of texts, the default for belief states."""

    name = "equal"
    exact = True

    def compare(self, path: str, before: str, found: str, asked: Context) -> ComparisonResult:
        """Return whether both texts are equal."""
        del path, asked
        return ComparisonResult(before == found)


class Exact(Comparison):
    """Equality except for blanks and for the Unicode normalisation of letters."""

    name = "exact"

    def compare(self, path: str, before: str, found: str, asked: Context) -> ComparisonResult:
        """Return whether both texts are equal after normalisation."""
        del path, asked
        return ComparisonResult(bare(before) == bare(found))


#: Plain equality, the comparison of states; no answer is normalised.
EXACT: Final[Comparison] = _Equality()


@lru_cache(maxsize=1 << 14)
def bare(text: str) -> str:
    r"""Return a text in NFC, with single blanks and without blanks at the ends.

    >>> bare("  It  is\n open. ")
    'It is open.'
    """
    return " ".join(unicodedata.normalize("NFC", text).split())


#: Unusual texts. The check of a comparison uses them in addition to the given texts.
ODD: Final = (
    *("", " ", "?", "\U0001f642", "Ja, natürlich. Да. はい。", "\u0645\u0631\u062d\u0628\u0627"),
    *("10:30", "word " * 2000, "x" * 10_000),
)
_ASKED: Final = Context((Exchange("", "what can you tell me"),))
_SHOWN: Final = 20
#: Maximum number of texts for which all pairs are compared. If there are more texts, each is
#: compared only with the next two.
_ALL_PAIRS: Final = 40


@dataclass(frozen=True, slots=True)
class ComparisonCheck:
    """The result of the checks of a comparison."""

    name: str
    #: The number of compared pairs.
    asked: int
    #: The number of pairs with the verdict "same".
    same: int
    #: One sentence for each finding.
    findings: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether there are no findings."""
        return not self.findings

    def assert_passed(self) -> None:
        """Raise an `AssertionError` with the findings, if there are any."""
        if self.findings:
            told = "\n".join(f"  {finding}" for finding in self.findings[:_SHOWN])
            count = len(self.findings)
            rules = format_count(count, "rule")
            raise AssertionError(f"the comparison {self.name!r} breaks {rules}:\n{told}")


def check_comparison_laws(comparison: Comparison, texts: Sequence[str]) -> ComparisonCheck:
    """Compare given and unusual texts with each other and themselves, twice in both orders."""
    own = list(dict.fromkeys(texts))
    near = range(1, len(own)) if len(own) <= _ALL_PAIRS else range(1, 3)
    pairs = [(own[at], own[at + by]) for by in near for at in range(len(own) - by)]
    pairs += [(odd, "It is open until 6 pm.") for odd in ODD] + list(combinations(ODD[:-2], 2))
    findings: list[str] = []
    comparison.prepare([TextPair(REPLY, *pair, _ASKED) for pair in pairs])
    same = 0
    for text in [*own, *ODD]:
        alone = _asked(comparison, text, text, findings)
        if alone is not None and not alone.same:
            findings.append(f"{_show_text(text)} does not agree with itself ({alone.why})")
    for one, other in pairs:
        there, back, again = (
            _asked(comparison, *pair, findings)
            for pair in ((one, other), (other, one), (one, other))
        )
        if there is None or back is None or again is None:
            continue
        same += there.same
        if (there.same, there.distance) != (again.same, again.distance):
            findings.append(f"{_both(one, other)} get another verdict when they are compared again")
        if there.same != back.same:
            told = "agree in one order only: the verdict depends on the order of the texts"
            findings.append(f"{_both(one, other)} are {told}")
    outcome = Outcome({REPLY: "It is open."})
    if dict(comparison.align(outcome, outcome)) != dict(outcome):
        findings.append("align() changes an answer when it is compared with itself")
    return ComparisonCheck(comparison.name, len(pairs), same, tuple(dict.fromkeys(findings)))


def _asked(
    comparison: Comparison, one: str, other: str, findings: list[str]
) -> ComparisonResult | None:
    try:
        return comparison.compare(REPLY, one, other, _ASKED)
    except DstFuzzError as error:
        findings.append(f"{_both(one, other)}: {error}")
        return None


def _both(one: str, other: str) -> str:
    return f"{_show_text(one)} and {_show_text(other)}"


def _show_text(text: str) -> str:
    return redact_text(repr(shorten_text(text, 40)))


#: Maximum distance of two texts.
FARTHEST: Final = 2.0
#: Number of arguments of a function that also takes the context.
_WITH_CONTEXT: Final = 3


class OwnFunction(Comparison):
    """A user's function: ``same(before, found)``, or ``same(before, found, asked)``.

    It returns a boolean, a `ComparisonResult`, or the distance of the texts from 0 to 2. Two texts
    agree if their distance is at most the threshold.
    """

    def __init__(
        self, function: Callable[..., object], called: str, threshold: float | None
    ) -> None:
        self._function = function
        self._called = called
        self._threshold = threshold
        self._takes = _arguments(function, called)
        #: As it is now: it may import more or change its values, but must keep its identity.
        self._digest = digest_of(function, called)

    @property
    def name(self) -> str:
        """The name that the user gave, with the threshold."""
        held = "" if self._threshold is None else f"<={self._threshold:g}"
        return f"{self._called}{held}"

    @property
    def identity(self) -> str:
        """The name, and a digest of the function's code and values."""
        return f"{self.name}#{self._digest}"

    def compare(self, path: str, before: str, found: str, asked: Context) -> ComparisonResult:
        """Return the checked result of the function."""
        del path
        arguments = (before, found, asked)[: self._takes]
        with blame_errors(f"the comparison {self._called!r}"):
            answer = _of_python(self._function(*arguments))
        return self._taken(answer)

    def _taken(self, answer: object) -> ComparisonResult:
        if isinstance(answer, bool):
            return ComparisonResult(answer)
        if isinstance(answer, ComparisonResult):
            return check_result(answer, self._called)
        if not isinstance(answer, Real):
            raise UserError(
                f"the comparison {self._called!r} returned {_show(answer)}: it must return True "
                f"or False, a distance from 0 to {FARTHEST:g}, or a ComparisonResult"
            )
        distance = _check_distance(answer, self._called)
        if self._threshold is None:
            raise UserError(
                f"the comparison {self._called!r} returned a distance, {distance:g}, but has no "
                "threshold: give the largest distance of equivalent replies, as in "
                "NAME:threshold=0.5"
            )
        allowed = f"{distance:.2f} apart, {self._threshold:g} allowed"
        same = distance <= self._threshold
        return check_result(ComparisonResult(same, distance, "" if same else allowed), self._called)


class CheckedComparison(Comparison):
    """A user's object with a name and ``compare``, whose results are checked."""

    def __init__(self, comparison: Any, where: str) -> None:
        self._wrapped = comparison
        self._name = str(comparison.name)
        self._digest = digest_of(type(comparison), holder=comparison)
        if any(mark in self._name for mark in ", '\"\n"):
            raise UserError(
                f"{where}: the name {self._name!r} has a space, a comma or a quote, which lists of "
                "comparisons do not allow: choose another name"
            )

    @property
    def name(self) -> str:
        """The name of the object."""
        return self._name

    @property
    def identity(self) -> str:
        """The object's own identity, or its name with a digest of its code and values."""
        own = getattr(self._wrapped, "identity", self._name)
        return str(own) if own != self._name else f"{own}#{self._digest}"

    @property
    def context_judge(self) -> Any:
        """The object's own judge of contexts, if it has one."""
        return getattr(self._wrapped, "context_judge", None)

    def align(self, before: Outcome, found: Outcome) -> Outcome:
        """Return the checked result of the object's ``align``, if it has one."""
        own = getattr(self._wrapped, "align", None)
        if own is None:
            return found
        with blame_errors(f"align() of the comparison {self._name!r}"):
            aligned = own(before, found)
        if not isinstance(aligned, Outcome):
            raise UserError(
                f"align() of the comparison {self._name!r} returned {_show(aligned)}: "
                "it must return an Outcome"
            )
        return aligned

    def prepare(self, pairs: Sequence[TextPair]) -> None:
        """Call ``prepare`` if the object has it."""
        own = getattr(self._wrapped, "prepare", None)
        if own is not None:
            with blame_errors(f"prepare() of the comparison {self._name!r}"):
                own(pairs)

    def compare(self, path: str, before: str, found: str, asked: Context) -> ComparisonResult:
        """Return the checked result of the object."""
        with blame_errors(f"compare() of the comparison {self._name!r}"):
            answer = self._wrapped.compare(path, before, found, asked)
        if not isinstance(answer, ComparisonResult):
            raise UserError(
                f"compare() of the comparison {self._name!r} returned {_show(answer)}: "
                "it must return a ComparisonResult"
            )
        return check_result(answer, self._name)


def check_result(answer: ComparisonResult, called: str) -> ComparisonResult:
    """Check the values in a result, and return the result."""
    for name, value in (("same", answer.same), ("unsure", answer.unsure)):
        if type(value).__name__ not in {"bool", "bool_"}:  # The second is of numpy.
            raise UserError(
                f"the comparison {called!r} returned a ComparisonResult with {name}={value!r}: it "
                "must be True or False"
            )
    if answer.distance is not None:
        _check_distance(answer.distance, called)
    return answer


def _check_distance(distance: Any, called: str) -> float:
    """Return a distance as a number. Raise an error if it is none."""
    # Not a number and infinity are out of the range, too.
    is_number = isinstance(distance, Real)
    if is_number and 0 <= distance <= FARTHEST:
        return float(distance)
    raise UserError(
        f"the comparison {called!r} returned the distance {_show(distance)}: it must be a number "
        f"from 0 (the same) to {FARTHEST:g}"
    )


def _of_python(answer: object) -> object:
    """Return a number of numpy as one of Python. An array with several numbers raises an error."""
    is_of_numpy = type(answer).__module__ == "numpy" and hasattr(answer, "item")
    return answer.item() if is_of_numpy else answer  # type: ignore[attr-defined]  # see above


def _arguments(function: Callable[..., object], called: str) -> int:
    """Return the number of arguments: 3 if the function also takes the context, otherwise 2."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return 2  # This is a builtin without a signature.
    for count in (2, _WITH_CONTEXT):
        try:
            signature.bind(*range(count))
        except TypeError:
            continue
        return count
    raise UserError(
        f"the comparison {called!r} cannot be called with two texts: write "
        "def same(before, found), or def same(before, found, asked)"
    )


def digest_of(thing: object, name: str = "", holder: object = None) -> str:
    """Return 12 hexadecimal digits of a digest of an object's source, the code it uses, and values.

    The source distinguishes functions of one file with equal names. For the other code see
    `code_of`. ``holder`` is the object with the values, see `values_of`; by default ``thing``.
    """
    try:
        text = inspect.getsource(thing)  # type: ignore[arg-type]  # raises for other objects
    except (OSError, TypeError):
        text = f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', '')}"
    held = thing if holder is None else holder
    return digest_with_values(f"{text}\n{code_of(held, name)}", values_of(held))


def _show(answer: object) -> str:
    return "nothing" if answer is None else redact_text(shorten_text(repr(answer), 60))


def as_before(comparison: Comparison, asked: Context, before: Outcome, found: Outcome) -> Outcome:
    """Return ``found`` with the paths and texts of ``before`` for all equivalent texts."""
    aligned = comparison.align(before, found)

    def told(path: str, text: str) -> str:
        known = before.get(path)
        if known is None:
            return text
        return known if _same(comparison, path, known, text, asked) else text

    return Outcome({path: told(path, text) for path, text in aligned.items()})


def as_admitted(
    comparison: Comparison,
    asked: Context,
    admitted: Mapping[str, Sequence[str]],
    found: Outcome,
) -> Outcome:
    """Return ``found``. Replace each text by the first equivalent admitted text."""

    def told(path: str, text: str) -> str:
        wanted = admitted.get(path, ())
        return next((one for one in wanted if _same(comparison, path, one, text, asked)), text)

    return Outcome({path: told(path, text) for path, text in found.items()})


def _same(comparison: Comparison, path: str, one: str, other: str, asked: Context) -> bool:
    return one == other or comparison.compare(path, one, other, asked).same


def call_judge(comparison: Comparison) -> CallJudge:
    """Return a judge that matches an assistant's calls with the recorded ones by a comparison."""
    return CallJudge(
        comparison.name,
        lambda asked, recorded, found: as_before(comparison, asked, recorded, found),
    )
