"""Which tracker a test gets, told from how the test was collected.

Two trackers of one class, or two lambdas, look alike; and what one worker of xdist holds
in memory another cannot be asked about. So trackers are told apart by the fixtures and
the parameters that they come from, which are the same in every process.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple

import pytest

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.plugin.items import param_of

#: Fixtures that decide what comes of a turn besides its settings.
_DECIDING = ("dst_model", "dst_search", "dst_lexicon")
#: Parameters of these types are the same when they are equal; others only as one object.
_PLAIN = (str, int, float, bool, type(None))


class CampaignKey(NamedTuple):
    """What two tests must share to share a campaign."""

    #: Settings of the tests, and those with the search that the fixture names.
    settings: Settings
    effective: Settings
    #: Where the tracker came from, and the tracker itself.
    origin: str
    model_id: int
    #: Compared by identity.
    lexicon: Lexicon


class Origins:
    """Names what decides the results of a test besides its settings."""

    def __init__(self) -> None:
        self._names: dict[Hashable, str] = {}

    def learn(self, items: Iterable[pytest.Item]) -> None:
        """Name the origins of all items, each by its first item in alphabetical order.

        Neither the order of the items nor the process changes a name.
        """
        for item in items:
            token, name = _token(item), _name(item)
            self._names[token] = min(self._names.get(token, name), name)

    def of(self, item: pytest.Item) -> str:
        """Return the name of an item's origin: that of every test that shares its tracker."""
        return self._names.get(_token(item), _name(item))


def scope_of(item: pytest.Item, fixture: str) -> str:
    """Return the scope of the fixture that an item gets under a name."""
    definitions = _definitions(item).get(fixture)
    return str(definitions[-1].scope) if definitions else "function"


def brings_its_own(item: pytest.Item, fixture: str) -> bool:
    """Whether a suite overrides a fixture of the plugin for an item."""
    return len(_definitions(item).get(fixture, ())) > 1


def _name(item: pytest.Item) -> str:
    """Return the name of a test, whichever of its turns it is about."""
    param = param_of(item)
    return item.nodeid if param is None else item.nodeid.replace(param.turn_id, "")


def _token(item: pytest.Item) -> Hashable:
    """Return the deciding fixtures of an item, and the parameters that they depend on."""
    definitions = _definitions(item)
    params: Mapping[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    found: list[Hashable] = []
    names = list(_DECIDING)
    for name in names:
        used = definitions.get(name, ())[-1:]
        found += [(name, definition.baseid, definition.func) for definition in used]
        if name in params:
            found.append((name, _identity(params[name])))
        # A fixture that overrides another of its name may use it, and with it what that uses.
        needed = (other for one in definitions.get(name, ()) for other in one.argnames)
        names += dict.fromkeys(other for other in needed if other not in names)
    return tuple(found)


def _identity(value: object) -> Hashable:
    return (type(value), value) if isinstance(value, _PLAIN) else id(value)


def _definitions(item: pytest.Item) -> Mapping[str, Any]:
    # pytest has no public way to ask which fixtures an item gets before it runs.
    info = getattr(item, "_fixtureinfo", None)
    definitions: Mapping[str, Any] = getattr(info, "name2fixturedefs", {})
    return definitions
