"""The sequential test: its ratio, its stated errors by simulation, and what it leaves undecided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from call_wobble_table import ASKED, BookingEndpoint, row, run
from hypothesis import given
from hypothesis import strategies as st
from toybots import Play, WordBot, data_of, talk

from pytest_dstfuzz.campaign.answers import AS_GIVEN, Answer, TrackerFailure
from pytest_dstfuzz.campaign.campaign import Campaign
from pytest_dstfuzz.campaign.deciding import (
    MOST,
    AnswerTally,
    Ruling,
    SequentialTest,
    Vote,
    decider_of,
)
from pytest_dstfuzz.campaign.engine import predictor_for
from pytest_dstfuzz.campaign.summary import summarise
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.calls import Outcome, ToolCall, calls_outcome
from pytest_dstfuzz.dialogue.dialogues import Context, Exchange
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.trackers.tracker import Prediction

CLEAN, VARIANT = (Context((Exchange("", user),)) for user in ("clean", "variant"))
counts = st.integers(0, 12)


@given(counts, counts, counts, counts)
def test_the_ratio_is_that_of_the_likelihoods_with_any_wobble(
    usual: int, others: int, changed: int, kept: int
) -> None:
    w = (np.arange(4000) + 0.5) / 4000
    two = np.sum((1 - w) ** (usual + changed) * w ** (others + kept))
    one = np.sum((1 - w) ** (usual + kept) * w ** (others + changed))
    ratio = float(AnswerTally(usual, others, changed, kept).ratio)
    assert ratio == pytest.approx(two / one, rel=1e-3)


@given(counts, counts, counts, counts)
def test_who_keeps_and_who_changes_are_each_others_mirror(r: int, q: int, c: int, s: int) -> None:
    assert AnswerTally(r, q, c, s).ratio == 1 / AnswerTally(r, q, s, c).ratio
    assert AnswerTally(r, q, 0, 0).ratio == Fraction(1)


def end_of(test: SequentialTest, rng: np.random.Generator, wobble: float, *, changed: bool) -> str:
    """Run the test on answers that are drawn; ``""`` = undecided."""
    clean = (rng.random(test.floor) < wobble).tolist()
    variant = [bool(rng.random() < wobble) != changed]
    while True:
        usual = 2 * sum(clean) > len(clean)
        r, c = clean.count(usual), len(variant) - variant.count(usual)
        tally = AnswerTally(r, len(clean) - r, c, len(variant) - c)
        decided = test.decided(tally)
        ruling = Ruling(Outcome(), Prediction(Outcome()), decided, tally, len(variant), len(clean))
        wanted = test.more(CLEAN, VARIANT, ruling)
        if not wanted:
            return "" if decided is None else "changed" if decided else "kept"
        for one in wanted:
            if one.user == "clean":
                clean.append(bool(rng.random() < wobble))
            else:
                variant.append(bool(rng.random() < wobble) != changed)


@pytest.mark.parametrize("test", [SequentialTest(), SequentialTest(8, 0.02, 0.2)])
def test_errors_are_at_most_as_stated(test: SequentialTest) -> None:
    # Wald's bounds hold on average over the wobble; by simulation, at each wobble up to 20 %.
    runs = 800
    rng = np.random.default_rng(16)
    for wobble in (0.05, 0.2, None):
        drawn = rng.uniform(0, 0.5, runs) if wobble is None else np.full(runs, wobble)
        false = sum(end_of(test, rng, w, changed=False) == "changed" for w in drawn) / runs
        missed = sum(end_of(test, rng, w, changed=True) == "kept" for w in drawn) / runs
        slack = 3 * np.sqrt(0.05 / runs)
        assert false <= test.false_rate / (1 - test.missed_rate) + slack, wobble
        assert missed <= test.missed_rate / (1 - test.false_rate) + slack, wobble


def test_a_sure_system_is_decided_by_two_answers_and_a_longer_floor_by_one() -> None:
    rng = np.random.default_rng(1)
    assert end_of(SequentialTest(), rng, 0.0, changed=True) == "changed"
    assert SequentialTest().decided(AnswerTally(5, 0, 1, 0)) is None
    assert SequentialTest().decided(AnswerTally(5, 0, 2, 0)) is True
    assert SequentialTest().decided(AnswerTally(5, 0, 0, 2)) is False
    assert SequentialTest().decided(AnswerTally(19, 0, 0, 1)) is False
    # With half of the answers changed nothing is decided, however many there are.
    assert SequentialTest().decided(AnswerTally(MOST, 0, 16, 16)) is None


@pytest.mark.parametrize("wobble", [0.0, 0.2])
def test_faults_of_a_simulated_endpoint_are_found_and_few_others(wobble: float) -> None:
    found = row(3, wobble, same=True, error_rate=0.05)
    assert found.false <= 0.05 * found.sound
    assert found.missed <= 0.05 * 40 + 2
    assert found.found + found.missed + found.unstable >= 40
    if not wobble:
        # Five for each clean turn and two for each variant.
        assert (found.found, found.false, found.calls) == (40, 0, 60 * (5 + 2 * 5))
        assert found == row(3, wobble, same=True, error_rate=0.05)


class Undecided(BookingEndpoint):
    """Sure of the clean turns but for one, and in two minds about every variant."""

    def calls(self, exchanges: tuple[Exchange, ...]) -> Outcome:
        self.times[exchanges] += 1
        number = self.times[exchanges]
        first = exchanges[0].system == "Request 0."
        clean = exchanges[0].user in ASKED
        people = number if first else 2 if clean else 2 + number % 2
        return calls_outcome([ToolCall("book_table", {"people": people})])


def test_what_is_undecided_is_said_and_not_counted() -> None:
    results = run(0, Undecided(0.0, 0), 4, noise_floor=4)
    first, *others = results
    assert (first.outcome, first.reason.split(":")[0]) == ("untested", "unstable")
    kinds = {item.outcome for turn in others for item in turn.variants}
    assert kinds == {"unstable"}
    item = others[0].variants[0]
    assert item.votes is not None
    # The vote ends early if the remaining answers cannot decide it.
    assert 16 <= item.votes.asked <= MOST
    assert item.reason == "unstable: the answers do not decide whether there is a change"
    summary = summarise(results)
    assert (summary.valid, summary.violations) == (0, 0)
    assert summary.unstable == summary.generated == 5 * len(others)


def test_options_name_the_test_and_not_a_vote_as_well() -> None:
    assert decider_of(Settings().tracker) == Vote(3)
    assert decider_of(Settings.of(error_rate="no").tracker) == Vote(1)
    assert decider_of(Settings.of(noise_floor=9).tracker) == SequentialTest(9, 0.05, 0.05)
    both = Settings.of(error_rate="1%,10%").tracker
    assert decider_of(both) == SequentialTest(5, 0.01, 0.1)
    for value in ("0", "50%", "1%,2%,3%", "x"):
        with pytest.raises(UserError, match="error_rate"):
            Settings.of(error_rate=value)
    with pytest.raises(UserError, match="dst_votes uses a majority vote"):
        Settings.of(error_rate=0.05, votes=5)


def answers_of(clean: str, variant: str) -> dict[Context, Answer]:
    """Return answers by their letters; ``!`` = the system failed."""
    given: dict[Context, Answer] = {}
    for context, letters in ((CLEAN, clean), (VARIANT, variant)):
        for number, letter in enumerate(letters):
            one = context.again(number) if number else context
            state = Prediction(Outcome({"letter": letter}))
            given[one] = TrackerFailure("no answer") if letter == "!" else state
    return given


def ruled(clean: str, variant: str) -> Ruling:
    """Return what answers come to, where the answer is to stay."""
    given = answers_of(clean, variant)
    return SequentialTest().ruling(CLEAN, VARIANT, given, AS_GIVEN, lambda one, two: one != two)


@pytest.mark.parametrize("variant", ["zzzzzzz", "aaaaaaa", "aaaaaaaaaaz"])
def test_a_usual_answer_that_lost_its_majority_decides_nothing(variant: str) -> None:
    # The first five have one, the 32 have none: 14 to 18.
    ruling = ruled("aaaxy" + 11 * "a" + "bcdefghijklmnopq", variant)
    assert ruling.tally[:2] == (14, 18)
    assert ruling.changed is None
    assert not SequentialTest().more(CLEAN, VARIANT, ruling)


def test_what_failed_is_neither_the_usual_answer_nor_another_one() -> None:
    test = SequentialTest()
    ruling = ruled("a!a!a", "z!zz")
    assert ruling.tally == (3, 0, 3, 0)
    assert ruling.changed is True
    assert (ruling.asked, ruling.clean_asked) == (4, 5)
    waits = ruled("a!a!a", "zz")
    assert test.more(CLEAN, VARIANT, waits._replace(clean_asked=MOST)) == [VARIANT.again(2)]
    assert test.more(CLEAN, VARIANT, ruled("a!!!!", "z")) == [CLEAN.again(5)]
    assert not test.unstable(CLEAN, answers_of("a!!!!", ""), AS_GIVEN)
    assert test.unstable(CLEAN, answers_of("ab!ab", ""), AS_GIVEN)


class Torn(WordBot):
    """Forgets the price where two turns are misspelt; where the newest alone is, now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.times: Counter[tuple[str, ...]] = Counter()

    def state(self, context: Context) -> dict[str, str]:
        said = context.user_utterances
        self.times[said] += 1
        state = super().state(context)
        misspelt = ["!" in text for text in said]
        if misspelt == [True, True] or (misspelt == [False, True] and self.times[said] % 2):
            state.pop("hotel-price", None)
        return state


def test_an_undecided_part_is_neither_the_cause_nor_a_smaller_version(play: Play) -> None:
    dialogue, bot = talk("d", "cheap", "two nights"), Torn()
    texts = {"cheap": ["cheap !"], "two nights": ["two nights !"]}
    settings = Settings.of(error_rate=0.05, validity="strict", variants=1, attack="cumulative")
    door = predictor_for(settings, data_of(dialogue), bot, wobbles=True)
    run = play(dialogue, texts, tracker=door, error_rate=0.05)
    # The script that the fixture plays has rules of its own.
    run.campaign._rules = replace(run.campaign._rules, decider=SequentialTest())
    item = list(run.campaign.run())[1].variants[0]
    assert bot.times["cheap", "two nights !"] > 5
    assert (item.outcome, item.cause) == ("violation", None)
    assert item.minimal is not None
    assert (item.minimal.context, item.minimal.text) == (("cheap !",), "two nights !")


def test_a_test_of_answers_that_do_not_vary_is_refused() -> None:
    for options in ({"noise_floor": 9}, {"error_rate": "5%"}):
        with pytest.raises(UserError, match="is for answers that vary, but --dst-repeatable"):
            Settings.of(repeatable=True, **options)
    settings = Settings.of(error_rate="5%", noise_floor=9)
    dialogues: Sequence[object] = [talk("d", "cheap")]
    with pytest.raises(
        UserError, match="noise_floor and --dst-error-rate had no effect, because the tracker"
    ):
        list(Campaign(WordBot(), dialogues, settings))
