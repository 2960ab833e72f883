"""The tracker protocol and checks of tracker answers."""

from __future__ import annotations

import dis
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from numbers import Real
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Final, Protocol, cast, runtime_checkable

from pytest_dstfuzz.dialogue.calls import Outcome, OutcomeKind
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.errors import GivenUpError, UserError, message_of, passes_through
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.printable import SHOWN, repr_of, shorten_text

__all__ = ["Prediction", "Tracker", "fingerprint_of", "gini_impurity"]

#: The start of the names of this package's modules.
_OURS: Final = f"{__name__.partition('.')[0]}."
#: Attributes that Python adds to a class.
_OF_CLASSES: Final = frozenset({"_abc_impl", "_is_protocol", "_is_runtime_protocol"})
#: How far a copied fingerprint is looked for, and among how many objects at each distance.
_DEPTH: Final = 3
_MOST_USED: Final = 500
#: Types of objects that are no bots.
_NO_BOTS: Final = (str, bytes, int, float, complex, type, ModuleType, type(None))
_DUNDER: Final = re.compile("__.*__").fullmatch

#: Name of a tracker from a fixture, if the fixture gives it none.
NAMELESS: Final = "the suite's own tracker"
#: Advice for a tracker that gives different answers to the same context.
VOTE: Final = (
    'declare it as not repeatable (repeatable = False on the tracker, "repeatable": false in the '
    "description of a service, or --dst-repeatable=no): a majority vote then decides each answer"
)


def gini_impurity(distribution: Sequence[float]) -> float:
    """Return the Gini impurity ``1 - sum p_i^2`` of a probability distribution, in [0, 1).

    Public, for trackers that build their own `Prediction.impurities`.
    """
    # Rounding can make the probabilities of a confident tracker add up to more than 1. NaN must
    # survive so that it is rejected later: `max` returns its first argument if that is NaN.
    return max(1.0 - sum(p * p for p in distribution), 0.0)


@dataclass(frozen=True, slots=True)
class Prediction:
    """The answer of a system to a context: a belief state, a reply or tool calls."""

    state: Outcome
    #: Slot -> Gini impurity, averaged over the slot's distributions (gate, tokens). ``None`` if the
    #: tracker has no probabilities.
    impurities: Mapping[str, float] | None = None
    #: The reply to the user, or ``None`` if there is none.
    reply: str | None = None
    #: The tool calls of the next message, see `calls_outcome`. ``None`` if the tracker does not
    #: report calls.
    calls: Outcome | None = None
    #: Number of malformed answers before this one. The campaign counts them.
    malformed: int = field(default=0, compare=False, repr=False)

    @classmethod
    def from_distributions(
        cls, state: Outcome, distributions: Mapping[str, Sequence[Sequence[float]]]
    ) -> Prediction:
        """Build a prediction from each slot's probability distributions.

        This is public for adapters of trackers that have probabilities. (TRADE computes its
        impurities on its device.) Only the impurities are stored. A campaign holds thousands of
        predictions, and a distribution over a vocabulary is large.
        """
        impurities = {
            slot: sum(gini_impurity(d) for d in parts) / len(parts)
            for slot, parts in sorted(distributions.items())
            if parts
        }
        return cls(state, impurities)


@runtime_checkable
class Tracker(Protocol):
    """A dialogue state tracker."""

    def predict(self, contexts: Sequence[Context]) -> Sequence[Prediction]:
        """Return one prediction for each context, in their order.

        The result must be deterministic. It must not depend on the rest of the batch or on earlier
        calls. A mapping slot -> value counts as a prediction without probabilities. Trackers need
        not normalise their states. The caller applies the normalisation of the data, which also
        drops values such as ``none``.

        If only one context has no answer, the tracker may return a `TrackerError` in the place of
        its prediction. If the tracker raises an exception, the whole batch fails, and the caller
        requests parts of it again.
        """
        ...


class BatchInterrupt(KeyboardInterrupt):
    """Ctrl-C during a batch.

    A tracker that processes a batch one by one raises this instead of ``KeyboardInterrupt``, so
    that no answer is lost.

    Attributes:
        answers: place in the batch -> the answer for that place.
    """

    def __init__(self, answers: Mapping[int, object]) -> None:
        super().__init__()
        self.answers = answers


@dataclass(frozen=True, slots=True)
class Usage:
    """The answers, tokens and cost of a service, as the service counts them."""

    answers: int = 0
    #: Answers for which the service returned no token counts.
    uncounted: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    #: In the currency of the prices. ``None`` if the prices are not known.
    cost: float | None = None

    @property
    def tokens(self) -> int:
        """Number of prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            self.answers + other.answers,
            self.uncounted + other.uncounted,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            sum(costs) if costs else None,
        )

    def __sub__(self, before: Usage) -> Usage:
        return Usage(
            self.answers - before.answers,
            self.uncounted - before.uncounted,
            self.prompt_tokens - before.prompt_tokens,
            self.completion_tokens - before.completion_tokens,
            None if self.cost is None else self.cost - (before.cost or 0.0),
        )


def read_attribute(thing: object, name: str, default: object = None) -> object:
    """Return an attribute of a tracker, or the default if it cannot be read.

    In a user's tracker, the attribute may be a property that raises.
    """
    try:
        return getattr(thing, name, default)
    except BaseException as error:
        if passes_through(error):
            raise
        return default


def read_parameters(function: object) -> list[inspect.Parameter] | None:
    """Return the parameters of a function or of an object that can be called, without ``self``.

    The result is ``None`` if they cannot be determined, as for some objects implemented in C.
    """
    called = cast("type[object]", function)
    try:
        return [*inspect.signature(called).parameters.values()]
    except (TypeError, ValueError):
        return None
    except BaseException as error:
        if passes_through(error):
            raise
        # Python asks the class, and not the object, for the method that a call runs.
        found = read_parameters(type(called).__call__)
        return None if found is None else found[1:]


def usage_of(tracker: object) -> Usage | None:
    """Return the usage of a tracker, including the preflight calls."""
    usage = read_attribute(tracker, "usage")
    # In a tracker that is not ours, the attribute may be anything.
    return usage if isinstance(usage, Usage) else None


@dataclass(frozen=True, slots=True)
class Disagreement:
    """The number of contexts that a non-repeatable tracker answered in different ways."""

    #: Contexts for which the tracker was asked ``answers`` times and answered each time.
    contexts: int
    answers: int
    #: Contexts whose answers were not all the same.
    differed: int

    def __add__(self, other: Disagreement) -> Disagreement:
        return Disagreement(
            self.contexts + other.contexts, self.answers, self.differed + other.differed
        )


def is_repeatable(
    tracker: object, said: bool | None = None, outcome: OutcomeKind = "state"
) -> bool:
    """Return whether a tracker must give the same answer to the same context.

    A state tracker must be repeatable, unless it or its wrapped object sets ``repeatable = False``.
    Set this only for services that cannot be made repeatable. Then the run measures how often their
    answers differ. A system that replies or calls tools must be repeatable only if it sets
    ``repeatable = True``.

    The user's own statement ``said`` overrides the attribute, unless it is ``None``.
    """
    if said is not None:
        return said
    told = says_repeatable(tracker)
    return told is not False and (KINDS[outcome].has_slots or told is True)


def says_repeatable(tracker: object) -> bool | None:
    """Return ``repeatable`` of a tracker or its wrapped object; ``None`` if unset."""
    things = (tracker, read_attribute(tracker, "wrapped", tracker))
    told = [read_attribute(thing, "repeatable") for thing in things]
    return False if False in told else True if True in told else None


def fingerprint_of(tracker: object) -> str | None:
    """Return the identity that a tracker declares in its attribute ``fingerprint``.

    The text must change whenever the tracker might give another answer to some context. Examples
    are the hash of its weights and of the code that reads them, or the version of a service.
    Trackers with the same name and fingerprint share cached predictions across runs. If the tracker
    declares no fingerprint, return ``None``: its predictions are then never reused in another run.

    Only the adapters of this package pass on the fingerprint of their wrapped object. A user's
    object that wraps another may change its answers, so it needs its own fingerprint. A fingerprint
    does not count if ``__getattr__`` finds it in the inner object, if `functools.wraps` or another
    decorator copies it, or if a class inherits it and overrides something else.
    """
    things = (one for one in _fingerprinted(tracker) if not _owner_of_fingerprint(one))
    texts = (read_attribute(one, "fingerprint") for one in things)
    # In a tracker that is not ours, the attribute may be anything.
    return next((text for text in texts if isinstance(text, str) and text.strip()), None)


def _fingerprinted(tracker: object) -> Iterator[object]:
    """Yield the tracker and its wrapped object if they declare a fingerprint."""
    ours = type(tracker).__module__.startswith(_OURS)
    for thing in (tracker, read_attribute(tracker, "wrapped")) if ours else (tracker,):
        try:
            inspect.getattr_static(thing, "fingerprint")
        except AttributeError:
            continue
        yield thing


def _owner_of_fingerprint(thing: object) -> str:
    """Return the owner of an object's fingerprint, or ``""`` if it is the object itself."""
    if _is_copied(thing):
        return "the wrapped object: give the wrapper its own fingerprint"
    kind = thing if isinstance(thing, type) else type(thing)
    if base := _base_with_fingerprint(thing, kind):
        return (
            f"the class {base.__name__}, and {kind.__name__} overrides a part of this class: give "
            f"{kind.__name__} its own fingerprint"
        )
    return ""


def _is_copied(thing: object) -> bool:
    """Return whether the fingerprint of an object may be that of an object that it uses.

    `functools.update_wrapper` copies the fingerprint, and a proxy of `wrapt` hands it out. A
    decorator that copies the attributes itself leaves the inner object only in the closure, the
    defaults, the global names or the attributes of the outer one.
    """
    text = read_attribute(thing, "fingerprint")
    if not isinstance(text, str) or not text:
        return False
    if text == read_attribute(read_attribute(thing, "__wrapped__"), "fingerprint"):
        return True
    if not isinstance(thing, FunctionType | partial) and not _is_set_from_outside(thing):
        return False
    return any(text == _static_fingerprint(one) for one in _used_by(thing))


def _is_set_from_outside(thing: object) -> bool:
    """Return whether an object has a fingerprint that none of its methods sets by name."""
    own, kind = read_attribute(thing, "__dict__"), type(thing)
    if isinstance(thing, type) or kind.__module__.startswith(_OURS) or not isinstance(own, dict):
        return False
    by_name = any(map(_sets_fingerprint, kind.__mro__)) or any(
        map(_takes_fingerprint, kind.__mro__)
    )
    return "fingerprint" in own and not by_name


def _takes_fingerprint(kind: type) -> bool:
    """Return whether the ``__init__`` of a class has the fingerprint as an argument."""
    made = vars(kind).get("__init__")
    return isinstance(made, FunctionType) and "fingerprint" in made.__code__.co_varnames


def _static_fingerprint(thing: object) -> object:
    """Return the fingerprint of an object without a call of a user's ``__getattr__``."""
    try:
        found = inspect.getattr_static(thing, "fingerprint")
    except AttributeError:
        return None
    return found if isinstance(found, str) else read_attribute(thing, "fingerprint")


def _used_by(thing: object) -> Iterator[object]:
    """Yield the objects that an object uses, nearest first, without itself."""
    seen, near = {id(thing)}, [thing]
    for _ in range(_DEPTH):
        found = islice((part for one in near for part in _parts_of(one)), _MOST_USED)
        near = []
        for one in found:
            # A class or a module is used by many.
            if id(one) not in seen and not isinstance(one, _NO_BOTS):
                seen.add(id(one))
                near.append(one)
        yield from near


def _parts_of(thing: object) -> Iterator[object]:
    """Yield the objects in a function, a container, a partial or another object."""
    match thing:
        case FunctionType():
            for cell in thing.__closure__ or ():
                with suppress(ValueError):  # It is not set yet.
                    yield cell.cell_contents
            yield from thing.__defaults__ or ()
            yield from (thing.__kwdefaults__ or {}).values()
            yield from _globals_of(thing)
        case MethodType():
            yield from (thing.__self__, thing.__func__)
        case partial():
            yield from (thing.func, *thing.args, *thing.keywords.values())
        case dict():
            yield from [*thing.values()]
        case list() | tuple() | set() | frozenset():
            yield from [*thing]
    with suppress(AttributeError, TypeError):
        own = object.__getattribute__(thing, "__dict__")
        yield from [*own.values()]


def _globals_of(function: FunctionType) -> Iterator[object]:
    """Yield the objects that a function uses by a global name, or by a name in a module."""
    codes, names = [function.__code__], dict[str, None]()
    for code in codes:
        codes += [one for one in code.co_consts if isinstance(one, CodeType)]
        names |= dict.fromkeys(code.co_names)
    for name in names:
        found = function.__globals__.get(name)
        if isinstance(found, ModuleType):
            known = ModuleType.__getattribute__(found, "__dict__")
            yield from (known[other] for other in names if other in known)
        else:
            yield found


def _base_with_fingerprint(thing: object, kind: type) -> type | None:
    """Return the base class that states the fingerprint for other code than that of ``kind``.

    A class that overrides an attribute or a method of this base class may give other answers.
    """
    if kind.__module__.startswith(_OURS):
        return None
    own = None if thing is kind else read_attribute(thing, "__dict__")
    is_set = isinstance(own, dict) and "fingerprint" in own
    states = _sets_fingerprint if is_set else _has_fingerprint
    base = next((one for one in kind.__mro__ if states(one)), None)
    if base is None:  # Code outside of the classes has set it.
        return None
    before = kind.__mro__[: kind.__mro__.index(base)]
    if any(map(_passes_fingerprint, before)):
        return None
    known = {name for one in base.__mro__[:-1] for name in vars(one)}
    names = {name for one in before for name in vars(one)} & known - _OF_CLASSES
    return base if any(not _DUNDER(name) or name == "__call__" for name in names) else None


def _has_fingerprint(kind: type) -> bool:
    return "fingerprint" in vars(kind)


def _passes_fingerprint(kind: type) -> bool:
    """Return whether the ``__init__`` of a class names the fingerprint, for its base class."""
    made = vars(kind).get("__init__")
    if not isinstance(made, FunctionType):
        return False
    given = (one for one in made.__code__.co_consts if isinstance(one, tuple))
    return "fingerprint" in made.__code__.co_names or any("fingerprint" in one for one in given)


def _sets_fingerprint(kind: type) -> bool:
    """Return whether a method of a class, such as ``__init__``, sets the fingerprint."""
    codes = [one.__code__ for one in vars(kind).values() if isinstance(one, FunctionType)]
    return any(
        step.opname == "STORE_ATTR" and step.argval == "fingerprint"
        for code in codes
        if "fingerprint" in code.co_names
        for step in dis.get_instructions(code)
    )


def fingerprint_problem(tracker: object) -> str:
    """Return why the attribute ``fingerprint`` of a tracker is unusable, or ``""``.

    A missing attribute, ``None`` and ``""`` are not problems: they mean that there is no
    fingerprint.
    """
    for thing in _fingerprinted(tracker):
        try:
            found = getattr(thing, "fingerprint", None)
        except BaseException as error:
            if passes_through(error):
                raise
            return f"it cannot be read ({type(error).__name__}: {message_of(error)})"
        if found is not None and not isinstance(found, str):
            return f"it is {kind_of(found)}"
        if found and (owner := _owner_of_fingerprint(thing)):
            return f"it belongs to {owner}"
    return ""


def service_model_of(tracker: object) -> str:
    """Return the name of a service's model, or ``""`` for other trackers.

    For adapters of this package, the wrapped object counts.
    """
    thing: object | None = tracker
    while thing is not None and type(thing).__module__.startswith(_OURS):
        name = read_attribute(thing, "service_model")
        if isinstance(name, str):
            return name
        thing = read_attribute(thing, "wrapped")
    return ""


def notes_of(tracker: object) -> tuple[str, ...]:
    """Return the sentences for the user from the attribute ``notes`` of a tracker."""
    notes = read_attribute(tracker, "notes", ())
    # In a tracker that is not ours, the attribute may be anything.
    return tuple(n for n in notes if isinstance(n, str)) if isinstance(notes, tuple) else ()


@runtime_checkable
class StatefulTracker(Protocol):
    """A tracker that keeps its state from turn to turn."""

    def reset(self) -> None:
        """Forget the dialogue."""
        ...

    def update(self, system: str, user: str) -> Mapping[str, str]:
        """Process one exchange and return the belief state after it."""
        ...


class UnloadedTracker:
    """A placeholder for a tracker that is loaded at the first prediction.

    If all answers are cached from an earlier run, the tracker is never loaded. That saves the
    seconds for its weights and for their library.
    """

    def __init__(self, fingerprint: str, load: Callable[[], Tracker]) -> None:
        """Store the fingerprint of the tracker and the function that loads it."""
        self.fingerprint = fingerprint
        self._load = load
        self._loaded: Tracker | None = None

    def load(self) -> Tracker:
        """Return the tracker, loaded once.

        Raises:
            UserError: the tracker cannot be loaded.
        """
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded

    def predict(self, contexts: Sequence[Context]) -> Sequence[Prediction]:
        """Predict with the loaded tracker.

        Raises:
            GivenUpError: the tracker cannot be loaded. Callers already tried to load it before the
                test.
        """
        try:
            tracker = self.load()
        except UserError as error:
            raise GivenUpError(f"the tracker can no longer be loaded: {error}") from error
        return tracker.predict(contexts)


#: Most characters of a slot or a value. The state of every variant is stored and reported.
_LONGEST_TEXT: Final = 10_000
_LONGEST_REPLY: Final = 100_000
#: How far below 0 the impurity of a certain slot may be in single precision.
_ROUNDING: Final = 1e-6


def reply_problem(text: object) -> str:
    """Return the problem with a reply, or ``""``."""
    if text is None:
        return "no reply"
    if not isinstance(text, str):
        return f"{kind_of(text)} instead of a text as the reply"
    if not text.strip():
        return "an empty reply"
    if len(text) > _LONGEST_REPLY:
        return f"a reply of {len(text):,} characters; at most {_LONGEST_REPLY:,} are allowed"
    if not text.isascii() and encodable(text) != text:
        shown = shorten_text(repr(text), SHOWN)
        return f"{shown}, which contains a lone surrogate (half of a character)"
    return ""


def state_problem(state: object) -> str:
    """Return the problem with a belief state, or ``""``."""
    if not isinstance(state, Mapping):
        return f"{kind_of(state)} instead of a belief state"
    for slot, value in state.items():
        if not isinstance(slot, str):
            return f"the slot {repr_of(slot)}, which is {kind_of(slot)}; slots must be strings"
        if not isinstance(value, str):
            return f"{kind_of(value)} as the value of {slot!r}; values must be strings"
        for text in (slot, value):
            if len(text) > _LONGEST_TEXT:
                what = "slot name" if text is slot else f"value of {shorten_text(slot, SHOWN)!r}"
                return (
                    f"a {what} of {len(text):,} characters; at most {_LONGEST_TEXT:,} are allowed "
                    "in a belief state"
                )
            if not text.isascii() and encodable(text) != text:
                return f"{text!r}, which contains a lone surrogate (half of a character)"
    return ""


def impurity_problem(impurities: object) -> str:
    """Return the problem with the impurities of a prediction, or ``""``."""
    if impurities is None:
        return ""
    if not isinstance(impurities, Mapping):
        return f"{kind_of(impurities)} instead of a mapping slot -> impurity"
    for slot, value in impurities.items():
        if not isinstance(slot, str):
            return f"an impurity of {slot!r}, which is {kind_of(slot)}; slots must be strings"
        # Accept numpy scalars too, so that no tracker has to convert them.
        if not isinstance(value, Real) or not _is_share(value):
            return f"{value!r} as the impurity of {slot!r}; impurities must be from 0 to 1"
    return ""


def encodable(text: str) -> str:
    """Return the text with lone surrogates escaped, so that it can be encoded as UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _is_share(value: Real) -> bool:
    try:
        return -_ROUNDING <= float(value) <= 1.0
    except OverflowError:
        return False


def kind_of(value: object) -> str:
    """Return the type of a value with its article: ``a BeliefState``, ``an int``, ``None``."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
