"""What tells one data set from another that goes by the same name."""

from __future__ import annotations

import hashlib
import json

from pytest_dstfuzz.dialogue.types import DialogueSet


def content_fingerprint(data: DialogueSet) -> str:
    """Return 16 hexadecimal digits that change with anything that variants are made from.

    That is every utterance and label, the ontology, the normalisation and the cue words,
    but neither the name of the data set nor the layout or the place that it was read from.
    """
    ontology = data.ontology
    known = None if ontology is None else (ontology.complete, sorted(ontology.values.items()))
    digest = hashlib.sha256(_bytes((data.normalisation, data.cue_words, known)))
    for dialogue in data.dialogues:
        turns = [
            (turn.system, turn.user, None if turn.state is None else turn.state.to_json())
            for turn in dialogue.turns
        ]
        digest.update(_bytes((dialogue.id, turns)))
    return digest.hexdigest()[:16]


def _bytes(value: object) -> bytes:
    # ASCII, as an utterance may hold half of a surrogate pair.
    return json.dumps(value).encode("ascii")
