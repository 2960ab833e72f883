"""For the suite of whoever writes a tracker, a relation or a comparison: is it sound?

::

    from pytest_dstfuzz.testing import check_comparison, check_relation, check_tracker

    def test_my_tracker_keeps_the_contract():
        check_tracker(track).assert_passed()

    def test_my_relation_is_sound():
        check_relation(MyRelation, "conversations.jsonl").assert_passed()

    def test_my_comparison_is_one():
        check_comparison(same, ["It is open.", "We are open."]).assert_passed()

Needs neither an option of the plugin nor a running campaign.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

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
from pytest_dstfuzz.dialogue.calls import Outcome, OutcomeKind
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, DialogueSet, Turn, in_own_names
from pytest_dstfuzz.dialogue.load import SAMPLE, load_dialogues
from pytest_dstfuzz.dialogue.ontology import complete_ontology
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.relations.checks import RelationCheck, check_laws
from pytest_dstfuzz.relations.registry import as_relation, relation_by_name
from pytest_dstfuzz.relations.relation import Delta, Expected
from pytest_dstfuzz.trackers.adapters import as_tracker
from pytest_dstfuzz.trackers.conformance import Conformance, Finding
from pytest_dstfuzz.trackers.conformance import check_tracker as _check
from pytest_dstfuzz.trackers.validation import check_predictions

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
    """Put all checks of the conformance kit to a tracker, and return what they found.

    It is asked for each turn once, and for some of them again and again, in other orders and
    batches: some 500 contexts more.

    Args:
        tracker: a tracker, or whatever the plugin takes for one: a function from a context to
            ``{slot: value}``, an object with ``reset()`` and ``update()``, ...
        dialogues: what to ask for: loaded or built ones, a path, or the name of a data set;
            those that ship by default.
        batch_size: contexts that a run would ask for at once.
        repeatable: whether it must give the same answer each time; ``None`` = what it says.
        outcome: what is tested; of a system that replies, "reply", of one that calls tools,
            "tool-calls".

    Raises:
        UserError: there are no turns, or ``tracker`` is no tracker.
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
    """Ask a relation about every turn of some dialogues, and return what is wrong with it.

    No tracker is asked: the labels stand for its answers, and turns without one count as turns at
    which it failed. Checked are the rules that the relations that ship keep to: the same rewrites
    in every order and at every asking, edits that lead from the utterance to what is seen, deltas
    that begin with the state as it is, and a reason from the relation's list for every other turn.

    Args:
        relation: a relation, a class of one that is made without arguments, or a name.
        dialogues: what to ask about, as `check_tracker` takes it.
        seed: of the random numbers that the relation is given.
        outcome: whose labels stand for answers, such as "tool-calls"; ``None`` = the first kind
            that the relation can speak of: the belief state mostly.

    Raises:
        UserError: there is no such relation, or it is none.
        DataError: the dialogues cannot be read.
    """
    found = (
        relation_by_name(relation)
        if isinstance(relation, str)
        else as_relation(relation, "check_relation()")
    )
    return check_laws(found, _data(dialogues), load_lexicon(), seed, outcome)


def check_comparison(
    comparison: object, texts: Iterable[str] = (), *, threshold: float | None = None
) -> ComparisonCheck:
    """Compare texts with themselves and each other, and return what is wrong with the comparison.

    A text must be the same as itself, two texts the same in both orders and at every asking, and
    nothing may be raised: not for an empty text, an emoji, or 10,000 characters either, which are
    asked about beside ``texts``.

    Args:
        comparison: a function ``same(before, found)``, a `Comparison`, a class of one, or names.
        texts: replies such as the system gives.
        threshold: as the key of that name of ``--dst-compare``, for a function that returns
            distances.

    Raises:
        UserError: there is no such comparison, or it is none.
    """
    settings = ReplySettings(threshold=threshold)
    return check_comparison_laws(
        as_comparison(comparison, "check_comparison()", settings), list(texts)
    )


def assert_follows(  # noqa: PLR0913 - all but the first three are given by their names
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
    """Ask a tracker for two contexts, and check what became of the slots between the answers.

    Tests that ``dstfuzz promote`` writes call it.

    Args:
        tracker: as `check_tracker` takes it.
        clean: the dialogue as it is.
        seen: the same with an edit, or with rounds moved.
        expected: what is to become of slots, in any order; all others are to stay.
        slots: the only ones that count; ``None`` = all.
        normalisation: what slots and values are brought to before they are compared.
        outcome: what of the answers is tested: ``reply`` = what a system says, under that slot;
            ``tool-calls`` = the calls of its next message: ``book_table[0].people``.
        compare: when two replies say the same: names with commas between them, a function of two
            texts or a `Comparison`; ``None`` = the default of replies.
        threshold: how far apart two replies may be that say the same; ``None`` = as calibrated.
        arguments: how arguments of tools are compared, ``{"book_table.people": "number"}``, or
            slots of a belief state.
        call_order: of tool calls, whether their order counts.

    Raises:
        AssertionError: a slot is not as expected; it says of each what it became and should have.
        TrackerError: the tracker answers something that is no state.
        UserError: ``tracker`` is no tracker.
    """
    __tracebackhide__ = True
    made = as_tracker(tracker, normalisation=normalisation, outcome=outcome)
    before, after = check_predictions(made.predict([clean, seen]), 2, normalisation, outcome)
    wanted = Expected(tuple(sorted(expected, key=lambda delta: delta.slot)))
    found = after.state
    counted = None if slots is None else frozenset(slots)
    kind = KINDS[outcome]
    if not kind.words.values:
        # Whatever it was to become, that is now seen from what the system says today.
        wanted = Expected(differs=tuple(one.slot for one in expected)).against(before.state)
        found = as_before(_of_replies(compare, threshold), clean, before.state, found)
    elif arguments and kind.has_slots:
        found = _alike(_of_states(arguments, normalisation), clean, before.state, found, wanted)
    elif kind.has_tools:
        how = Settings.of(outcome=outcome, arguments=arguments, call_order=call_order).reply
        known = Outcome(dict.fromkeys(counted or (), ""))
        found = _calls_alike(before.state, _named(seen, found), clean, how, known, wanted)
    missed = wanted.judge(before.state, found).changes
    told = [wanted.told(miss) for miss in missed if counted is None or miss.slot in counted]
    if told:
        raise AssertionError("\n".join([f"the {kind.words.subject} not as expected:", *told]))


def _of_replies(compare: object, threshold: float | None) -> Comparison:
    settings = ReplySettings(outcome="reply", threshold=threshold)
    chosen = DEFAULT if compare is None else compare
    return as_comparison(chosen, "assert_follows(compare=...)", settings)


def _of_states(arguments: object, normalisation: str) -> Comparison:
    unknown = DialogueSet("clean", "test", (), normalisation=normalisation)
    return comparison_of_states(unknown, Settings.of(arguments=arguments).reply)


def _named(seen: Context, found: Outcome) -> Outcome:
    """Return calls by the names that the tools have in the data."""
    return found if seen.transcript is None else in_own_names(found, seen.transcript.names)


def _calls_alike(
    before: Outcome,
    found: Outcome,
    clean: Context,
    settings: ReplySettings,
    known: Outcome,
    wanted: Expected,
) -> Outcome:
    """Return calls in the words of those before, or of what is wanted, where they say the same.

    Rules may be of ``known`` arguments, too.
    """
    tools = () if clean.transcript is None else clean.transcript.tools
    turn = Turn(0, clean.system, clean.user, calls=Outcome({**known, **before, **found}))
    data = DialogueSet("clean", "test", (Dialogue("clean", (turn,), tools),))
    comparison = comparison_of_calls(data, settings)
    return _alike(comparison, clean, before, found, wanted)


def _alike(
    comparison: Comparison, clean: Context, before: Outcome, found: Outcome, wanted: Expected
) -> Outcome:
    """Return an answer in the words of the one before, or of what is wanted, if they agree."""
    admitted = {
        delta.slot: [value for value in delta.after.values if value is not None]
        for delta in wanted.deltas
        if not delta.after.anything_but
    }
    return as_admitted(comparison, clean, admitted, as_before(comparison, clean, before, found))


def _data(
    dialogues: DialogueSet | Iterable[Dialogue] | str | Path, outcome: OutcomeKind = "state"
) -> DialogueSet:
    """Return the data that are given, or those of a name or path."""
    if isinstance(dialogues, str | Path):
        return load_dialogues(dialogues, outcome=outcome)
    if isinstance(dialogues, DialogueSet):
        return dialogues
    own = tuple(dialogues)
    return DialogueSet("dialogues", "test", own, complete_ontology(None, own, "plain"))
