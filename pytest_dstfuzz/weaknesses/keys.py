"""Which violations are of one cause: those with the same key.

A key is what goes wrong: neither the slot, nor the word, nor the kind of slip. Who mends a tracker
that forgets a time where `arrive` is mistyped mends it for `leave` left out too. Tools have nothing
in common but the model that calls them, so of tool calls the tool and the argument are in the key.
"""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from pytest_dstfuzz.campaign.results import TurnResult, VariantResult, not_corrected
from pytest_dstfuzz.dialogue.outcome import REPLY
from pytest_dstfuzz.weaknesses.calls import CALLS, call_failure
from pytest_dstfuzz.weaknesses.changed import BrokenScene, traits_of
from pytest_dstfuzz.weaknesses.edited import blamed
from pytest_dstfuzz.weaknesses.failures import FAILURES, failure_of
from pytest_dstfuzz.weaknesses.mechanisms import MECHANISMS, OTHER, mechanism_of
from pytest_dstfuzz.weaknesses.replies import REPLIES, reply_failure

__all__ = ["read"]

#: The names of all mechanisms.
ALL: Final = (*MECHANISMS, *FAILURES, *REPLIES, *CALLS, OTHER)
_DIGITS: Final = 6


class Key(NamedTuple):
    """What violations of one weakness have in common."""

    mechanism: str  #: A name of `ALL`.
    at: str = ""  #: Of tool calls the tool, or with its tool the argument, that it shows at.

    @property
    def id(self) -> str:
        """Readable, a word of a shell, and of the key alone: the same in every run.

        >>> Key("cue-word").id, Key("no-call", "block_card").id
        ('cue-word-41bf47', 'no-call-block_card-da9ec1')
        """
        parts = [part for part in self if part]
        digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
        return "-".join([*(quote(part, safe="") for part in parts), digest[:_DIGITS]])


class Reading(NamedTuple):
    """What is read of one violation."""

    key: Key
    words: tuple[str, ...]  #: Clean words that were edited, in lower case.
    slot: str  #: The slot whose change says most; of a tool call the tool or its argument.


def read(turn: TurnResult, variant: VariantResult) -> Reading:
    """Return key, words and slot of a violation; they depend on it alone."""
    if not turn.kind.words.values:
        return Reading(Key(reply_failure(turn, variant)), blamed(turn, variant).reached, REPLY)
    if turn.kind.has_tools:
        mechanism, at = call_failure(turn, variant)
        return Reading(Key(mechanism, at), blamed(turn, variant).words, at)
    changes = not_corrected(variant.plain.changed_slots)
    name, number = failure_of(turn, variant, changes)
    if name:
        slot = changes[number].slot if number >= 0 else ""
        # What stands beside a sentence that the user adds has nothing to do with it.
        return Reading(Key(name), blamed(turn, variant).reached, slot)
    return read_scene(BrokenScene.of(turn, variant))


def read_scene(scene: BrokenScene) -> Reading:
    """Return the same of what is known about a violation."""
    # A slot that became right only says where a value may have gone.
    about = not_corrected(scene.changed)
    name, number = mechanism_of([traits_of(change, scene) for change in about])
    slot = about[number].slot if about else ""
    return Reading(Key(name), scene.edited.words, slot)


def key_of_id(name: str) -> Key | None:
    """Return the key whose id this is; ``None`` where no violation of this version has the id.

    >>> key_of_id("cue-word-41bf47")
    Key(mechanism='cue-word', at='')
    """
    found = (
        Key(mechanism, unquote(name[len(mechanism) + 1 : -1 - _DIGITS]))
        for mechanism in ALL
        if name.startswith(f"{mechanism}-")
    )
    # Earlier versions had neither tool nor argument in the key of calls.
    return next((key for key in found if key.id == name and (key.at or key[0] not in CALLS)), None)
