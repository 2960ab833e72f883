"""Remembered violations, their file (the corpus), and their lines in a terminal."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from pytest_dstfuzz.campaign.answers import Answer, Folding, TrackerFailure
from pytest_dstfuzz.campaign.figures import DistinctCount
from pytest_dstfuzz.campaign.results import (
    SeenRound,
    TurnResult,
    VariantResult,
    faults,
)
from pytest_dstfuzz.comparisons.arguments import rules_of_slots
from pytest_dstfuzz.comparisons.comparison import EXACT, Comparison
from pytest_dstfuzz.dialogue.calls import (
    History,
    Outcome,
    OutcomeKind,
    Transcript,
    transcript_json,
    transcript_of_json,
)
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, Difference, Exchange
from pytest_dstfuzz.dialogue.normalise import check_normalisation
from pytest_dstfuzz.errors import DataError, UserError, did_you_mean, unknown_name
from pytest_dstfuzz.files import lock_file, read_text, write_text
from pytest_dstfuzz.json_data import from_json, parse_json, to_json
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.kinds.kind import AnswerKind
from pytest_dstfuzz.printable import format_list
from pytest_dstfuzz.relations.registry import relation_by_name
from pytest_dstfuzz.relations.relation import UNCHANGED, Delta, Expectation, Relation, Verdict
from pytest_dstfuzz.report.answers import show_remembered
from pytest_dstfuzz.trackers.tracker import Prediction
from pytest_dstfuzz.weaknesses.groups import Heard, key_of_id, read, weakness_of

#: The scope of an acceptance: this violation alone, or its whole weakness.
Scope = Literal["violation", "weakness"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidEntry:
    """An exchange in the format of the corpus."""

    system: str
    user: str
    #: The edited user text; ``None`` if nothing was changed.
    seen: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusLine:
    """A line of the corpus file."""

    id: str
    status: str
    reason: str
    scope: Scope = "violation"
    #: Files of earlier versions lack the weakness and the normalisation.
    weakness: str = ""
    turn: str
    relation: str
    normalisation: str = "plain"
    changed: tuple[Difference, ...]
    edits: tuple[str, ...]
    #: For relations that expect a change or move rounds.
    expected: tuple[Delta, ...] = ()
    dialogue: tuple[SaidEntry, ...]
    seen: tuple[SeenRound, ...] | None = None
    #: For replies and tool calls.
    outcome: OutcomeKind = "state"
    compare: str = ""
    history: History = "recorded"
    #: For states and tool calls. Files of earlier versions lack it for states.
    answer: Outcome | None = None
    #: For tool calls.
    transcript: dict[str, Any] | None = None
    given: dict[str, Any] | None = None
    label: Outcome | None


def with_sorted_keys(transcript: Transcript | None) -> Transcript | None:
    """Return a transcript with sorted keys, as after reading it from the corpus."""
    return None if transcript is None else transcript_of_json(transcript_json(transcript))


def transcript_of_line(name: str, data: dict[str, Any] | None) -> Transcript | None:
    """Return the transcript under a key of a corpus line. A ``ValueError`` names the key."""
    try:
        return None if data is None else transcript_of_json(data)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


#: An ``accepted`` violation is known and fails no build.
Status = Literal["open", "accepted"]
#: The result of a replay. ``unclear`` = nothing changes any more, but the clean answer differs from
#: the one that changed. ``failed`` = the tracker gave no prediction. ``unasked`` = the budget was
#: exhausted.
ReplayOutcome = Literal["broken", "fixed", "unclear", "failed", "unasked"]
_DIGITS = 10


class SeenExchange(NamedTuple):
    """One exchange: the texts of system and user, and the user's text as the tracker read it."""

    system: str
    user: str
    seen: str

    def to_json(self) -> dict[str, str]:
        """Return the exchange as a dictionary.

        If the tracker read the original, ``seen`` is left out.
        """
        return (
            self._asdict() if self.seen != self.user else {"system": self.system, "user": self.user}
        )


@dataclass(frozen=True, slots=True)
class Regression:
    """A remembered violation, in the smallest known version."""

    #: Readable name of the turn in which it was found.
    turn: str
    relation: str
    exchanges: tuple[SeenExchange, ...]
    #: The changes at the time of discovery.
    changed: tuple[Difference, ...]
    #: ``transformation/operator`` of each remaining edit, those of earlier turns first.
    edits: tuple[str, ...] = ()
    #: The label of the turn, if the data has one.
    label: Outcome | None = None
    status: Status = "open"
    #: The reason for accepting it.
    reason: str = ""
    #: Name of the normalisation of slots and values.
    normalisation: str = "plain"
    #: Id of its weakness; ``""`` if unknown, for example in lines of earlier versions.
    weakness: str = ""
    scope: Scope = "violation"
    #: Expected changes of slots relative to the clean answer; other slots should have stayed.
    expected: tuple[Delta, ...] = ()
    #: All rounds that the tracker saw, if rounds moved; ``None`` = see ``exchanges``.
    rounds: tuple[SeenRound, ...] | None = None
    #: The kind of answer, and the name of the comparison for display.
    outcome: OutcomeKind = "state"
    compare: str = ""
    #: Whose messages formed the history: the recorded ones or the system's own.
    history: History = "recorded"
    #: The state or the calls of the clean turn at the time of discovery. ``None`` if rounds moved,
    #: and for replies.
    answer: Outcome | None = None
    #: For tool calls: the recorded transcript, and that given to the assistant if it differs.
    transcript: Transcript | None = None
    given: Transcript | None = None

    @classmethod
    def of(
        cls,
        turn: TurnResult,
        variant: VariantResult,
        dialogue: Dialogue,
        relation: str,
        normalisation: str = "plain",
        compare: str = "",
        history: History = "recorded",
    ) -> Regression:
        """Create a remembered violation from a result of a campaign.

        The smallest known version of the violation is stored. ``compare`` is the name of the
        comparison, or the names of several. If the answers are states, ``history`` is ignored.
        """
        plain = variant.plain
        rounds = variant.exchanges
        moved = rounds is not None and turn.kind.has_slots
        clean = dialogue.turns[: _length(variant) if moved else turn.turn_index + 1]
        seen = (*plain.context, plain.text)
        if rounds is not None:
            seen = tuple(past.user for past in clean)
        edits = [edit for earlier in plain.context_edits for edit in earlier.edits]
        calls = turn.kind.has_tools
        recorded = dialogue.context(turn.turn_index).transcript
        return cls(
            turn=turn.id,
            relation=relation,
            exchanges=tuple(
                SeenExchange(past.system, past.user, text)
                for past, text in zip(clean, seen, strict=True)
            ),
            changed=tuple(change.bare for change in faults(plain.changed_slots)),
            edits=tuple(
                f"{edit.transformation}/{edit.operator}" for edit in (*edits, *plain.edits)
            ),
            label=turn.label,
            normalisation=normalisation,
            weakness=read(turn, variant).key.id,
            expected=variant.expected,
            rounds=rounds,
            outcome=turn.outcome_kind,
            compare=rules_of_slots(compare) if turn.kind.has_slots else compare,
            history="recorded" if turn.kind.has_slots else history,
            answer=turn.clean_state if calls or (turn.kind.has_slots and not moved) else None,
            transcript=with_sorted_keys(recorded) if calls else None,
            given=with_sorted_keys(variant.transcript),
        )

    @property
    def kind(self) -> AnswerKind:
        """The kind of answer that changed: states, calls or replies."""
        return KINDS[self.outcome]

    @property
    def id(self) -> str:
        """A hash of the texts and the settings of the test. It depends on nothing else."""
        # For states, only the relation is included.
        tested = [self.relation] if self.kind.has_slots else [self.relation, self.outcome]
        tested += [] if self.history == "recorded" else [self.history]
        content = json.dumps([*tested, *self.exchanges])
        if self.rounds is not None:
            content = json.dumps([*tested, self.clean.exchanges, self.seen.exchanges])
        for transcript in filter(None, (self.transcript, self.given)):
            content += transcript.key
        return hashlib.sha256(content.encode("utf-8")).hexdigest()[:_DIGITS]

    @property
    def slots(self) -> frozenset[str]:
        """The slots whose values changed when the violation was found."""
        return frozenset(change.slot for change in self.changed)

    @property
    def clean(self) -> Context:
        """The unmodified dialogue up to the turn."""
        return Context(
            tuple(Exchange(said.system, said.user) for said in self.exchanges),
            transcript=self.transcript,
        )

    @property
    def seen(self) -> Context:
        """The edited dialogue up to the turn, as the tracker reads it."""
        if self.rounds is not None:
            return Context(tuple(Exchange(said.system, said.user) for said in self.rounds))
        return Context(
            tuple(Exchange(said.system, said.seen) for said in self.exchanges),
            transcript=self.given or self.transcript,
        )

    @property
    def told(self) -> Iterator[tuple[str, str]]:
        """The texts of the dialogue for display, each with its speaker or a label."""
        for said in self.exchanges:
            if said.system:
                yield "system", said.system
            yield "user", said.user
            if said.seen != said.user:
                yield "seen as", said.seen
        for number, one in enumerate(self.rounds or (), 1):
            yield f"seen {number}", f"{one.system} / {one.user}" if one.system else one.user

    def text_of(self, change: Difference, show: Callable[[str], str] = str) -> str:
        """Describe the actual and the expected change of a slot. ``show`` formats the values."""
        delta = Expectation(self.expected).of(change.slot)
        return replace(change, expected=delta.after if delta else None).told(show)

    def lines_of(
        self, changes: Sequence[Difference], show: Callable[[str], str] = str
    ) -> list[str]:
        """Describe changes of slots, with one line per slot, or one per call for tool calls."""
        if self.kind.has_tools and not self.expected:
            return show_remembered(self.answer, changes, show)
        return [self.text_of(change, show) for change in changes]

    @property
    def done(self) -> str:
        """The edits of the dialogue in words, or the relation that moved or added rounds."""
        return ", ".join(self.edits) or self.relation

    def replayed(
        self,
        answers: Mapping[Context, Answer],
        relation: Relation | None = None,
        comparison: Comparison = EXACT,
    ) -> tuple[ReplayOutcome, tuple[Difference, ...]]:
        """Return whether the violation still occurs, and which slots change.

        - ``broken``: any of the slots that changed at the time of discovery changes again, to any
          value. If a change is expected, ``broken`` means that a slot does not change as expected.
        - ``fixed``: nothing changes, and each slot of the clean answer has its old value or the
          value of the label. Further tool calls do not matter.
        - ``unclear``: the clean answer has other values, which are returned. A tracker that
          understands nothing cannot violate a relation. ``unclear`` is also the result if the clean
          answer no longer has the value that should change, or if the comparison is undecided about
          a reply.
        - ``unasked``: the answer to `clean` or `seen` is missing, because the budget was exhausted.
        - ``failed``: the tracker failed on one of the two.

        By default, the relation with the stored name is used. A reply that the comparison accepts
        as equal to the stored reply counts as the stored reply.
        """
        if self.clean not in answers or self.seen not in answers:
            return "unasked", ()
        before, after = answers[self.clean], answers[self.seen]
        if isinstance(before, TrackerFailure) or isinstance(after, TrackerFailure):
            return "failed", ()
        if not comparison.exact:
            return self._compared(before, after, relation, Folding(comparison))
        gone = [
            Difference(delta.slot, delta.before, now)
            for delta in self.expected
            if (now := before.state.get(delta.slot)) != delta.before
        ]
        if gone:
            return "unclear", tuple(gone)
        verdict = self._judged(before.state, after.state, relation)
        broken = verdict.kind == "violation" and any(c.slot in self.slots for c in verdict.changes)
        if broken:
            return "broken", verdict.changes
        moved = self._moved(before.state)
        return ("unclear", moved) if moved else ("fixed", ())

    def _compared(
        self, before: Prediction, after: Prediction, relation: Relation | None, folding: Folding
    ) -> tuple[ReplayOutcome, tuple[Difference, ...]]:
        kept, *folded = self._folded(before, after, folding)
        found = dict(zip((self.clean, self.seen), folded, strict=True))
        outcome, changes = kept.replayed(found, relation)
        if outcome == "fixed" and folding.unsure(self.slots, [before], [after], self.clean):
            old, new = before.state, after.state
            slots = sorted(self.slots)
            return "unclear", tuple(
                Difference(slot, old.get(slot), new.get(slot)) for slot in slots
            )
        return outcome, changes

    def _folded(
        self, before: Prediction, after: Prediction, folding: Folding
    ) -> tuple[Regression, Prediction, Prediction]:
        """Replace answers by equal stored answers, if the comparison accepts both."""
        known = {one.slot: one.before for one in self.changed if one.before is not None}
        found = Outcome(known) if self.answer is None else self.answer
        clean = before
        aligned = folding.comparison.align(found, before.state)
        texts = {
            path: found[path]
            if path in found and folding.compare(path, found[path], text, self.clean).same
            else text
            for path, text in aligned.items()
        }
        before = replace(before, state=Outcome(texts))
        wanted = Expectation(self.expected)
        (after,) = folding.to_clean([after], [clean], before.state, self.clean, wanted, self.seen)
        right = self.label is not None and folding.agree(self.label, before.state, self.clean)
        return replace(self, label=before.state if right else self.label), before, after

    def _judged(self, before: Outcome, after: Outcome, relation: Relation | None) -> Verdict:
        if self.expected:
            return Expectation(self.expected).judge(before, after)
        known = relation_by_name(self.relation) if relation is None else relation
        if known.edits == "own":
            return UNCHANGED.judge(before, after)
        return known.judge(before, after, self.label)

    def _moved(self, clean: Outcome) -> tuple[Difference, ...]:
        """Return the slots whose clean value differs from the stored value and from the label.

        A tracker that no longer understands the turn may break nothing. Without a label, it is
        unknown which value is right, the stored one or the new one.
        """
        old = dict[str, str | None](self.answer or {})
        if self.answer is not None and self.kind.has_slots:
            old = {**dict.fromkeys(clean), **old}
        elif (
            self.answer is None and not clean
        ):  # A line of an earlier version. An empty answer shows nothing.
            old |= self.label or {}
        old |= {change.slot: change.before for change in self.changed}
        first = [change.slot for change in self.changed]
        found = []
        for slot in dict.fromkeys([*first, *sorted(old)]):
            now = clean.get(slot)
            right = self.label is not None and self.label.get(slot) == now
            if now != old[slot] and not right:
                found.append(Difference(slot, old[slot], now))
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        """Return the violation as a dictionary, with its keys in reading order."""
        return {
            "id": self.id,
            "status": self.status,
            "reason": self.reason,
            **({"scope": self.scope} if self.scope != "violation" else {}),
            "weakness": self.weakness,
            "turn": self.turn,
            "relation": self.relation,
            **({} if self.kind.has_slots else {"outcome": self.outcome}),
            **({"compare": self.compare} if self.compare else {}),
            **({} if self.history == "recorded" else {"history": self.history}),
            "normalisation": self.normalisation,
            "changed": [
                {"slot": one.slot, "before": one.before, "after": one.after} for one in self.changed
            ],
            "edits": list(self.edits),
            **({"expected": [to_json(delta) for delta in self.expected]} if self.expected else {}),
            "dialogue": [said.to_json() for said in self.exchanges],
            **({} if self.rounds is None else {"seen": [to_json(said) for said in self.rounds]}),
            **({} if self.answer is None else {"answer": self.answer.to_json()}),
            **({} if self.transcript is None else {"transcript": transcript_json(self.transcript)}),
            **({} if self.given is None else {"given": transcript_json(self.given)}),
            "label": None if self.label is None else self.label.to_json(),
        }

    @classmethod
    def from_json(cls, data: object) -> Regression:
        """Parse the output of `to_json`.

        If the id does not match the texts, raise a ``ValueError``.
        """
        line = from_json(CorpusLine, data)
        if line.status not in ("open", "accepted"):
            raise ValueError(f"'status' is {line.status!r}: it must be 'open' or 'accepted'")
        check_normalisation(line.normalisation)
        if not line.dialogue:
            raise ValueError("'dialogue' is empty")
        if not line.changed:
            raise ValueError("'changed' is empty: it must name the slots that changed")
        deltas = (delta.slot for delta in line.expected)
        for slot in (*(change.slot for change in line.changed), *deltas, *(line.label or ())):
            # A tracker may answer with any other slot name.
            if not slot.strip():
                raise ValueError(f"{slot!r} is not the name of a slot")
        wanted = {delta.slot for delta in line.expected}
        for change in line.changed:
            if change.before == change.after and change.slot not in wanted:
                raise ValueError(
                    f"'changed' has the slot {change.slot!r}, whose value did not change"
                )
        found = cls(
            turn=line.turn,
            # The relation may be defined by the suite, which is not loaded here.
            relation=line.relation,
            exchanges=tuple(
                SeenExchange(said.system, said.user, said.user if said.seen is None else said.seen)
                for said in line.dialogue
            ),
            changed=tuple(change.bare for change in line.changed),
            edits=line.edits,
            label=line.label,
            status="accepted" if line.status == "accepted" else "open",
            reason=line.reason,
            normalisation=line.normalisation,
            scope=line.scope,
            expected=Expectation(line.expected).deltas,
            rounds=line.seen,
            outcome=line.outcome,
            compare=line.compare,
            history=line.history,
            answer=line.answer,
            transcript=transcript_of_line("transcript", line.transcript),
            given=transcript_of_line("given", line.given),
        )
        said = [Heard(*one) for one in found.exchanges]
        weakness = line.weakness
        plain = not line.expected and line.seen is None and found.kind.has_slots
        if not weakness and plain:
            weakness = weakness_of(len(line.edits), said, line.changed)
        found = replace(found, weakness=weakness)
        if found.id != line.id:
            raise ValueError(
                f"the id {line.id!r} does not fit the edited texts: restore or remove the line"
            )
        return found


def is_kept(variant: VariantResult) -> bool:
    """Return whether a violation can be remembered.

    It cannot if the variant only repeats words, or if the relation compares two edited contexts.
    """
    return variant.reference is None and all(move.kind != "again" for move in variant.moves)


def _length(variant: VariantResult) -> int:
    """Return how many rounds of the clean dialogue the comparison uses.

    This is for violations of relations that move rounds.
    """
    more = sum(move.kind in ("repeat", "add") for move in variant.moves)
    less = sum(move.kind in ("drop", "join") for move in variant.moves)
    return len(variant.exchanges or ()) - more + less


#: The folder of corpora, relative to the root of a project.
FOLDER: Final = Path(".dstfuzz", "regressions")

#: Lines that git adds in a merge conflict.
_MERGE_MARKS: Final = ("<<<<<<< ", "||||||| ", "=======", ">>>>>>> ")
#: Maximum number of ids in a message.
_MOST_NAMES: Final = 10

#: Maximum number of remembered violations per weakness, so that one weakness does not fill the
#: file.
MOST_OF_ONE: Final = 5

#: Id -> violation, sorted by id.
Corpus = Mapping[str, Regression]


def corpus_path(folder: Path, data_name: str) -> Path:
    """Return the path of the corpus file for a data set."""
    return folder / f"{data_name}.jsonl"


def read_corpus(path: Path) -> Corpus:
    """Read the violations in a corpus file. A missing file has no violations.

    A violation may be on several lines, for example after a merge of two branches. In this case,
    keep a line with an accepted violation, or else the first line in alphabetical order.
    """
    found = []
    lines = read_text(path, "regressions").split("\n") if path.exists() else []
    for number, line in enumerate(lines, start=1):
        if line.startswith(_MERGE_MARKS):
            raise DataError(
                f"{path}, line {number} is a merge marker of git: keep the lines of both branches "
                "and remove the markers"
            )
        try:
            found += [Regression.from_json(parse_json(line))] if line.strip() else []
        except (ValueError, UserError) as error:
            raise DataError(f"{path}, line {number} is not a violation: {error}") from None
    return _merged(sorted(found, key=lambda entry: json.dumps(entry.to_json())))


def update_corpus(path: Path, change: Callable[[Corpus], Corpus]) -> tuple[Corpus, Corpus]:
    """Update a corpus file under a lock. Return the violations before and after."""
    with lock_file(path):
        before = read_corpus(path)
        after = change(before)
        if after != before:
            write_text(path, corpus_text(after))
    return before, after


def corpus_text(corpus: Corpus) -> str:
    """Return the text of a corpus file. The same violations always give the same text."""
    lines = (json.dumps(corpus[name].to_json(), ensure_ascii=False) for name in sorted(corpus))
    return "".join(f"{line}\n" for line in lines)


def remember_violations(corpus: Corpus, found: Iterable[Regression]) -> Corpus:
    """Return a corpus with the newly found violations added.

    Existing entries stay unchanged, with one exception. If an open violation now changes other
    slots, for example after a slot was renamed, these slots are added. A weakness gets new
    violations up to a total of `MOST_OF_ONE`. Individually accepted violations do not count for
    this total.
    """
    merged = dict(corpus)
    counts = Counter(
        entry.weakness
        for entry in corpus.values()
        if entry.status == "open" or entry.scope == "weakness"
    )
    for entry in sorted(found, key=_plainness):
        if (known := merged.get(entry.id)) is not None:
            merged[entry.id] = _seen_again(known, entry)
        elif not entry.weakness or counts[entry.weakness] < MOST_OF_ONE:
            merged[entry.id] = entry
            counts[entry.weakness] += 1
    return _merged(merged.values())


class FoundTally:
    """Collects the violations of a run that `remember_violations` may add.

    These are violations that are already in the corpus, and the simplest violations of each
    weakness.
    """

    def __init__(self, known: Collection[str]) -> None:
        """Start without violations. ``known`` are the ids in the corpus."""
        self._known = known
        #: Weakness -> ids -> violations with this id and different slots.
        self._kept: dict[str, dict[str, list[Regression]]] = {}
        self._ids = DistinctCount()

    def add(self, entry: Regression) -> None:
        """Add a violation. If its weakness then has too many, drop the least simple violation."""
        self._ids.add(entry.id)
        known = entry.id in self._known
        of_one = self._kept.setdefault("" if known else entry.weakness, {})
        same = of_one.setdefault(entry.id, [])
        if all(one.slots != entry.slots for one in same):
            same.append(entry)
        if entry.weakness and not known and len(of_one) > MOST_OF_ONE:
            del of_one[max(of_one, key=lambda name: _plainness(of_one[name][0]))]

    @property
    def kept(self) -> list[Regression]:
        """The violations that were collected."""
        return [one for each in self._kept.values() for same in each.values() for one in same]

    def left_out(self, after: Corpus) -> int:
        """Return how many violations of the run are missing in the corpus ``after``."""
        return self._ids.value - len({one.id for one in self.kept}.intersection(after))


def _seen_again(known: Regression, entry: Regression) -> Regression:
    if key_of_id(known.weakness) is None:  # Unknown, or from an earlier version.
        known = replace(known, weakness=entry.weakness)
    if known.status == "accepted" or not entry.slots - known.slots:
        return known
    new = [change for change in entry.changed if change.slot not in known.slots]
    return replace(known, changed=(*known.changed, *new))


def _plainness(entry: Regression) -> tuple[int, int, str]:
    """Return a sort key: fewest edits first, then the shortest utterance."""
    return (len(entry.edits), len(entry.exchanges[-1].seen), entry.id)


def accept_violation(corpus: Corpus, name: str, reason: str) -> Corpus:
    """Return the corpus with one violation accepted."""
    _check_reason(reason)
    entry = replace(one(corpus, name), status="accepted", reason=reason.strip())
    return {**corpus, entry.id: entry}


def accept_turn(corpus: Corpus, turn: str, reason: str) -> Corpus:
    """Return the corpus with all open violations of a turn accepted."""
    _check_reason(reason)
    return {
        name: replace(entry, status="accepted", reason=reason.strip())
        if entry.turn == turn and entry.status == "open"
        else entry
        for name, entry in corpus.items()
    }


def accept_weakness(corpus: Corpus, weakness: str, reason: str) -> Corpus:
    """Return the corpus with a weakness accepted. This also covers its future violations."""
    _check_reason(reason)
    known: dict[str, Any] = {"status": "accepted", "reason": reason.strip(), "scope": "weakness"}
    return {
        name: replace(entry, **known) if entry.weakness == weakness else entry
        for name, entry in corpus.items()
    }


def _check_reason(reason: str) -> None:
    if not reason.strip():
        raise UserError("accepting a violation needs a reason: add --reason '...'")


def reasons_by_weakness(corpus: Corpus) -> dict[str, str]:
    """Return the reason for each weakness that was accepted as a whole."""
    return {
        entry.weakness: entry.reason
        for entry in corpus.values()
        if entry.weakness and entry.status == "accepted" and entry.scope == "weakness"
    }


def without(corpus: Corpus, names: Iterable[str]) -> Corpus:
    """Return the corpus without some violations. Unknown names are ignored."""
    gone = set(names)
    return {name: entry for name, entry in corpus.items() if name not in gone}


#: The end of a turn's id.
_TURN: Final = re.compile(r"-t\d+\Z")


def one(corpus: Corpus, name: str) -> Regression:
    """Return the violation with this id."""
    return corpus[full_id(corpus, name)]


def full_id(known: Iterable[str], start: str, kind: str = "regression") -> str:
    """Return the only id that begins with ``start``. ``kind`` is the noun for it in messages.

    The number of a turn must be complete: ``t1`` does not begin ``t10``.

    Raises:
        UserError: no id begins so, or several do.
    """
    names = sorted(known)
    of_turn = kind == "regression" and _TURN.search(start) is not None
    found = [
        name
        for name in names
        if start
        and name.startswith(start)
        and not (of_turn and name[len(start) : len(start) + 1].isdigit())
    ]
    if len(found) > 1 and start not in found:
        raise UserError(
            f"{len(found)} ids of {'weaknesses' if kind == 'weakness' else 'regressions'} begin "
            f"with {start!r}, write more of the id: {format_list(found, _MOST_NAMES)}"
        )
    if not found and of_turn:
        raise UserError(
            f"unknown turn {start!r}: no violation of it is remembered. Remember it with "
            f"--dst-remember. If the file has {MOST_OF_ONE} violations of its weakness already, "
            f"accept the weakness.{did_you_mean(start, names)}"
        )
    if not found:
        if len(names) <= _MOST_NAMES:
            raise unknown_name(kind, start, names)
        hint = did_you_mean(start, names)
        valid = format_list(names, _MOST_NAMES)
        raise UserError(
            f"unknown {kind} {start!r}.{hint} Valid: {valid} (dstfuzz regressions lists them)."
        )
    return found[0]


def _merged(found: Iterable[Regression]) -> Corpus:
    """Merge violations by id. Prefer accepted ones.

    If a weakness is accepted as a whole, its open violations are accepted too.
    """
    kept: dict[str, Regression] = {}
    for entry in found:
        if entry.id not in kept or _extent(entry) > _extent(kept[entry.id]):
            kept[entry.id] = entry
    for weakness, reason in reasons_by_weakness(kept).items():
        opened = [entry for entry in kept.values() if _extent(entry) == 0]
        kept |= accept_weakness(
            {entry.id: entry for entry in opened if entry.weakness == weakness}, weakness, reason
        )
    return dict(sorted(kept.items(), key=itemgetter(0)))


def _extent(entry: Regression) -> int:
    """Return a number for the accepted part: 0 none, 1 the violation, 2 its whole weakness."""
    if entry.status == "open":
        return 0
    return 2 if entry.scope == "weakness" else 1
