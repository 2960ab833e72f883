"""What a tracker predicted before, kept from run to run and shared by processes.

A prediction may stand for a call only where the tracker is known to be the same: it has a
fingerprint (see `trackers.tracker.fingerprint_of`), or both happen in one run. Failures are
never kept.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from pytest_dstfuzz import __version__
from pytest_dstfuzz.campaign.answers import Answer
from pytest_dstfuzz.campaign.store import Store
from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.dialogues import RESTART, Again, Context, DialogueSet
from pytest_dstfuzz.dialogue.outcome import Outcome
from pytest_dstfuzz.json_data import to_json
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.trackers.tracker import Disagreement, Prediction

Name = TypeVar("Name")

#: Raised when what is kept changes its form.
_FORMAT: Final = 2
#: Seconds between two looks whether another process has the answer that it asked for.
_PATIENCE: Final = 0.02


def scope_of(
    tracker: Sequence[str], data: DialogueSet, reply: ReplySettings | None = None
) -> bytes:
    """Return what a kept prediction depends on besides its context.

    What tells this tracker from every other one, and what answers are checked against:
    normalisation and, where it is complete, ontology of the data. Of replies that they are some,
    and whose replies the system is shown; never how they are compared.
    """
    if reply is not None and not KINDS[reply.outcome].has_slots:
        parts = [_FORMAT, __version__, list(tracker), reply.outcome, reply.history]
        return hashlib.sha256(_bytes(parts)).digest()
    ontology = data.ontology
    slots = ontology.slots if ontology is not None and ontology.complete else None
    parts = [_FORMAT, __version__, list(tracker), data.normalisation, slots]
    return hashlib.sha256(_bytes(parts)).digest()


class PredictionCache:
    """The predictions of one tracker in a store, which may hold those of others too.

    ``run`` names the run, where other processes of it share the store: a context that one of them
    is asking for is not asked for by another one. ``""`` = there are none.
    """

    def __init__(self, store: Store, scope: bytes, run: str = "") -> None:
        self._store = store
        self._scope = hashlib.sha256(scope)
        self._run = run
        self._owner = uuid.uuid4().hex if run else ""
        #: The data whose digest was asked for last, and that digest.
        self._told: tuple[DialogueSet, str | None] | None = None

    def recall(self, contexts: Iterable[Context]) -> dict[Context, Prediction]:
        """Return the predictions that are kept."""
        keys = {self._key(context): context for context in contexts if not restarts(context)}
        found = self._store.get(list(keys))
        kept = {keys[key]: json.loads(value) for key, value in found.items()}
        return {
            context: Prediction(Outcome(state), impurities)
            for context, (state, impurities) in kept.items()
        }

    def keep(self, answers: Mapping[Context, Answer]) -> None:
        """Keep the predictions among some answers."""
        values = {
            self._key(context): _bytes([answer.state.to_json(), to_json(answer.impurities)])
            for context, answer in answers.items()
            if isinstance(answer, Prediction) and not restarts(context)
        }
        self._store.put(values, owner=self._owner)

    def texts(self, keys: Mapping[Name, object]) -> dict[Name, bytes]:
        """Return texts that are kept for this tracker, each by the name that its key was given."""
        digests = {self._digest(key): name for name, key in keys.items()}
        return {digests[key]: text for key, text in self._store.get(list(digests)).items()}

    def keep_texts(self, texts: Iterable[tuple[object, bytes]]) -> None:
        """Keep texts by keys, which are values of JSON."""
        values = {self._digest(key): text for key, text in texts}
        self._store.put(values, owner=self._owner)

    def digest_of(
        self, data: DialogueSet, digest: Callable[[DialogueSet], str | None]
    ) -> str | None:
        """Return the digest of data, which the campaigns of a session share: it is made once."""
        if self._told is None or self._told[0] is not data:
            self._told = data, digest(data)
        return self._told[1]

    def claim(self, contexts: Sequence[Context]) -> list[Context]:
        """Return the contexts to ask for now: those that no other process is asking for.

        One that is left out has been answered elsewhere, or will be, or will not: then
        it can be claimed later.
        """
        if not (self._run and contexts):
            return list(contexts)
        # Nobody else's answer stands for that to a dialogue that is begun once more.
        keys = {context: self._key(context) for context in contexts if not restarts(context)}
        mine = self._store.claim(self._run, self._owner, list(keys.values()))
        return [one for one in contexts if one not in keys or keys[one] in mine]

    def release(self) -> None:
        """Give up all claims: what was claimed is answered and kept, or others may try."""
        if self._run:
            self._store.release(self._run, self._owner)

    def wait(self) -> None:
        """Give another process some time to answer."""
        time.sleep(_PATIENCE)

    def preflight(
        self,
        contexts: Sequence[Context],
        measure: Callable[[], Disagreement | None],
        *,
        varies: bool = False,
    ) -> Disagreement | None:
        """Return what the preflight measured on the contexts that it asks for.

        Where nothing is kept one process of the run measures; what that raises passes through.
        ``varies``: it measures how a tracker varies that need not be repeatable.
        """
        kind = "preflight of one that varies" if varies else "preflight"
        key = self._digest([kind, [context.key() for context in contexts]])
        while True:
            if (found := self._store.get([key]).get(key)) is not None:
                kept = json.loads(found)
                return None if kept is None else Disagreement(**kept)
            if self._run and not self._store.claim(self._run, self._owner, [key]):
                self.wait()
                continue
            try:
                measured = measure()
                self._store.put({key: _bytes(to_json(measured))}, owner=self._owner)
                return measured
            finally:
                self.release()

    def _key(self, context: Context) -> bytes:
        # One that is asked for again, for a vote, has an answer of its own.
        return self._digest([*context.key(), getattr(context, "repetition", 0)])

    def _digest(self, value: object) -> bytes:
        digest = self._scope.copy()
        digest.update(_bytes(value))
        return digest.digest()


def restarts(context: Context) -> bool:
    """Say whether a context is of a dialogue that is begun once more: its answer is never kept."""
    return isinstance(context, Again) and context.repetition <= RESTART


def _bytes(value: Any) -> bytes:
    # ASCII, as an utterance may hold half of a surrogate pair. Floats come back as they were.
    return json.dumps(value, separators=(",", ":")).encode("ascii")
