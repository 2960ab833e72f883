"""The minimiser: laws of the search, and smallest violations worked by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_execution import DATA, PLAN
from toybots import UnsureBot, WordBot, data_of, talk

from pytest_dstfuzz.campaign.attempts import lock_values
from pytest_dstfuzz.campaign.dialogue_run import FEW, Subset, minimise
from pytest_dstfuzz.campaign.engine import CampaignEngine
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context
from pytest_dstfuzz.perturb.edits import apply_edits, undo_edits
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.report.explain import explain
from pytest_dstfuzz.trackers.tracker import Prediction

Oracle = Callable[[Subset], bool]
SETTINGS = Settings.of(validity="edit-rate", variants=6, transformations=6, attack="cumulative")


def solve(groups: Sequence[Subset], breaks: Oracle) -> tuple[Subset, list[Subset], int]:
    """Return the result of a search, the sets it asked for, and in how many batches."""
    steps = minimise(groups)
    asked: list[Subset] = []
    batches = 0
    try:
        wanted = next(steps)
        while True:
            batches += 1
            asked += wanted
            wanted = steps.send({edits: breaks(edits) for edits in wanted})
    except StopIteration as stop:
        return stop.value, asked, batches


def less(edits: Subset, edit: int) -> Subset:
    return tuple(other for other in edits if other != edit)


@st.composite
def causes(draw: st.DrawFn) -> tuple[list[Subset], list[frozenset[int]]]:
    """Two groups of edits, and sets of which any one breaks."""
    count = draw(st.integers(1, 14))
    cut = draw(st.integers(0, count))
    numbers = tuple(range(count))
    some = st.frozensets(st.sampled_from(numbers), min_size=1, max_size=4)
    return [numbers[:cut], numbers[cut:]], draw(st.lists(some, min_size=1, max_size=3))


def monotone(found: Sequence[frozenset[int]]) -> Oracle:
    return lambda edits: any(cause <= set(edits) for cause in found)


@given(causes())
def test_what_is_left_is_a_cause_where_more_edits_break_no_less(
    case: tuple[list[Subset], list[frozenset[int]]],
) -> None:
    groups, found = case
    left, asked, _ = solve(groups, monotone(found))
    # No subset of it breaks: it is one of the causes that hold no other one.
    assert frozenset(left) in found
    assert not any(cause < frozenset(left) for cause in found)
    assert len(asked) == len(set(asked))


@given(causes(), st.data())
def test_no_edit_of_what_is_left_can_be_spared_whatever_breaks(
    case: tuple[list[Subset], list[frozenset[int]]], data: st.DataObject
) -> None:
    (own, context), _ = case
    whole = own + context
    known: dict[Subset, bool] = {whole: True, (): False}

    def breaks(edits: Subset) -> bool:
        return known.setdefault(edits, data.draw(st.booleans()))

    left, asked, _ = solve([own, context], breaks)
    assert known[left]
    assert set(left) <= set(whole)
    assert left == tuple(sorted(left))
    assert len(left) == 1 or not any(breaks(less(left, edit)) for edit in left)
    assert () not in asked
    # Zeller's bound; the two groups, what cannot be spared and each edit alone beside it.
    count = len(whole)
    assert len(asked) <= count * count + 5 * count + 2


@given(causes())
def test_the_same_question_has_the_same_answer(
    case: tuple[list[Subset], list[frozenset[int]]],
) -> None:
    groups, found = case
    assert solve(groups, monotone(found)) == solve(groups, monotone(found))


@pytest.mark.parametrize("count", [1, 2, FEW, FEW + 1, 40])
def test_one_edit_to_blame_is_found_in_few_calls_and_batches(count: int) -> None:
    for cause in range(count):
        left, asked, batches = solve([tuple(range(count))], monotone([frozenset({cause})]))
        assert left == (cause,)
        assert len(asked) <= max(FEW, 2 * count.bit_length() + FEW)
        assert batches <= 5


def test_two_edits_of_few_take_two_rounds_and_one_that_confirms() -> None:
    for pair in combinations(range(5), 2):
        left, asked, _ = solve([tuple(range(5))], monotone([frozenset(pair)]))
        assert left == pair
        assert len(asked) <= 5 + 5 + 1


def test_the_first_group_that_breaks_alone_is_blamed() -> None:
    either = monotone([frozenset({0}), frozenset({3})])
    assert solve([(0, 1), (2, 3)], either)[0] == (0,)
    assert solve([(1,), (2, 3)], either)[0] == (3,)
    both = monotone([frozenset({0, 3})])
    assert solve([(0, 1), (2, 3)], both)[0] == (0, 3)


def test_an_edit_that_does_it_alone_is_not_passed_by() -> None:
    several = monotone([frozenset({0, 1, 2}), frozenset({4})])
    assert solve([(0, 1, 2), (3, 4)], several)[0] == (4,)


# -- in a campaign ------------------------------------------------------------------------


class TypoBot(WordBot):
    """At the second turn it forgets the price when one of three words of the dialogue is lost."""

    def state(self, context: Context) -> dict[str, str]:
        lost = len(context.exchanges) == 2 and lost_words(context.user_utterances)
        return {} if lost else {"hotel-price": "cheap"}


def lost_words(utterances: Sequence[str]) -> set[str]:
    return {"room", "please", "coming"} - set(" ".join(utterances).split())


TALK = talk(
    "d",
    "a cheap room with a nice view of the river please and thank you very much",
    "and would you book it for all of us when we are coming over again then",
)


def run(
    lexicon: Lexicon, bot: Any, settings: Settings = SETTINGS, **given: Any
) -> list[TurnResult]:
    given = {"data": DATA, "plan": PLAN, **given}
    return list(CampaignEngine(settings, given.pop("data"), bot, lexicon, **given).run())


def violations(results: Sequence[TurnResult]) -> list[tuple[TurnResult, VariantResult]]:
    return [(turn, variant) for turn in results for variant in turn.violations]


@pytest.fixture(scope="module")
def found(lexicon: Lexicon) -> list[TurnResult]:
    return run(
        lexicon,
        TypoBot(),
        SETTINGS.replace_options(variants=25),
        data=data_of(TALK),
        plan=[(TALK, 1)],
    )


def test_a_violation_keeps_the_one_edit_that_does_it(found: list[TurnResult]) -> None:
    pairs = violations(found)
    assert {variant.cause for _, variant in pairs} == {"turn", "context"}
    for _, variant in pairs:
        minimal = variant.minimal
        assert minimal is not None
        assert minimal.size == 1
        assert len(lost_words([*minimal.context, minimal.text])) == 1
        assert {change.slot for change in minimal.changed_slots} == {"hotel-price"}
        # If either would do, the utterance of the turn is to blame.
        assert (minimal.edits == ()) == (variant.cause == "context")


class PairOfTyposBot(TypoBot):
    """Forgets the price only if a word of both turns is lost."""

    def state(self, context: Context) -> dict[str, str]:
        first, last = context.user_utterances[0], context.user_utterances[-1]
        lost = len(context.exchanges) == 2 and "room" not in first and "coming" not in last
        return {} if lost else {"hotel-price": "cheap"}


def test_the_cause_is_whose_edits_are_left(lexicon: Lexicon) -> None:
    settings = SETTINGS.replace_options(variants=25)
    data, plan = data_of(TALK), [(TALK, 1)]
    causes = set()
    for bot in (TypoBot(), PairOfTyposBot()):
        results = run(lexicon, bot, settings, data=data, plan=plan)
        for turn, variant in violations(results):
            causes.add(variant.cause)
            assert variant.minimal is not None
            assert variant.cause == variant.minimal.cause
            text = explain(replace(turn, variants=(variant,)), Settings(), command=None)
            # Only an edit of the turn itself is called this edit.
            assert ("this edit alone" in text) <= (variant.cause == "turn")
    assert causes == {"turn", "context", "both"}


def test_what_is_left_was_seen_to_break(found: list[TurnResult]) -> None:
    bot = TypoBot()
    for turn, variant in violations(found):
        minimal = variant.minimal
        assert minimal is not None
        users = [*minimal.context, minimal.text]
        context = TALK.context(turn.turn_index, dict(enumerate(users)))
        after = bot.predict([context])[0].state
        assert turn.clean_state is not None
        for change in minimal.changed_slots:
            assert (turn.clean_state.get(change.slot), after.get(change.slot)) == (
                change.before,
                change.after,
            )
        assert undo_edits(minimal.text, minimal.edits) == turn.user
        assert apply_edits(turn.user, minimal.edits) == minimal.text


def test_calls_of_the_search_are_counted_apart(lexicon: Lexicon) -> None:
    plain, smaller = UnsureBot(), UnsureBot()
    before = run(lexicon, plain, SETTINGS.replace_options(shrink=False))
    after = run(lexicon, smaller)
    assert [turn.calls for turn in before] == [turn.calls for turn in after]
    assert not any(turn.minimiser_calls for turn in before)
    more = sum(turn.minimiser_calls for turn in after)
    assert more > 0
    assert len(smaller.asked) == len(plain.asked) + more
    assert len(set(smaller.asked)) == len(smaller.asked)
    for turn in before:
        assert all(variant.minimal is None for variant in turn.variants)
    bare = [
        replace(
            turn,
            minimiser_calls=0,
            variants=tuple(replace(variant, minimal=None) for variant in turn.variants),
        )
        for turn in after
    ]
    assert bare == before
    assert [TurnResult.from_json(turn.to_json()) for turn in after] == after


def test_windows_and_batches_change_nothing(lexicon: Lexicon) -> None:
    usual = run(lexicon, UnsureBot())
    assert run(lexicon, UnsureBot(), window=1, ahead=False) == usual
    assert run(lexicon, UnsureBot(), SETTINGS.replace_options(batch_size=3), window=40) == usual


class Endless(UnsureBot):
    """Is interrupted once it has answered for so many contexts."""

    left: int

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        self.left -= len(contexts)
        if self.left < 0:
            raise KeyboardInterrupt
        return super().predict(contexts)


def test_a_budget_that_ends_meanwhile_costs_the_smallest_version_alone(lexicon: Lexicon) -> None:
    plan = [longest(PLAN)]
    usual = run(lexicon, UnsureBot(), plan=plan)
    searched = sum(turn.calls for turn in usual)
    short = run(lexicon, UnsureBot(), SETTINGS.replace_options(max_calls=searched + 3), plan=plan)
    assert [turn.outcome for turn in short] == [turn.outcome for turn in usual]
    assert sum(turn.minimiser_calls for turn in short) == 3
    kept = [variant.minimal for _, variant in violations(short)]
    full = [variant.minimal for _, variant in violations(usual)]
    assert None not in full
    assert None in kept
    assert all(one in (None, other) for one, other in zip(kept, full, strict=True))


def longest(plan: Any) -> Any:
    return max(plan, key=lambda planned: planned[1])


def test_an_interrupt_meanwhile_loses_no_turn(lexicon: Lexicon) -> None:
    plan = [longest(PLAN)]
    usual = run(lexicon, UnsureBot(), plan=plan)
    bot = Interrupting()
    bot.left = sum(turn.calls for turn in usual)
    campaign = CampaignEngine(SETTINGS, DATA, bot, lexicon, plan=plan)
    with pytest.raises(KeyboardInterrupt):
        list(campaign.run())
    kept = campaign.finished()
    assert [(turn.id, turn.outcome) for turn in kept] == [(t.id, t.outcome) for t in usual]
    assert any(turn.violations for turn in kept)


class Interrupting(UnsureBot):
    """Is interrupted once it has answered for so many contexts."""

    left: int

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        self.left -= len(contexts)
        if self.left < 0:
            raise KeyboardInterrupt
        return super().predict(contexts)


class Shy(TypoBot):
    """Fails where ``please`` is lost, unless ``room`` is lost too."""

    def answer(self, context: Context) -> Prediction:
        if "please" in (lost := lost_words(context.user_utterances)) and "room" not in lost:
            raise ValueError("what?")
        return super().answer(context)


def test_a_failure_of_the_tracker_breaks_nothing(lexicon: Lexicon) -> None:
    settings = SETTINGS.replace_options(variants=60)
    pairs = violations(run(lexicon, Shy(), settings, data=data_of(TALK), plan=[(TALK, 1)]))
    assert any("please" in lost_words([*item.context, item.text]) for _, item in pairs)
    for _, variant in pairs:
        assert variant.minimal is not None
        assert "please" not in lost_words([*variant.minimal.context, variant.minimal.text])


def test_only_valid_variants_are_tried(lexicon: Lexicon) -> None:
    """The smallest version keeps every lock that the variant kept."""
    settings = Settings.of(validity="strict", variants=30, transformations=6, attack="cumulative")
    results = run(lexicon, TypoBot(), settings, data=data_of(TALK), plan=[(TALK, 1)])
    rules = CampaignSpec.of(settings.variant, data_of(TALK), lexicon)
    checked = 0
    for turn, variant in violations(results):
        assert variant.minimal is not None
        if variant.minimal.edits:
            clean = Prediction(turn.clean_state or BeliefState())
            values = lock_values(data_of(TALK), TALK.turns[turn.turn_index], clean)
            source = rules.perturber.prepare(turn.user, values, turn.system)
            status = rules.perturber.check(source, variant.minimal.text, variant.minimal.edits)
            assert status == ("valid", "")
            checked += 1
    assert checked
