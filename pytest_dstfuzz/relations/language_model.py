"""Requests to a language model that paraphrases turns, and the parser of its answers.

The module sends nothing: ``cli`` has the connection to the model. Rules decide which candidates are
refused. The back-check is only a second opinion of the same model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from importlib import resources
from typing import Final, NamedTuple

from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.json_data import parse_json
from pytest_dstfuzz.relations.relation import Scene
from pytest_dstfuzz.relations.sources import BackCheck, plain_words

#: Locks whose words the prompt names as words to keep.
_KEPT: Final = frozenset({"user", "value", "number", "name", "exact"})
#: The thoughts of a model before its answer. If the answer is cut off, they have no end.
_THOUGHTS: Final = re.compile(r"\A\s*<think>.*?(?:</think>|\Z)", re.DOTALL)
_FENCE: Final = "```"
_ANSWER: Final = re.compile(r"\b(yes|no)\b", re.IGNORECASE)

#: Messages of a chat, each with a role and a content.
Messages = list[dict[str, str]]


class Paraphrases(NamedTuple):
    """The texts in an answer of a model."""

    texts: tuple[str, ...]
    #: The number of lines without a text.
    unreadable: int


def paraphrase_request(scene: Scene, number: int) -> Messages:
    """Return the messages that ask for a number of paraphrases of a turn."""
    kept = [json.dumps(text, ensure_ascii=False) for text in dict.fromkeys(kept_words(scene))]
    lines = [*_said(scene, "message"), f"keep: {', '.join(kept) or 'nothing'}"]
    return _messages("paraphrase.txt", number, "\n".join(lines))


def back_check_request(scene: Scene, text: str) -> Messages:
    """Return the messages that ask whether a candidate asks for the same thing as the turn."""
    lines = [*_said(scene, "message A"), f"message B: {json.dumps(text, ensure_ascii=False)}"]
    return _messages("back_check.txt", 1, "\n".join(lines))


def _said(scene: Scene, name: str) -> Iterator[str]:
    """Yield the service's words and the turn, as JSON texts that cannot end early."""
    if scene.turn.system:
        yield f"service: {json.dumps(scene.turn.system, ensure_ascii=False)}"
    yield f"{name}: {json.dumps(scene.turn.user, ensure_ascii=False)}"


def _messages(name: str, number: int, last: str) -> Messages:
    """Return the messages of a prompt, in which examples have answers, and the last message."""
    file = resources.files("pytest_dstfuzz") / "resources" / "relations" / name
    text = file.read_text(encoding="utf-8").replace("NUMBER", str(number))
    parts = [*map(str.strip, text.split("\n---\n")[:-1]), last]
    return [
        {"role": "assistant" if place % 2 else "user", "content": content}
        for place, content in enumerate(parts)
    ]


def kept_words(scene: Scene) -> Iterator[str]:
    """Yield the parts of an utterance that a paraphrase must contain, in reading order."""
    user, words, mask = scene.turn.user, scene.parts.words, scene.guarded
    start: int | None = None
    for index, reason in enumerate(mask.reasons):
        if reason in _KEPT and start is None:
            start = words[index].start
        following = mask.reasons[index + 1 : index + 2]
        if start is not None and following != (reason,):
            yield user[start : words[index].end]
            start = None


def without_thoughts(text: str) -> str:
    """Return an answer without the thoughts before it, and without spaces around it."""
    return _THOUGHTS.sub("", text).strip()


def read_paraphrases(text: str) -> Paraphrases:
    """Return the paraphrases in an answer: JSON lines, or a JSON list of texts or objects."""
    lines = [line.strip() for line in without_thoughts(text).splitlines()]
    lines = [line for line in lines if line and not line.startswith(_FENCE)]
    whole = list(_texts("\n".join(lines)))
    if whole:
        return Paraphrases(tuple(whole), 0)
    found = [(line, list(_texts(line.removesuffix(",")))) for line in lines]
    unreadable = sum(not texts for line, texts in found if line not in ("[", "]"))
    return Paraphrases(tuple(one for _, texts in found for one in texts), unreadable or not lines)


def _texts(line: str) -> Iterator[str]:
    """Yield the texts of a JSON value. Yield nothing if it is not JSON, or has another form."""
    try:
        value = parse_json(line)
    except DataError:
        return
    for one in value if isinstance(value, list) else [value]:
        text = one.get("text") if isinstance(one, dict) else one
        if isinstance(text, str) and text.strip():
            # The file is UTF-8, which has no halves of surrogate pairs.
            yield " ".join(text.encode("utf-8", "replace").decode().split())


def read_back_check(text: str) -> BackCheck:
    """Return the verdict in an answer: it is ``unclear`` unless the answer has one of yes and no.

    >>> read_back_check("Yes."), read_back_check("No, it adds a wish."), read_back_check("Maybe")
    ('same', 'different', 'unclear')
    """
    said = {word.lower() for word in _ANSWER.findall(without_thoughts(text))}
    if len(said) != 1:
        return "unclear"
    return "same" if said == {"yes"} else "different"


def find_repeated(scene: Scene, text: str, others: Iterable[str]) -> str:
    """Return which text a candidate repeats, apart from case and punctuation, or ``""``."""
    words = plain_words(text)
    if words == plain_words(scene.turn.user):
        return "same as the turn"
    return "same as another candidate" if words in map(plain_words, others) else ""
