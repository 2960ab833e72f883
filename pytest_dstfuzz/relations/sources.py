"""Relations that rephrase a turn with reviewed texts, or with texts of other dialogues."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from pytest_dstfuzz.dialogue.dialogues import (
    BeliefState,
    Dialogue,
    DialogueSet,
    Difference,
    diff_states,
    turn_keys,
)
from pytest_dstfuzz.dialogue.readers.source import convert_checked
from pytest_dstfuzz.errors import DataError, UserError
from pytest_dstfuzz.files import lock_file, read_text, write_text
from pytest_dstfuzz.json_data import parse_json
from pytest_dstfuzz.perturb.draft import Mask
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.perturb.validity import LONGEST_EDITED
from pytest_dstfuzz.perturb.values import spell_compared
from pytest_dstfuzz.perturb.words import Parts, take_apart
from pytest_dstfuzz.relations.registry import RELATIONS, register_relation, relation_by_name
from pytest_dstfuzz.relations.relation import (
    BySearch,
    Inapplicable,
    Relation,
    Rewrite,
    Scene,
    Scenes,
    TurnStart,
    begin,
    list_rewrites,
)
from pytest_dstfuzz.relations.rounds import points_back
from pytest_dstfuzz.relations.should_change.sites import split_spoken
from pytest_dstfuzz.relations.values import (
    UNSPOKEN,
    SpokenText,
    ValueMention,
    ValueTable,
    article_before,
    domain_of,
    name_words,
    write_value,
)

SCHEMA: Final = "dstfuzz-frozen/1"
#: The verdict of a reviewer that the meaning stays the same. A row may also have the verdict that
#: the meaning changes, or no verdict yet.
KEEPS: Final = "keeps"


BackCheck = Literal["", "same", "different", "unclear"]


class FrozenRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Another wording of a user's utterance, to be reviewed."""

    #: Key of the turn, see `turn_keys`.
    key: str
    #: The original utterance, for reviewers; only ``key`` identifies the turn.
    user: str
    text: str
    source: str
    #: The lock that the candidate breaks, or ``""``. A candidate that breaks a lock is never used.
    lock: str = ""
    #: The answer of a language model to the question whether both texts ask for the same thing, or
    #: ``""`` if none was asked. Only the verdict of a person decides whether a row is used.
    back_check: BackCheck = ""
    verdict: Literal["", "keeps", "changes"] = ""
    #: Name of the reviewer who gave the verdict.
    reviewer: str = ""


class _Head(msgspec.Struct, frozen=True):
    schema: str
    sources: dict[str, str]


class FrozenFile(msgspec.Struct, frozen=True):
    """A file of other wordings. They may or may not be reviewed."""

    #: Name of a source -> origin of its texts, and their licence.
    sources: Mapping[str, str] = {}
    rows: tuple[FrozenRow, ...] = ()

    def joined(self, source: str, licence: str, rows: Iterable[FrozenRow]) -> FrozenFile:
        """Return the file with more wordings at its end.

        Existing rows stay unchanged with their verdicts, even if a new wording has the same text.
        """
        there = {(row.key, row.text): row for row in self.rows}
        for row in rows:
            there.setdefault((row.key, row.text), row)
        return FrozenFile({**self.sources, source: licence}, tuple(there.values()))

    def checked(self, verdicts: Mapping[FrozenRow, BackCheck]) -> FrozenFile:
        """Return the file with the back-checks of some rows."""
        rows = [
            msgspec.structs.replace(row, back_check=verdicts[row]) if row in verdicts else row
            for row in self.rows
        ]
        return FrozenFile(self.sources, tuple(rows))

    def write_onto(self, path: Path, before: FrozenFile) -> FrozenFile:
        """Write the wordings and back-checks that are new since ``before``.

        The file may have changed since then: its verdicts and other wordings stay. Returns the file
        as it was written.
        """
        known = {(row.key, row.text) for row in before.rows}
        new = {(row.key, row.text): row for row in self.rows}
        with lock_file(path):
            now = read_frozen(path) if path.exists() else FrozenFile()
            verdicts = {
                row: new[row.key, row.text].back_check
                for row in now.rows
                if not row.back_check and (row.key, row.text) in new
            }
            rows = {(row.key, row.text): row for row in now.checked(verdicts).rows}
            rows |= {name: new[name] for name in new if name not in known and name not in rows}
            found = FrozenFile({**now.sources, **self.sources}, tuple(rows.values()))
            found.write(path)
        return found

    def write(self, path: Path) -> None:
        """Write the file. Reviewers read and edit it, and it belongs under version control."""
        lines: list[object] = [{"schema": SCHEMA, "sources": dict(sorted(self.sources.items()))}]
        lines += [_as_line(row) for row in self.rows]
        write_text(path, "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines))


def _as_line(row: FrozenRow) -> dict[str, str]:
    line: dict[str, str] = msgspec.to_builtins(row)
    if not row.back_check:
        # Most sources have no back-check, and reviewers do not write one.
        del line["back_check"]
    return line


def read_frozen(path: Path) -> FrozenFile:
    """Read a file of other wordings.

    Raises:
        DataError: the file cannot be read, or one of its lines is invalid.
    """
    lines = read_text(path, "file of frozen variants").split("\n")
    parsed = [
        (_parsed(line, f"{path}: line {number}"), f"{path}: line {number}")
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]
    head = convert_checked(_Head, *parsed[0]) if parsed else None
    if head is None or head.schema != SCHEMA:
        raise DataError(
            f"{path} is not a file of frozen variants: its first line must have the schema "
            f"{SCHEMA!r}. Write such a file with dstfuzz freeze"
        )
    rows: dict[tuple[str, str], FrozenRow] = {}
    for value, place in parsed[1:]:
        row = convert_checked(FrozenRow, value, place)
        if row.verdict and not row.reviewer.strip():
            raise DataError(f"{place}: the verdict has no reviewer: write a name in 'reviewer'")
        if (row.key, row.text) in rows:
            raise DataError(f"{place}: the file has this text for this turn twice: remove one")
        rows[row.key, row.text] = row
    return FrozenFile(head.sources, tuple(rows.values()))


def _parsed(line: str, place: str) -> object:
    try:
        return parse_json(line)
    except DataError as error:
        raise DataError(f"{place} {error}") from None


def with_frozen(data: DialogueSet, path: str | Path | None) -> DialogueSet:
    """Return the data with the wordings that a reviewer approved in a file."""
    if path is None:
        return data
    found: dict[str, list[str]] = {}
    for row in read_frozen(Path(path).expanduser()).rows:
        if row.verdict == KEEPS and not row.lock:
            found.setdefault(row.key, []).append(row.text)
    return replace(data, frozen={key: tuple(texts) for key, texts in found.items()})


#: Quotation marks, which another wording may leave out or write otherwise.
_QUOTE_MARKS: Final = "\"'‘“”’„«»‹›「」『』《》`＂＇〝〞"
#: Abbreviations such as ``p.m.``, which another wording may write as ``pm``.
_INITIALS: Final = re.compile(r"(?:\w\.)+\w?")
#: The words with these locks must occur equally often in both texts, in any spelling.
_COUNTED: Final = ("user", "value")
#: Locks that must be present in both texts or in neither.
_PRESENT: Final = ("dontcare", "affirmation")


def find_broken_lock(scene: Scene, text: str) -> str:
    """Return the name of the lock that another wording breaks, or ``""``.

    Returns:
        ``user`` or ``value`` (which includes numbers) if the words with this lock or their counts
        differ; ``exact`` if an address, a code or a quotation is lost or new; ``name`` if a likely
        name is; ``negation`` if the number of negations differs; ``dontcare``, ``affirmation`` or
        ``reference`` if only one of the texts has such words; ``size`` if the text has no words, or
        too many characters.
    """
    if len(text) > LONGEST_EDITED or not (parts := take_apart(text)).words:
        return "size"
    mask = scene.guarded_in(text, parts)
    clean, new = _LockedWords(scene.parts, scene.guarded), _LockedWords(parts, mask)
    broken = (lock for lock, differs in _differences(scene, text, mask, (clean, new)) if differs)
    return next(broken, "")


def _differences(
    scene: Scene, text: str, mask: Mask, words: tuple[_LockedWords, _LockedWords]
) -> Iterator[tuple[str, bool]]:
    """Yield each lock, and whether the utterance and another wording differ in it."""
    (clean, new), user = words, scene.turn.user
    for reason in _COUNTED:
        yield reason, clean.words[reason] != new.words[reason]
    yield "exact", _loses_exact(user, scene.guarded, text) or _loses_exact(text, mask, user)
    here, there = clean.words["name"].keys(), new.words["name"].keys()
    yield "name", not (here <= new.said and there <= clean.said)
    yield "negation", clean.words["negation"].total() != new.words["negation"].total()
    for reason in _PRESENT:
        yield reason, bool(clean.words[reason]) != bool(new.words[reason])
    yield "reference", points_back(user, scene.lexicon) != points_back(text, scene.lexicon)


def _loses_exact(text: str, mask: Mask, other: str) -> bool:
    """Return whether another text lacks a span of a text whose letters must stay."""
    spans = (text[start:end].strip(_QUOTE_MARKS) for start, end in mask.exact)
    return any(span not in other for span in spans if not _INITIALS.fullmatch(span))


def rephrase_turn(scene: Scene, texts: Iterable[str], operator: str) -> Iterator[Rewrite]:
    """Yield a rewrite of the turn for each other text of its utterance."""
    for text in texts:
        yield scene.rewrite([scene.whole(text, operator)], about="another wording")


class _LockedWords:
    """The normalised locked words of a text, by lock."""

    def __init__(self, parts: Parts, mask: Mask) -> None:
        forms = [spell_compared(word.lower) for word in parts.words]
        self.said = frozenset(forms)
        self.words: dict[str, Counter[str]] = {
            reason: Counter() for reason in (*_COUNTED, *_PRESENT, "name", "negation")
        }
        for form, reason in zip(forms, mask.reasons, strict=True):
            # `2` may be locked as a value, and `two` as a number.
            lock = "value" if reason == "number" else reason
            if lock in self.words:
                self.words[lock][form] += 1


_NO_VALUES: Final = "the turn fills no slot"
_UNSAID: Final = "the user does not mention each value of the turn exactly once"
_LABELS: Final = "the labels and the answers disagree about the slots that the turn changes"
_NOBODY: Final = "no other dialogue has a usable utterance for the same slots"
#: Maximum number of rewrites per turn.
MOST_RETRIEVED: Final = 8


class _Place(NamedTuple):
    """Properties of a turn. Turns with equal properties may exchange their wordings."""

    slots: tuple[str, ...]
    #: Whether the system has spoken, whether it asks, and the slots that it names.
    system: tuple[bool, bool, frozenset[str]]
    #: Whether the user asks a question.
    asks: bool
    #: Domains of slots that the user names.
    domains: frozenset[str]


class Template(NamedTuple):
    """An utterance of another dialogue, with the positions of its values."""

    dialogue: str
    user: str
    #: Slots and their mentions, in the order of the text.
    values: tuple[tuple[str, ValueMention], ...]

    def filled(self, table: ValueTable, values: Mapping[str, str]) -> str | None:
        """Return the utterance with other values, or ``None`` if a value does not fit."""
        text = self.user
        for slot, mention in reversed(self.values):
            model = text[mention.start : mention.end]
            new = write_value(table.kinds.get(slot, "name"), values[slot], model)
            if new is None:
                return None
            start = mention.start
            head = text[:start].rstrip()
            last = head.rpartition(" ")[2]
            if last.lower() in {"a", "an"}:
                right = article_before(new)
                start = len(head) - len(last)
                new = f"{right.capitalize() if last[0].isupper() else right} {new}"
            text = text[:start] + new + text[mention.end :]
        return text


@register_relation
class Retrieval(Relation):
    """Rephrases a turn in the words of another dialogue. The answer must stay the same.

    The relation assumes that labels are correct. Both turns must fill the same slots, and the
    system must have named the same slots before them. The values of this turn replace the values of
    the other turn.
    """

    name = "retrieval"
    expects = "{stays}"
    source = "the utterances of the data itself, under its licence"
    on = ("state",)
    edits = "own"
    reasons = (_NO_VALUES, _UNSAID, _LABELS, _NOBODY)

    def impossible(self, data: DialogueSet) -> str:
        """Return an error text if fewer than two dialogues are fully labelled, else ``""``."""
        labelled = sum(all(turn.state is not None for turn in one.turns) for one in data.dialogues)
        return "" if labelled > 1 else "it needs at least two dialogues with a label on every turn"

    def begin(self, scene: Scene) -> TurnStart:
        """Return rewrites of the turn in the words of a few random other turns."""
        changes = diff_states(scene.before, scene.now)
        if not changes:
            return Inapplicable(_NO_VALUES)
        found = _template(scene.dialogue.id, scene.turn.user, changes)
        if found is None:
            return Inapplicable(_UNSAID)
        if _mislabelled(scene, changes):
            return Inapplicable(_LABELS)
        texts = list(islice(borrow_wordings(scene, scene.once(templates)), MOST_RETRIEVED))
        if not texts:
            return Inapplicable(_NOBODY)
        return rephrase_turn(scene, texts, "retrieved")


Templates = Mapping[_Place, Sequence[Template]]


def templates(data: DialogueSet) -> Templates:
    """Return the utterances that mention all values of their turns, by turn properties."""
    table = ValueTable.of(data)
    found: dict[_Place, list[Template]] = {}
    for dialogue in data.dialogues:
        states = [BeliefState(), *(turn.state for turn in dialogue.turns)]
        for turn, (before, now) in zip(dialogue.turns, pairwise(states), strict=True):
            if before is None or now is None:
                continue
            changes = diff_states(before, now)
            one = _template(dialogue.id, turn.user, changes) if changes else None
            if one is not None:
                place = _place(table, turn.system, turn.user, [one.slot for one in changes])
                found.setdefault(place, []).append(one)
    return found


def borrow_wordings(scene: Scene, others: Templates) -> Iterator[str]:
    """Yield the turn in the words of other turns, in random order and without duplicates."""
    table = scene.table
    changes = diff_states(scene.before, scene.now)
    values = {change.slot: change.after or "" for change in changes}
    place = _place(table, scene.turn.system, scene.turn.user, list(values))
    pool = others.get(place, ())
    seen = {plain_words(scene.turn.user)}
    for index in scene.rng.permutation(len(pool)).tolist():
        one = pool[index]
        text = one.filled(table, values) if one.dialogue != scene.dialogue.id else None
        if text is None or plain_words(text) in seen or find_broken_lock(scene, text):
            continue
        seen.add(plain_words(text))
        yield text


def plain_words(text: str) -> tuple[str, ...]:
    """Return the words of a text in small letters."""
    return tuple([word.lower for word in split_spoken(text).parts.words])


def _template(dialogue: str, user: str, changes: Sequence[Difference]) -> Template | None:
    """Return an utterance with the positions of its values. Each value must occur once."""
    said: SpokenText = split_spoken(user)
    found = []
    for change in changes:
        if change.after is None or change.after in UNSPOKEN:
            return None
        mentions = said.mentions(change.after)
        if len(mentions) != 1 or mentions[0].spelled == "other":
            return None
        found.append((mentions[0], change.slot))
    found.sort()
    if any(one.end > other.start for (one, _), (other, _) in pairwise(found)):
        return None
    return Template(dialogue, user, tuple((slot, mention) for mention, slot in found))


def _place(table: ValueTable, system: str, user: str, slots: Sequence[str]) -> _Place:
    asked = frozenset(split_spoken(system).forms)
    said = frozenset(split_spoken(user).forms)
    named = {
        slot
        for slot in slots
        if not asked.isdisjoint({*map(spell_compared, name_words(slot)), *_nouns(table, slot)})
    }
    domains = {spell_compared(domain_of(slot)) for slot in table.kinds if domain_of(slot)} & said
    return _Place(
        tuple(sorted(slots)),
        (bool(system.strip()), "?" in system, frozenset(named)),
        "?" in user,
        frozenset(domains),
    )


def _nouns(table: ValueTable, slot: str) -> frozenset[str]:
    """Return the nouns that a system uses to ask for this kind of slot, except its name."""
    return _ASKED.get(table.kinds.get(slot, "name"), frozenset())


#: Kind of a slot -> words that systems use to ask for it.
_ASKED: Final[Mapping[str, frozenset[str]]] = {
    "time": frozenset({"time", "when"}),
    "day": frozenset({"day", "when", "date"}),
    "end": frozenset({"where"}),
    "number": frozenset({"many"}),
}


def _mislabelled(scene: Scene, changes: Sequence[Difference]) -> bool:
    """Return whether labels and tracker's answers change different slots."""
    earlier = scene.dialogue.turns[scene.index - 1].state if scene.index else BeliefState()
    label = scene.turn.state
    if earlier is None or label is None:
        return False
    return diff_states(earlier, label) != tuple(changes)


_NO_FROZEN: Final = "the file has no confirmed paraphrase of the turn"
_LOCKED: Final = "every confirmed paraphrase of the turn breaks a lock of this run"


@register_relation
class FrozenWording(Relation):
    """Rephrases a turn with a reviewed text of a file. The answer must stay the same.

    The words come from the file in ``--dst-relation=frozen:FILE``, which ``dstfuzz freeze`` writes.
    """

    name = "frozen"
    expects = "{stays}"
    source = "as its file says"
    edits = "own"
    reasons = (_NO_FROZEN, _LOCKED)

    def impossible(self, data: DialogueSet) -> str:
        """Return an error text if no file is given, or no row of the file fits the data."""
        if data.frozen is None:
            return (
                "it needs a file of reviewed variants: give --dst-relation=frozen:FILE; dstfuzz "
                "freeze writes the file"
            )
        if not any(key in data.frozen for one in data.dialogues for key in turn_keys(one)):
            return (
                "the file of --dst-relation=frozen has no usable variant: none with the verdict "
                "'keeps' and without a lock is of a turn in the data"
            )
        return ""

    def begin(self, scene: Scene) -> TurnStart:
        """Return the approved wordings of the turn, in the order of the file."""
        texts = (scene.data.frozen or {}).get(turn_keys(scene.dialogue)[scene.index], ())
        if not texts:
            return Inapplicable(_NO_FROZEN)
        kept = [text for text in texts if not find_broken_lock(scene, text)]
        if not kept:
            return Inapplicable(_LOCKED)
        return rephrase_turn(scene, kept, "frozen")


class CandidateSource(NamedTuple):
    """A source of other wordings for user turns."""

    #: The name in ``--source``, repeated in each row of the file.
    name: str
    #: Origin of the texts, and their licence.
    licence: str
    #: A function that returns other wordings for each scene, the best first.
    words: Callable[[Sequence[Scene]], Iterable[Sequence[str]]]


def relation_source(name: str) -> CandidateSource:
    """Return a source whose wordings come from a relation.

    Raises:
        UserError: the relation does not exist, or it does not rephrase turns.
    """
    relation = relation_by_name(name)
    if not _says_otherwise(relation):
        others = (relation_by_name(one) for one in RELATIONS.shipped)
        usable = ", ".join(other.name for other in others if _says_otherwise(other))
        raise UserError(f"the relation {name!r} does not paraphrase turns: use one of {usable}")

    def words(scenes: Sequence[Scene]) -> Iterator[Sequence[str]]:
        for scene in scenes:
            begun = begin(relation, scene)
            if isinstance(begun, Inapplicable | BySearch):
                yield ()
            else:
                yield [rewrite.seen.user for rewrite in list_rewrites(begun)]

    return CandidateSource(name, relation.source or "none", words)


def pool_source(pool: DialogueSet) -> CandidateSource:
    """Return a source whose wordings come from other labelled data."""
    others = templates(pool)

    def words(scenes: Sequence[Scene]) -> Iterator[Sequence[str]]:
        for scene in scenes:
            yield list(islice(borrow_wordings(scene, others), MOST_RETRIEVED))

    licence = f"the utterances of {pool.name} (split {pool.split}), under its licence"
    return CandidateSource(Retrieval.name, licence, words)


def _says_otherwise(relation: Relation) -> bool:
    """Return whether a relation rephrases turns and keeps their meaning."""
    kept = relation.side == "should-not-change" and relation.unit == "turn"
    return kept and relation.edits == "own" and not isinstance(relation, FrozenWording)


def candidate_scenes(
    name: str,
    data: DialogueSet,
    turns: Iterable[tuple[Dialogue, int]],
    *,
    seed: int,
    locks: Sequence[str] = (),
) -> list[Scene]:
    """Return the scenes of turns for a source of wordings, with labels as the answers.

    If a turn has no label, its state is empty.
    """
    lexicon = load_lexicon()
    guards = Locks.of(lexicon, data.ontology, data.cue_words, locks)
    scenes = Scenes(data, lexicon, guards, seed)
    found = []
    for dialogue, index in turns:
        states = [turn.state or BeliefState() for turn in dialogue.turns]
        found.append(scenes.of(name, dialogue, index, states))
    return found


def candidate_rows(
    source: CandidateSource,
    data: DialogueSet,
    turns: Iterable[tuple[Dialogue, int]],
    *,
    each: int,
    seed: int,
    locks: Sequence[str] = (),
) -> Iterator[FrozenRow]:
    """Yield at most ``each`` wordings per turn, each with the lock that it breaks, if any."""
    scenes = candidate_scenes(source.name, data, turns, seed=seed, locks=locks)
    for scene, texts in zip(scenes, source.words(scenes), strict=True):
        user = scene.turn.user
        other = [text for text in dict.fromkeys(texts) if text.split() != user.split()]
        for text in islice(other, each):
            yield candidate_row(scene, text, source.name)


def candidate_row(scene: Scene, text: str, source: str) -> FrozenRow:
    """Return the row of a wording for a turn, with the lock that it breaks, if any."""
    key = turn_keys(scene.dialogue)[scene.index]
    return FrozenRow(key, scene.turn.user, text, source, find_broken_lock(scene, text))
