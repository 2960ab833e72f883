"""The protocol of a tracker, and what may be wrong with its answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Final, Protocol, runtime_checkable

from pytest_dstfuzz.dialogue.calls import Outcome, OutcomeKind
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.errors import GivenUpError, UserError, message_of
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.printable import SHOWN, repr_of, shortened

__all__ = ["Prediction", "Tracker", "fingerprint_of"]


#: The name of a tracker that a fixture of the suite makes without one.
NAMELESS: Final = "the suite's own tracker"
#: What to do about a tracker that cannot repeat itself.
VOTE: Final = (
    'say so (repeatable = False on it, "repeatable": false in the description of a service, or '
    "--dst-repeatable=no), and its answers are put to the vote"
)


def gini_impurity(distribution: Sequence[float]) -> float:
    """Gini impurity ``1 - sum p_i^2`` of a probability distribution, in [0, 1).

    Public, for trackers that build their own `Prediction.impurities`.
    """
    # By rounding, the distribution of a certain tracker may add up to more than 1. What is not
    # a number stays so, to be refused: `max` keeps its first argument where nothing compares.
    return max(1.0 - sum(p * p for p in distribution), 0.0)


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a system answers to a context: what it believes then, replies, or calls."""

    state: Outcome
    #: Slot -> Gini impurity, averaged over the slot's distributions (gate, tokens);
    #: ``None`` where the tracker has no probabilities.
    impurities: Mapping[str, float] | None = None
    #: What it says to the user; ``None`` where it says nothing.
    reply: str | None = None
    #: The tool calls of its next message, see `calls_outcome`; ``None`` where it says nothing of
    #: them.
    calls: Outcome | None = None
    #: How many answers came before it that could not be read: the campaign counts them.
    malformed: int = field(default=0, compare=False, repr=False)

    @classmethod
    def from_distributions(
        cls, state: Outcome, distributions: Mapping[str, Sequence[Sequence[float]]]
    ) -> Prediction:
        """Build a prediction from each slot's probability distributions.

        Public, for the adapter of a tracker that has probabilities (TRADE computes its
        impurities on its device).
        Only the impurity is kept: a campaign holds many thousand predictions, and
        a distribution over a vocabulary is large.
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

        Must be deterministic, and independent of what else is in the batch and of what
        was asked before. A mapping slot -> value is a prediction without probabilities.
        States need no care with spellings: whoever asks brings them to the normalisation
        of the data, which leaves out ``none`` and its like.

        Where the tracker has no answer to one context of the batch, a `TrackerError` may
        stand in the place of that prediction: it is the failure of that context alone. An
        exception that is raised is one of the whole batch, and parts of it are asked again.
        """
        ...


class Interrupted(KeyboardInterrupt):
    """Ctrl-C came while a batch was asked for.

    A tracker that asks for the contexts of a batch one by one raises it in the place of the
    ``KeyboardInterrupt``, so that no answer is lost.

    Attributes:
        answers: place in the batch -> what would stand there.
    """

    def __init__(self, answers: Mapping[int, object]) -> None:
        super().__init__()
        self.answers = answers


@dataclass(frozen=True, slots=True)
class Usage:
    """What the answers of a service took, as the service counts it."""

    answers: int = 0
    #: Answers for which the service gave no counts.
    uncounted: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    #: Money, in the currency of the prices; ``None`` where those are not known.
    cost: float | None = None

    @property
    def tokens(self) -> int:
        """Tokens of prompts and answers together."""
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


def declared(thing: object, name: str, default: object = None) -> object:
    """Return an attribute that a tracker may have; the default where it cannot be read.

    In a tracker of a user an attribute of that name may be a property that raises.
    """
    try:
        return getattr(thing, name, default)
    except Exception:  # noqa: BLE001 - whatever a user's property raises
        return default


def usage_of(tracker: object) -> Usage | None:
    """Return what all answers of a tracker took, a preflight's too, by its attribute ``usage``."""
    usage = declared(tracker, "usage")
    # An attribute of that name may be anything in a tracker that is not ours.
    return usage if isinstance(usage, Usage) else None


@dataclass(frozen=True, slots=True)
class Disagreement:
    """How often a tracker that need not be repeatable answered one context in several ways."""

    #: Contexts that it was asked for, ``answers`` times each, and answered each time.
    contexts: int
    answers: int
    #: Those with answers that were not all the same.
    differed: int

    def __add__(self, other: Disagreement) -> Disagreement:
        return Disagreement(
            self.contexts + other.contexts, self.answers, self.differed + other.differed
        )


def is_repeatable(
    tracker: object, said: bool | None = None, outcome: OutcomeKind = "state"
) -> bool:
    """Whether a tracker must give the same answer to the same context.

    All must, but for one that says of itself, or of what it adapts, ``repeatable = False``: a
    service that cannot be made to. How often it disagrees with itself is measured. Of systems that
    reply or call tools only those must that say ``repeatable = True``.

    What the user ``said`` of it counts more; ``None`` = nothing.
    """
    if said is not None:
        return said
    told = says_repeatable(tracker)
    return told is not False and (KINDS[outcome].has_slots or told is True)


def says_repeatable(tracker: object) -> bool | None:
    """Return what a tracker, or what it adapts, says of repeating itself; ``None`` = nothing."""
    things = (tracker, declared(tracker, "wrapped", tracker))
    told = [declared(thing, "repeatable") for thing in things]
    return False if False in told else True if True in told else None


def fingerprint_of(tracker: object) -> str | None:
    """Return what a tracker declares as its identity, in its attribute ``fingerprint``.

    A text that is another one whenever the tracker might give another answer to any context:
    the hash of its weights and of the code that reads them, or the version of a service.
    Trackers with the same name and fingerprint share what was predicted, from run to run.
    ``None`` where neither the tracker nor what it adapts declares one: nothing that it
    predicted is used in another run.
    """
    texts = (declared(one, "fingerprint") for one in (tracker, declared(tracker, "wrapped")))
    # An attribute of that name may be anything in a tracker that is not ours.
    return next((text for text in texts if isinstance(text, str) and text), None)


def fingerprint_problem(tracker: object) -> str:
    """Return why the attribute ``fingerprint`` of a tracker is none, or ``""``.

    ``""`` too where it has no such attribute, or one that says that it has none: ``None``, "".
    """
    for thing in (tracker, declared(tracker, "wrapped")):
        try:
            found = getattr(thing, "fingerprint", None)
        except Exception as error:  # noqa: BLE001 - whatever a user's property raises
            return f"it cannot be read ({type(error).__name__}: {message_of(error)})"
        if found is not None and not isinstance(found, str):
            return f"it is of the type {type(found).__name__}"
    return ""


def notes_of(tracker: object) -> tuple[str, ...]:
    """Return the sentences that a tracker has for the user, in its attribute ``notes``."""
    notes = declared(tracker, "notes", ())
    # An attribute of that name may be anything in a tracker that is not ours.
    return tuple(n for n in notes if isinstance(n, str)) if isinstance(notes, tuple) else ()


@runtime_checkable
class StatefulTracker(Protocol):
    """A tracker that keeps its state from turn to turn."""

    def reset(self) -> None:
        """Forget the dialogue."""
        ...

    def update(self, system: str, user: str) -> Mapping[str, str]:
        """Take in one exchange and return the belief state after it."""
        ...


class UnloadedTracker:
    """Stands for a tracker until it is asked for something.

    Where all answers are kept from an earlier run it never is, and neither its weights nor their
    library, which takes seconds, are loaded.
    """

    def __init__(self, fingerprint: str, load: Callable[[], Tracker]) -> None:
        """Take what tells the tracker from others, and what makes it."""
        self.fingerprint = fingerprint
        self._load = load
        self._loaded: Tracker | None = None

    def load(self) -> Tracker:
        """Return the tracker, made once; a `UserError` where that cannot be done."""
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded

    def predict(self, contexts: Sequence[Context]) -> Sequence[Prediction]:
        """Let the tracker predict; a `GivenUpError` where it cannot be loaded any more.

        Whoever tests a tracker loads it before: of one that was tested and does not load, nothing
        more is to be expected.
        """
        try:
            tracker = self.load()
        except UserError as error:
            raise GivenUpError(f"the tracker could be loaded no more: {error}") from error
        return tracker.predict(contexts)


#: Characters of a slot or a value: every variant's state is kept, compared and reported.
_LONGEST_TEXT: Final = 10_000
_LONGEST_REPLY: Final = 100_000
#: How far below 0 the impurity of a certain slot may come out in single precision.
_ROUNDING: Final = 1e-6


def reply_problem(text: object) -> str:
    """Return what is wrong with a reply, or ``""``."""
    if text is None:
        return "no reply"
    if not isinstance(text, str):
        return f"{kind_of(text)} where a reply is expected, which is a text"
    if not text.strip():
        return "an empty reply"
    if len(text) > _LONGEST_REPLY:
        return f"a reply of {len(text):,} characters; {_LONGEST_REPLY:,} are the most"
    if not text.isascii() and encodable(text) != text:
        shown = shortened(repr(text), SHOWN)
        return f"{shown}, which holds half of a character (a lone surrogate)"
    return ""


def state_problem(state: object) -> str:
    """Return what is wrong with a belief state, or ``""``."""
    if not isinstance(state, Mapping):
        return f"{kind_of(state)} where a belief state is expected"
    for slot, value in state.items():
        if not isinstance(slot, str):
            return f"the slot {repr_of(slot)}, which is {kind_of(slot)}; slots are strings"
        if not isinstance(value, str):
            return f"{kind_of(value)} as the value of {slot!r}; values are strings"
        for text in (slot, value):
            if len(text) > _LONGEST_TEXT:
                what = "slot name" if text is slot else f"value of {shortened(slot, SHOWN)!r}"
                return (
                    f"a {what} of {len(text):,} characters; a belief state has words of the "
                    f"dialogue, {_LONGEST_TEXT:,} characters at most"
                )
            if not text.isascii() and encodable(text) != text:
                return f"{text!r}, which holds half of a character (a lone surrogate)"
    return ""


def impurity_problem(impurities: object) -> str:
    """Return what is wrong with the impurities of a prediction, or ``""``."""
    if impurities is None:
        return ""
    if not isinstance(impurities, Mapping):
        return f"{kind_of(impurities)} where impurities by slot are expected"
    for slot, value in impurities.items():
        if not isinstance(slot, str):
            return f"an impurity of {slot!r}, which is {kind_of(slot)}; slots are strings"
        # numpy's scalars are numbers too, and no tracker should have to convert them.
        if not isinstance(value, Real) or not _is_share(value):
            return f"{value!r} as the impurity of {slot!r}; impurities are from 0 to 1"
    return ""


def encodable(text: str) -> str:
    """Return a text that can be sent to another process and written to a report."""
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
