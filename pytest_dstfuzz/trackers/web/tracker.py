"""A tracker at an address that follows the contract of `trackers.web.contract`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, Final, TypeAlias, TypeVar

from pytest_dstfuzz.config import Address, Settings
from pytest_dstfuzz.dialogue.calls import OutcomeKind
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet, OpeningRole
from pytest_dstfuzz.dialogue.normalise import normalise_slot
from pytest_dstfuzz.errors import (
    GivenUpError,
    MalformedAnswerError,
    NoAnswerError,
    TrackerError,
    UserError,
)
from pytest_dstfuzz.trackers.schemes import ServiceSettings
from pytest_dstfuzz.trackers.tracker import BatchInterrupt, Prediction
from pytest_dstfuzz.trackers.web import contract, sessions
from pytest_dstfuzz.trackers.web.contract import (
    REPLIES,
    About,
    ContractError,
    UnreadableAnswerError,
)
from pytest_dstfuzz.trackers.web.sessions import SessionTracker
from pytest_dstfuzz.trackers.web.transport import MalformedReply, Reply, ServiceError, Transport
from pytest_dstfuzz.trackers.web.versions import VersionCheck

T = TypeVar("T")
_Answer: TypeAlias = Prediction | TrackerError

#: Fewest dialogues per request, if there are enough. Smaller groups are not worth a batch.
_LEAST: Final = 4


class WebTracker:
    """A tracker that calls a service, with several requests at once.

    A request holds one context. If the service accepts several contexts per request, they are
    spread evenly over the connections.

    Attributes:
        about: the self-description of the service.
        fingerprint: the version that the service declares. If it is ``None``, the service may
            change at any time, so no answer is reused in another run.
        unless_answered: advice to show if no context has an answer, or ``""``.
    """

    def __init__(
        self,
        transport: Transport,
        data: DialogueSet,
        outcome: OutcomeKind = "state",
        opening: OpeningRole = "assistant",
    ) -> None:
        self.transport = transport
        self._outcome: OutcomeKind = outcome
        self._opening: OpeningRole = opening
        self.unless_answered = REPLIES if outcome == "state" else ""
        self.about = _about(transport)
        self._refuse_other_slots(data)
        self.fingerprint: str | None = self.about.version
        if self.fingerprint and self.about.name:
            # Two services may count their versions alike.
            self.fingerprint += f", name={self.about.name}"
        if self.fingerprint and opening != "assistant":
            self.fingerprint += f", opening={opening}"
        self._check = VersionCheck(
            transport,
            self.about.version,
            lambda late: _about(transport, late=late).version,
            who="service",
            what="version",
            named="version",
        )
        self.repeatable = self.about.repeatable
        #: Most dialogues per request. ``None`` means one, in the form for a single dialogue.
        self._most = self.about.dialogues
        #: Whether an answer in a group could be read.
        self._reads_groups = False

    def predict(self, contexts: Sequence[Context]) -> list[Prediction | TrackerError]:
        """Return a prediction for each context, or an error in its place.

        Raises:
            ChangedTrackerError: the service declares another version than before, or none. The
                version is read after each batch, so no answer counts as one of the wrong version.
            BatchInterrupt: Ctrl-C was pressed. The exception has the answers so far, unless the
                version has changed.
        """
        answers = self._check.checked(partial(self._answers, contexts))
        return [answers[place] for place in range(len(contexts))]

    def _answers(self, contexts: Sequence[Context]) -> dict[int, _Answer]:
        answers: dict[int, _Answer] = {}
        groups = [] if self._most is None else self._groups(contexts, self._most)
        self._map(partial(self._together, contexts), groups, answers)
        alone = [place for place in range(len(contexts)) if place not in answers]
        self._map(partial(self._alone, contexts), [[place] for place in alone], answers)
        # If a group failed but each context alone succeeded, do not use groups any more.
        for group in groups:
            failed = any(isinstance(answers[place], TrackerError) for place in group)
            if {*group} & {*alone} and not failed:
                self._most = None
        return answers

    def _groups(self, contexts: Sequence[Context], most: int) -> list[list[int]]:
        """Group the contexts into requests of similar length. Return their positions."""
        count = len(contexts)
        places = sorted(range(count), key=lambda place: contexts[place].size())
        groups = max(min(self.transport.concurrency, -(-count // _LEAST)), -(-count // most))
        bounds = [number * count // groups for number in range(groups + 1)] if count else []
        return [places[start:end] for start, end in pairwise(bounds)]

    def _map(
        self,
        ask: Callable[[list[int]], Awaitable[list[_Answer]]],
        groups: Sequence[list[int]],
        answers: dict[int, _Answer],
    ) -> None:
        """Store the answers to groups of contexts. A failed group has no answers.

        If the run is over or the service is dead, this error becomes the answer to all remaining
        contexts.
        """
        found: Mapping[int, object] = {}
        stop = None
        hand_on = self._check.taker_of(self)

        def take(number: int, result: object) -> None:
            if hand_on is not None and isinstance(result, list):
                for place, answer in zip(groups[number], result, strict=True):
                    hand_on(place, answer)

        try:
            jobs = [partial(ask, group) for group in groups]
            found = dict(enumerate(self.transport.map(jobs, take)))
        except BatchInterrupt as stopped:
            found, stop = stopped.answers, BatchInterrupt(answers)
        for number, result in found.items():
            if isinstance(result, list):
                answers.update(zip(groups[number], result, strict=True))
            elif isinstance(result, GivenUpError):
                answers.update(dict.fromkeys(groups[number], result))
        if stop is not None:
            raise stop

    async def _together(self, contexts: Sequence[Context], places: list[int]) -> list[_Answer]:
        """Send one request for several contexts."""
        read = partial(self._read_group, len(places))
        together = [contexts[place] for place in places]
        body = contract.group_json(together, self._outcome, self._opening)
        found = await self.transport.ask("POST", body=body, read=read, worth=len(places))
        return [self._failure(answer) if isinstance(answer, str) else answer for answer in found]

    def _read_group(self, asked: int, reply: Reply) -> list[Prediction | str | TrackerError]:
        """Return the answers to a group. An unreadable answer is replaced by an error.

        If no answer is readable, and no group was before, the group fails, because the service may
        not support groups.
        """
        read = partial(_read, partial(contract.read_answers, asked=asked, outcome=self._outcome))
        found = clean = read(reply)
        broken = [one for one in found if isinstance(one, UnreadableAnswerError)]
        self._reads_groups = self._reads_groups or len(broken) < asked
        if broken and not self._reads_groups:
            raise MalformedReply(str(broken[0]))
        if broken:
            # A message may show half a credential, so the reply is redacted and read again.
            redacted = self.transport.secrets.redact(reply.text).encode()
            clean = read(replace(reply, content=redacted))
        return [
            self._malformed(again) if isinstance(one, UnreadableAnswerError) else one
            for one, again in zip(found, clean, strict=True)
        ]

    def _malformed(self, why: object) -> MalformedAnswerError:
        """Return the error in place of an answer that cannot be read."""
        what = why if isinstance(why, UnreadableAnswerError) else "answered in an unknown form"
        line = f"the service at {self.transport.address} {what}"
        return MalformedAnswerError(self.transport.secrets.redact(" ".join(line.split())))

    async def _alone(self, contexts: Sequence[Context], places: list[int]) -> list[_Answer]:
        """Send the request for one context."""
        (place,) = places
        try:
            body = contract.request_json(contexts[place], self._outcome, self._opening)
            read = partial(_read, partial(contract.read_answer, outcome=self._outcome))
            return [await self.transport.ask("POST", body=body, read=read)]
        except TrackerError as error:
            if isinstance(error, ServiceError) and error.unreadable:
                return [MalformedAnswerError(str(error))]
            # Drop the frames, which would keep the whole request alive.
            return [error.with_traceback(None)]

    def _failure(self, why: str) -> TrackerError:
        """Return the error of one dialogue in a group, as the service reports it."""
        line = f"the service at {self.transport.address} has no answer: {why}"
        return TrackerError(self.transport.secrets.redact(" ".join(line.split())))

    def _refuse_other_slots(self, data: DialogueSet) -> None:
        """Raise an error if the data has none of the service's slots. Some may be unknown."""
        ontology = data.ontology
        slots = [
            name for slot in self.about.slots if (name := normalise_slot(slot, data.normalisation))
        ]
        if not slots or ontology is None or not ontology.complete or {*slots} & {*ontology.slots}:
            return
        shown = self.transport.secrets.redact(", ".join(slots))
        raise UserError(
            f"the service at {self.transport.address} ({self.about.name or 'no name'}) has none of "
            f"the slots of the data. Its slots: {shown}. Those of the data: "
            f"{', '.join(ontology.slots)}."
        )


def create(
    url: Address,
    service: ServiceSettings,
    data: DialogueSet,
    settings: Settings,
) -> WebTracker | SessionTracker:
    """Return the tracker at an address. ``--dst-model=http://...`` calls this."""
    how = settings.tracker
    if any(one is not None for one in (how.request, how.response, how.start, how.session)):
        return sessions.create(url, service, settings)
    transport = Transport(url, service)
    return WebTracker(transport, data, settings.reply.outcome, how.opening)


def _read(read: Callable[[Any], T], reply: Reply) -> T:
    """Parse a reply with a function of the contract."""
    try:
        return read(reply.json())
    except ContractError as error:
        unreadable = isinstance(error, UnreadableAnswerError)
        raise MalformedReply(str(error), unreadable=unreadable) from None


def _about(transport: Transport, *, late: bool = False) -> About:
    """Request the self-description of the service, which is optional."""

    def read(reply: Reply) -> About:
        # Another kind of server may answer GET with a web page.
        if "json" not in reply.headers.get("content-type", ""):
            return About()
        return _read(contract.read_about, reply)

    try:
        about = transport.wait(transport.ask("GET", read=read, late=late))
    except ServiceError as error:
        if error.status is None:
            raise NoAnswerError(str(error)) from None
        if error.status in (401, 403) or error.status < 300:
            raise UserError(str(error)) from None
        return About()
    redact = transport.secrets.redact
    # Redact only for display, after the comparison: a slot may contain a word of the address.
    return replace(
        about,
        name=about.name and redact(about.name),
        # A blank version says as little as none.
        version=redact(about.version) if about.version and about.version.strip() else None,
    )
