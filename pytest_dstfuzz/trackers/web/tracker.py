"""A tracker behind an address that speaks the contract of `trackers.web.contract`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.normalise import normalise_slot
from pytest_dstfuzz.dialogue.types import Context, DialogueSet, Ontology
from pytest_dstfuzz.errors import TrackerError, UserError
from pytest_dstfuzz.trackers.protocol import Prediction
from pytest_dstfuzz.trackers.web.contract import (
    About,
    ContractError,
    read_about,
    read_answer,
    request_json,
)
from pytest_dstfuzz.trackers.web.settings import ServiceSettings
from pytest_dstfuzz.trackers.web.transport import MalformedReply, Reply, ServiceError, Transport


class WebTracker:
    """Asks a service, one request for each context and several of them in flight.

    Args:
        transport: to the service.
        ontology: of the data; ``None`` where it has none.
        normalisation: of the data.

    Attributes:
        transport: counts what asking cost.
        about: what the service says about itself.
        fingerprint: the version that the service declares. ``None``: it declares none, and
            may be another one tomorrow, so that no answer may be used in another run.

    Raises:
        UserError: there is no service at that address, it refuses us, or what it says
            about itself is not as the contract wants it.
    """

    def __init__(
        self,
        transport: Transport,
        ontology: Ontology | None = None,
        normalisation: str = "plain",
    ) -> None:
        self.transport = transport
        self.about = _about(transport)
        self._refuse_other_slots(ontology, normalisation)
        self.fingerprint: str | None = self.about.version

    def predict(self, contexts: Sequence[Context]) -> list[Prediction | TrackerError]:
        """Return a prediction for each context, or why the service has none."""
        return self.transport.map([partial(self._predict, context) for context in contexts])

    def _refuse_other_slots(self, ontology: Ontology | None, normalisation: str) -> None:
        """Refuse a service none of whose slots the data knows; some others do no harm."""
        named = (normalise_slot(slot, normalisation) for slot in self.about.slots)
        slots = [slot for slot in named if slot is not None]
        if not slots or ontology is None or not ontology.complete or {*slots} & {*ontology.slots}:
            return
        shown = self.transport.secrets.redact(", ".join(slots))
        raise UserError(
            f"the service at {self.transport.address} ({self.about.name or 'no name'}) knows none "
            f"of the slots of the data. Its slots: {shown}. Those of the data: "
            f"{', '.join(ontology.slots)}."
        )

    def _predict(self, context: Context) -> Prediction:
        return self.transport.ask("POST", body=request_json(context), read=_prediction)


def create(
    url: str,
    service: ServiceSettings,
    data: DialogueSet,
    settings: Settings,  # noqa: ARG001 - what every adapter of an address is given
) -> WebTracker:
    """Return the tracker behind an address; what ``--dst-model=http://...`` calls.

    Args:
        url: address of the service, ``http(s)://...``.
        service: how it is asked.
        data: the dialogues of the run.
        settings: of the run.

    Raises:
        UserError: see `WebTracker`.
    """
    return WebTracker(Transport(url, service), data.ontology, data.normalisation)


def _prediction(reply: Reply) -> Prediction:
    try:
        return read_answer(reply.json())
    except ContractError as error:
        raise MalformedReply(str(error)) from None


def _about(transport: Transport) -> About:
    """Ask the service what it is; it need not say.

    Raises:
        UserError: nobody answers, the service refuses us, or what it says is malformed.
    """

    def read(reply: Reply) -> About:
        # Whatever else is at that address may answer GET with a page for people.
        if "json" not in reply.headers.get("content-type", ""):
            return About()
        try:
            return read_about(reply.json())
        except ContractError as error:
            raise MalformedReply(str(error)) from None

    try:
        about = transport.ask("GET", read=read)
    except ServiceError as error:
        if error.status in (401, 403) or error.status is None or error.status < 300:
            raise UserError(str(error)) from None
        return About()
    redact = transport.secrets.redact
    # Slots are compared before they are shown: a word of the address may be part of one.
    return replace(
        about,
        name=about.name and redact(about.name),
        version=about.version and redact(about.version),
    )
