"""Checks for test suites of trackers, relations and comparisons.

::

    from pytest_dstfuzz.testing import check_comparison, check_relation, check_tracker

    def test_my_tracker_keeps_the_contract():
        check_tracker(track).assert_passed()

    def test_my_relation_is_sound():
        check_relation(MyRelation, "conversations.jsonl").assert_passed()

    def test_my_comparison_is_one():
        check_comparison(same, ["It is open.", "We are open."]).assert_passed()

The checks need neither options of the plugin nor a campaign.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, Literal

from pytest_dstfuzz.comparisons.arguments import ArgumentTable
from pytest_dstfuzz.comparisons.calls import comparison_of_calls, comparison_of_states
from pytest_dstfuzz.comparisons.comparison import (
    Comparison,
    ComparisonCheck,
    as_admitted,
    as_before,
    check_comparison_laws,
)
from pytest_dstfuzz.comparisons.registry import DEFAULT, as_comparison
from pytest_dstfuzz.config import ReplySettings, Settings
from pytest_dstfuzz.dialogue.calls import (
    REPLY,
    AnswerPath,
    Outcome,
    OutcomeKind,
    canonical,
)
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, DialogueSet, Turn, in_own_names
from pytest_dstfuzz.dialogue.load import SAMPLE, load_dialogues
from pytest_dstfuzz.dialogue.normalise import normalise_slot, normalise_state
from pytest_dstfuzz.dialogue.ontology import complete_ontology
from pytest_dstfuzz.errors import UserError, unknown_name
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.kinds.kind import AnswerKind
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.relations.checks import RelationCheck, check_laws
from pytest_dstfuzz.relations.registry import as_relation, relation_by_name
from pytest_dstfuzz.relations.relation import Delta, Expectation
from pytest_dstfuzz.trackers.adapters import as_tracker
from pytest_dstfuzz.trackers.conformance import Conformance, Finding
from pytest_dstfuzz.trackers.conformance import check_tracker as _check
from pytest_dstfuzz.trackers.validation import check_predictions

#: The marks between the parts of a slot, and all characters that are neither letter nor digit, with
#: the number of a call.
_JOINT: Final = re.compile(r"[-.]")
_NO_LETTER: Final = re.compile(r"\[\d+\]|[\W_]")
#: Slots with shorter last words often differ in one letter.
_SHORTEST: Final = 3

__all__ = [
    "ComparisonCheck",
    "Conformance",
    "Finding",
    "RelationCheck",
    "assert_follows",
    "check_comparison",
    "check_relation",
    "check_tracker",
]


def check_tracker(
    tracker: object,
    dialogues: DialogueSet | Iterable[Dialogue] | str | Path = SAMPLE,
    *,
    batch_size: int = 64,
    repeatable: bool | None = None,
    outcome: OutcomeKind = "state",
) -> Conformance:
    """Run all checks of the conformance kit on a tracker. Return the findings.

    The tracker answers each turn once. Then it answers some turns again, in other orders and
    batches. This adds about 500 contexts.

    Args:
        tracker: a tracker, or any object that the plugin accepts as one: a function from a context
            to ``{slot: value}``, an object with ``reset()`` and ``update()``, ...
        dialogues: loaded or built dialogues, a path, or the name of a data set; the shipped
            dialogues by default.
        batch_size: the number of contexts in one batch of a run.
        repeatable: whether the tracker must give the same answer each time; ``None`` = as the
            tracker declares.
        outcome: the tested part of an answer: "reply" for a system that replies, "tool-calls" for
            one that calls tools.

    Raises:
        UserError: there are no turns, or ``tracker`` is not a tracker.
        DataError: the dialogues cannot be read.
    """
    data = _data(dialogues, outcome)
    made = as_tracker(tracker, normalisation=data.normalisation, outcome=outcome)
    return _check(made, data, batch_size, repeatable=repeatable, outcome=outcome)


def check_relation(
    relation: object,
    dialogues: DialogueSet | Iterable[Dialogue] | str | Path = SAMPLE,
    *,
    seed: int = 0,
    outcome: OutcomeKind | None = None,
) -> RelationCheck:
    """Apply a relation to every turn of some dialogues. Return the findings.

    The check needs no tracker, because the labels replace its answers. If a turn has no label, the
    tracker counts as failed at this turn. The check has these rules:

    * The rewrites are the same in every order and at every call.
    * The edits turn the utterance into the rewritten utterance.
    * Each expected change begins with the current value of its slot.
    * For every turn without rewrites, the relation gives a reason from its list.

    Args:
        relation: a relation, its class if it needs no arguments, or a name.
        dialogues: see `check_tracker`.
        seed: the seed of the random numbers for the relation.
        outcome: the kind of the labels, such as "tool-calls"; ``None`` = the first kind that the
            relation supports, which is usually the belief state.

    Raises:
        UserError: the relation does not exist, the object is not a relation, the relation does not
            apply to this kind of data, or there are no dialogues.
        DataError: the dialogues cannot be read.
    """
    found = (
        relation_by_name(relation)
        if isinstance(relation, str)
        else as_relation(relation, "check_relation()")
    )
    data = _data(dialogues, outcome or found.on[0])
    if not data.dialogues:
        raise UserError("check_relation(): there are no dialogues, so nothing would be checked")
    if why := found.impossible(data):
        raise UserError(
            f"check_relation(): the relation {found.name!r} does not apply to the data "
            f"{data.name!r} (split {data.split}): {why}"
        )
    return check_laws(found, data, load_lexicon(), seed, outcome)


def check_comparison(
    comparison: object, texts: Iterable[str] = (), *, threshold: float | None = None
) -> ComparisonCheck:
    """Compare texts with themselves and with each other. Return the findings.

    A text must agree with itself. Two texts must get the same verdict in both orders and at every
    call. The comparison must never raise an exception. Besides ``texts``, the check uses unusual
    texts, such as an empty text, an emoji, and 10,000 characters.

    Args:
        comparison: a function ``same(before, found)``, a `Comparison`, its class, or names.
        texts: typical replies of the system.
        threshold: the largest distance of equivalent texts, if the function returns distances. The
            option ``--dst-compare`` has a key with the same name.

    Raises:
        UserError: the comparison does not exist, or the object is not a comparison.
    """
    settings = ReplySettings(threshold=threshold)
    return check_comparison_laws(
        as_comparison(comparison, "check_comparison()", settings), list(texts)
    )


def assert_follows(  # noqa: PLR0913 - all but the first three are passed by name
    tracker: object,
    clean: Context,
    seen: Context,
    *expected: Delta,
    slots: Iterable[str] | None = None,
    normalisation: str = "plain",
    outcome: OutcomeKind = "state",
    compare: object = None,
    threshold: float | None = None,
    arguments: Mapping[str, object] | Iterable[str] = (),
    call_order: Literal["any", "exact"] = "any",
) -> None:
    """Request two contexts from a tracker, and check the changes of slots between the answers.

    The tests that ``dstfuzz promote`` writes call this function.

    Args:
        tracker: see `check_tracker`.
        clean: the unmodified dialogue.
        seen: the same dialogue with an edited utterance, or with rounds in another order.
        expected: the changes of slots, normalised like answers; all other slots must stay.
        slots: the only slots that count; ``None`` = all. For tool calls, ``book_table.people``
            counts the argument in every call, and ``book_table[0].people`` in the first one.
        normalisation: the normalisation of slots and values before the comparison.
        outcome: the tested part of an answer: ``reply`` = the reply, as a slot with that name;
            ``tool-calls`` = the calls of the next message: ``book_table[0].people``.
        compare: how to compare two replies: names separated by commas, a function of two texts, or
            a `Comparison`; ``None`` = the default for replies.
        threshold: the maximum distance of equivalent replies; ``None`` = the calibrated one.
        arguments: rules for the arguments of tools, ``{"book_table.people": "number"}``, or for the
            slots of a belief state.
        call_order: whether the order of tool calls counts.

    Raises:
        AssertionError: a slot is not as expected; the message lists actual and expected values.
        TrackerError: an answer of the tracker is not a state.
        UserError: an argument is not valid, or a name of a slot is blank, does not count, or is a
            misspelt or incomplete slot of the answers.
    """
    __tracebackhide__ = True
    kind = _kind_of(outcome)
    deltas = _in_words(expected, normalisation, kind)
    counted = None if slots is None else _counted(slots, normalisation, kind, deltas)
    made = as_tracker(tracker, normalisation=normalisation, outcome=outcome)
    before, after = check_predictions(made.predict([clean, seen]), 2, normalisation, outcome)
    _refuse_unknown(kind, clean, [before.state, after.state], counted or (), deltas)
    wanted, found = Expectation(deltas), after.state
    if not kind.words.values:
        wanted = _other_replies(deltas, before.state)
        found = as_before(_of_replies(compare, threshold), clean, before.state, found)
    elif arguments and kind.has_slots:
        found = _alike(_of_states(arguments, normalisation), clean, before.state, found, wanted)
    elif kind.has_tools:
        how = Settings.of(outcome=outcome, arguments=arguments, call_order=call_order).reply
        found = _calls_alike(before.state, _named(seen, found), clean, how, counted or (), wanted)
    changes = wanted.judge(before.state, found).changes
    if told := [miss.told() for miss in changes if counted is None or _counts(miss.slot, counted)]:
        raise AssertionError("\n".join([f"the {kind.words.subject} not as expected:", *told]))


def _kind_of(outcome: OutcomeKind) -> AnswerKind:
    if outcome not in KINDS:
        raise unknown_name("outcome", outcome, KINDS)
    return KINDS[outcome]


def _counted(
    slots: Iterable[str], normalisation: str, kind: AnswerKind, expected: Iterable[Delta]
) -> frozenset[str]:
    """Return the slots that count, in the spelling of the checked answers."""
    names = [slots] if isinstance(slots, str) else [*slots]
    if not names:
        raise UserError(
            "assert_follows(slots=...) names no slot, so no change would count: name slots, or "
            "leave it out so that all count"
        )
    if not all(name.strip() for name in names):
        raise UserError("assert_follows(slots=...) has a blank name: name a slot, or remove it")
    if kind.has_slots:
        names = [normalise_slot(name, normalisation) or name for name in names]
    for delta in expected:
        if not _counts(delta.slot, names):
            raise UserError(
                f"assert_follows() expects a change of {delta.slot!r}, but slots=... counts only "
                f"{', '.join(map(repr, names))}: add the slot, or remove the change"
            )
    return frozenset(names)


def _in_words(expected: Iterable[Delta], normalisation: str, kind: AnswerKind) -> tuple[Delta, ...]:
    """Return the expected changes, sorted, with slots and values in the words of the answers."""
    found: dict[str, Delta] = {}
    for delta in expected:
        slot = delta.slot
        if kind.has_slots:
            slot = normalise_slot(slot, normalisation) or slot
        if slot in found:
            raise UserError(f"assert_follows() expects two changes of {slot!r}: remove one")
        given = delta.after.values
        every = [given] if isinstance(given, str) else [*given]
        before, *values = (_value(one, slot, normalisation, kind) for one in [delta.before, *every])
        try:
            found[slot] = Delta(slot, before, replace(delta.after, values=tuple(values)))
        except ValueError:
            raise UserError(
                f"assert_follows() expects a change of {slot!r} from {delta.before!r} to "
                f"{delta.after}, which is the same value: expect another value"
            ) from None
    return tuple(found[slot] for slot in sorted(found))


def _value(value: object, slot: str, normalisation: str, kind: AnswerKind) -> str | None:
    """Return an expected value in the form of the checked answers; ``None`` = absent."""
    if value is None:
        return None
    if kind.has_slots:
        return normalise_state({slot: value}, normalisation).get(slot)
    return value if isinstance(value, str) else canonical(value)


def _refuse_unknown(
    kind: AnswerKind,
    clean: Context,
    answers: Iterable[Outcome],
    counted: Iterable[str],
    deltas: Iterable[Delta],
) -> None:
    """Raise an error for a name that no answer has and that must mean a slot of the answers.

    A name may be right although neither answer has it: a bot fills a slot only after an edit, and
    its next version no longer does.
    """
    paths = {REPLY} if not kind.words.values else {path for answer in answers for path in answer}
    arguments = {AnswerPath.of(path).part[1] for path in paths}
    if kind.has_tools and clean.transcript is not None:
        arguments |= {*ArgumentTable(tools=clean.transcript.tools).slots}
    named = [(name, {*paths, *arguments}) for name in counted]
    # An expected change is at one call.
    named += [(delta.slot, paths or arguments) for delta in deltas]
    for name, known in named:
        path = AnswerPath.of(name)
        base = path.part[1]
        if name in known or not known or (path.in_call and base in arguments):
            continue
        joined = kind.has_tools or all(map(_JOINT.search, known))
        meant = sorted(slot for slot in known if _may_mean(base, slot, joined=joined))
        if meant or "*" in name or not kind.words.values:
            slots = ", ".join(map(repr, meant or sorted(known)))
            raise UserError(
                f"assert_follows() names the {kind.words.slot} {name!r}, which no answer has, so "
                f"it would check nothing: name {'one of ' if ', ' in slots else ''}{slots}"
            )


def _may_mean(name: str, slot: str, *, joined: bool) -> bool:
    """Return whether a name is a pattern, a part or a misspelling of a slot.

    ``joined`` says whether all slots have a domain or a tool.
    """
    part = AnswerPath.of(slot).part[1]
    one, two = (_NO_LETTER.sub(" ", text.casefold()).split() for text in (name, part))
    if "".join(one) == "".join(two) or fnmatchcase(slot, name):
        return True
    if not _JOINT.search(name):
        return joined and f" {' '.join(one)} " in f" {' '.join(two)} "
    return len(two[-1]) >= _SHORTEST and _is_slip(name, part)


def _is_slip(one: str, two: str) -> bool:
    """Return whether two names differ in one letter, or in two swapped ones."""
    pairs = [*zip(one, two, strict=False)]
    start = next((at for at, (a, b) in enumerate(pairs) if a != b), len(pairs))
    one, two = one[start:], two[start:]
    swapped = one[:2] == two[1::-1] and one[2:] == two[2:]
    slip = one[1:] == two[1:] or one[1:] == two or one == two[1:]
    return swapped or (slip and f"{one[:1]}{two[:1]}".isalpha())


def _counts(slot: str, counted: Collection[str]) -> bool:
    return slot in counted or AnswerPath.of(slot).part[1] in counted


def _other_replies(deltas: Iterable[Delta], before: Outcome) -> Expectation:
    """Return the expected changes from the reply that the bot gives now, as it is free text."""
    return Expectation(differs=tuple(one.slot for one in deltas)).against(before)


def _of_replies(compare: object, threshold: float | None) -> Comparison:
    settings = ReplySettings(outcome="reply", threshold=threshold)
    chosen = DEFAULT if compare is None else compare
    return as_comparison(chosen, "assert_follows(compare=...)", settings)


def _of_states(arguments: object, normalisation: str) -> Comparison:
    unknown = DialogueSet("clean", "test", (), normalisation=normalisation)
    return comparison_of_states(unknown, Settings.of(arguments=arguments).reply)


def _named(seen: Context, found: Outcome) -> Outcome:
    """Return the found calls. Rename tools and arguments to their names in the data."""
    return found if seen.transcript is None else in_own_names(found, seen.transcript.names)


def _calls_alike(
    before: Outcome,
    found: Outcome,
    clean: Context,
    settings: ReplySettings,
    known: Iterable[str],
    wanted: Expectation,
) -> Outcome:
    """Return the found calls. Replace values by equivalent values of earlier or expected calls.

    ``known`` has the names of additional arguments that may have rules.
    """
    tools = () if clean.transcript is None else clean.transcript.tools
    turn = Turn(
        0, clean.system, clean.user, calls=Outcome({**dict.fromkeys(known, ""), **before, **found})
    )
    data = DialogueSet("clean", "test", (Dialogue("clean", (turn,), tools),))
    comparison = comparison_of_calls(data, settings)
    return _alike(comparison, clean, before, found, wanted)


def _alike(
    comparison: Comparison, clean: Context, before: Outcome, found: Outcome, wanted: Expectation
) -> Outcome:
    """Return an answer. Replace values by equivalent values of the earlier or expected answer."""
    admitted = {
        delta.slot: [value for value in delta.after.values if value is not None]
        for delta in wanted.deltas
    }
    return as_admitted(comparison, clean, admitted, as_before(comparison, clean, before, found))


def _data(
    dialogues: DialogueSet | Iterable[Dialogue] | str | Path, outcome: OutcomeKind = "state"
) -> DialogueSet:
    """Return the given data, or load them by name or path."""
    if isinstance(dialogues, str | Path):
        return load_dialogues(dialogues, outcome=outcome)
    if isinstance(dialogues, DialogueSet):
        return dialogues
    own = tuple(dialogues)
    return DialogueSet("dialogues", "test", own, complete_ontology(None, own, "plain"))
