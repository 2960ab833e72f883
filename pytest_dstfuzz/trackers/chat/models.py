"""Which models a service has."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_dstfuzz.errors import GivenUpError, NoAnswerError, TrackerError, UserError
from pytest_dstfuzz.trackers.web.transport import Reply, ServiceError, Transport

#: Names that a message lists.
_SHOWN = 10


def model_name(transport: Transport) -> str:
    """Return the name of the service's only model.

    Raises:
        NoAnswerError: nobody answers.
        UserError: it has none or several, or does not say.
    """
    which = "name the model with --dst-service-model"
    try:
        names = transport.ask("GET", "models", read=_names)
    except GivenUpError:
        raise
    except TrackerError as error:
        if isinstance(error, ServiceError) and error.status is None:
            raise NoAnswerError(str(error)) from None
        raise UserError(f"{which}: the service does not list its models ({error})") from None
    if len(names) == 1:
        return names[0]
    shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    listed = transport.secrets.redact(shown) or "none"
    raise UserError(f"{which}: the service at {transport.address} lists {listed}")


def _names(reply: Reply) -> list[str]:
    body = reply.json()
    listed = body.get("data") if isinstance(body, Mapping) else None
    entries = listed if isinstance(listed, list) else []
    names = (entry.get("id") for entry in entries if isinstance(entry, Mapping))
    return sorted(name for name in names if isinstance(name, str))
