"""Whole conversations with slips: all turns typed by the noise model, and counted as they are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np
import pytest

from pytest_dstfuzz.campaign.campaign import Campaign
from pytest_dstfuzz.campaign.cost import expected_calls
from pytest_dstfuzz.campaign.deciding import ONCE
from pytest_dstfuzz.campaign.figures import ConversationFailures, EstimatedFailures
from pytest_dstfuzz.campaign.results import ConversationTurn, TurnResult
from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.campaign.summary import summarise
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import (
    BeliefState,
    Context,
    Dialogue,
    DialogueSet,
    Turn,
)
from pytest_dstfuzz.perturb.edits import apply_edits
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.words import word_list
from pytest_dstfuzz.relations.registry import relations_named
from pytest_dstfuzz.report.redact import redact_turn
from pytest_dstfuzz.trackers.tracker import Prediction

TEXTS = (
    "please book us a large table",
    "is there some parking near the place",
    "thanks, and we fancy that second restaurant",
    "what about a museum then, please",
    "could you tell me the exact phone number there",
    "i am looking for something to visit",
)
#: Words that the bot hears. It takes "please" for a request of its own, which is wrong.
CUES = ("book", "parking", "restaurant", "museum", "number", "please")


def heard(texts: Sequence[str]) -> dict[str, str]:
    """Return the state after some user turns: one slot for each cue that any of them has."""
    words = {word for text in texts for word in word_list(text)}
    return {f"s{place}": "yes" for place, cue in enumerate(CUES) if cue in words}


def track(context: Context) -> dict[str, str]:
    return heard(context.user_utterances)


def right(texts: Sequence[str], number: int) -> BeliefState:
    """Return a label: without the wrong slot, and for some dialogues with one that nobody hears.

    In one dialogue the slot is right.
    """
    heard_there = heard(texts).items()
    state = {slot: value for slot, value in heard_there if slot != "s5" or number == 11}
    return BeliefState(state | ({"s9": "two"} if number % 3 == 0 else {}))


def dialogues(labels: bool = True) -> DialogueSet:
    """Return dialogues of three turns."""
    made = []
    for number in range(12):
        texts = [TEXTS[(number + place) % len(TEXTS)] for place in range(3)]
        turns = [
            Turn(i, "Sure." if i else "", text, right(texts[: i + 1], number) if labels else None)
            for i, text in enumerate(texts)
        ]
        made.append(Dialogue(f"d{number}", tuple(turns)))
    return DialogueSet("toy", "test", tuple(made))


DATA = dialogues()


def settings(**given: object) -> Settings:
    options = {"search": "noise", "attack": "cumulative", "slip_rate": 0.2, "shrink": False}
    return Settings.of(**{**options, **given})


def run(tracker: object = track, data: DialogueSet = DATA, **given: object) -> list[TurnResult]:
    return list(Campaign(tracker, data, settings(**given)))


def estimate(results: Sequence[TurnResult]) -> EstimatedFailures:
    found = summarise(results).estimated_failures
    assert found is not None
    return found


def conversation(results: Sequence[TurnResult]) -> ConversationFailures:
    found = estimate(results).conversation
    assert found is not None
    return found


def by_conversation(
    results: Sequence[TurnResult],
) -> Iterator[list[tuple[TurnResult, ConversationTurn]]]:
    """Yield the turns of each conversation in order."""
    for _, group in groupby(results, lambda turn: turn.dialogue_id):
        turns = list(group)
        for number in range(len(turns[0].conversations)):
            yield [(turn, turn.conversations[number]) for turn in turns]


def test_the_figures_are_those_of_a_count_by_hand() -> None:
    results = run()
    failed = wrong_before = corrected = broken = right_after = every = conversations = 0
    for typed in by_conversation(results):
        assert len({one.number for _, one in typed}) == 1
        texts, fails = list[str](), False
        for turn, one in typed:
            texts.append(one.text)
            now, clean = heard(texts), turn.clean_state
            assert clean is not None
            assert turn.label is not None
            changed = {slot for slot in {*now, *clean} if now.get(slot) != clean.get(slot)}
            bad = any(now.get(slot) != turn.label.get(slot) for slot in changed)
            failed, every, fails = failed + bad, every + 1, fails or bad
            wrong_before += bad and dict(clean) != dict(turn.label)
            corrected += bool(changed) and not bad
            right_after += now == dict(turn.label)
            outcome = "violation" if bad else "improved" if changed else "held"
            assert one.outcome in (outcome, "held" if one.outcome == "held" else "vacuous")
        broken, conversations = broken + fails, conversations + 1
    assert failed > wrong_before > 0 < corrected
    found = conversation(results)
    assert (found.turns, found.conversations) == (every, conversations) == (180, 60)
    assert found.per_1000 == pytest.approx(1000 * failed / every)
    assert found.broken_share == pytest.approx(broken / conversations)
    assert found.wrong_to_wrong_per_1000 == pytest.approx(1000 * wrong_before / every)
    assert found.right_to_wrong_per_1000 == pytest.approx(1000 * (failed - wrong_before) / every)
    assert found.corrected_per_1000 == pytest.approx(1000 * corrected / every)
    for interval, rate in (
        (found.interval, found.per_1000),
        (found.broken_share_interval, found.broken_share),
    ):
        assert interval is not None
        assert interval[0] < rate < interval[1]
    accuracy = estimate(results).accuracy
    assert accuracy is not None
    assert accuracy.conversation == pytest.approx(right_after / every)


def test_they_fail_as_often_as_the_noise_model_says() -> None:
    rules = CampaignSpec.of(settings(slip_rate=0.05).variant, DATA, load_lexicon())
    rng, draws = np.random.default_rng(0), 2_000
    chance = {}
    for text in TEXTS:
        source = rules.perturber.prepare(text, ["yes"], "")
        assert source.support is not None
        edits = (source.support.noisy.draw(rng, 0.05) for _ in range(draws))
        lost = (heard([apply_edits(text, one)]) != heard([text]) for one in edits)
        chance[text] = sum(lost) / draws
    exact = []
    for dialogue in DATA.dialogues:
        kept = 1.0
        for turn in dialogue.turns:
            kept *= 1 - chance[turn.user]
            exact.append(1 - kept)
    found = conversation(run(data=dialogues(labels=False), slip_rate=0.05, variants=60))
    assert found.per_1000 == pytest.approx(1000 * sum(exact) / len(exact), rel=0.1)


def test_an_error_counts_until_the_conversation_ends() -> None:
    later = [
        one
        for turn in run()
        for one in turn.conversations
        if turn.turn_index and one.text == turn.user and one.outcome == "violation"
    ]
    assert later


@pytest.mark.parametrize(
    "given",
    [
        {"attack": "hybrid"},
        {"attack": "non-cumulative"},
        {"search": "random"},
        {"stop_at_first": True},
        {"validity": "strict", "search": "random"},
    ],
)
def test_other_runs_have_none_and_ask_nothing_more(given: dict[str, object]) -> None:
    results = run(**given)
    assert not any(turn.conversations or turn.conversation_calls for turn in results)
    assert "conversations" not in results[0].to_json()
    expected = summarise(results).estimated_failures
    assert expected is None or expected.conversation is None


def test_the_default_search_has_those_of_its_sample() -> None:
    results = run(search="noise+random", variants=5)
    numbers = {tuple(one.number for one in turn.conversations) for turn in results}
    assert numbers == {(0, 2, 4)}


@pytest.mark.parametrize("search", ["noise", "noise+random"])
def test_calls_are_counted_apart_and_foreseen(search: str) -> None:
    asked = list[Context]()

    def listening(context: Context) -> dict[str, str]:
        asked.append(context)
        return track(context)

    # The other dialogues have the same texts.
    data = replace(DATA, dialogues=DATA.dialogues[:6])
    summary = summarise(run(listening, data=data, search=search))
    assert summary.conversation_calls > 0
    made = {one.exchanges for one in asked}
    assert len(made) == summary.calls + summary.conversation_calls
    plan = [(dialogue, len(dialogue.turns) - 1) for dialogue in data.dialogues]
    (relation,) = relations_named("metamorphic", DATA)
    expected = expected_calls(settings(search=search).variant, relation, ONCE, plan)
    assert summary.calls + summary.conversation_calls <= expected.most
    without = expected_calls(settings(search=search, attack="hybrid").variant, relation, ONCE, plan)
    assert expected.least > without.least


@pytest.mark.parametrize("batch_size", [1, 7, 64])
def test_batches_change_nothing(batch_size: int) -> None:
    assert [turn.to_json() for turn in run(batch_size=batch_size)] == [
        turn.to_json() for turn in run()
    ]


def test_a_budget_leaves_out_whole_conversations() -> None:
    whole = {turn.id: turn for turn in run()}
    some = run(max_calls=150)
    left = [turn for turn in some if turn.outcome != "skipped"]
    assert any(len(turn.conversations) < 5 for turn in left)
    for _, group in groupby(left, lambda turn: turn.dialogue_id):
        numbers = {tuple(one.number for one in turn.conversations) for turn in group}
        assert len(numbers) == 1
    assert all({*turn.conversations} <= {*whole[turn.id].conversations} for turn in left)


def test_a_majority_decides_if_answers_vary() -> None:
    times: dict[tuple[object, ...], int] = {}

    def moody(context: Context) -> dict[str, str]:
        # The first of five answers to everything is a wrong one.
        number = times[context.exchanges] = times.get(context.exchanges, 0) + 1
        return {} if number % 5 == 1 else track(context)

    plain, varied = run(), run(moody, repeatable=False, votes=3)
    for one, other in zip(plain, varied, strict=True):
        assert [c.outcome for c in one.conversations] == [c.outcome for c in other.conversations]


def test_a_failure_of_the_tracker_is_no_failure_of_a_turn() -> None:
    def broken(context: Context) -> Prediction:
        if "museum" in context.user or "book" in context.user or "parking" in context.user:
            return Prediction(BeliefState(track(context)))
        if context.user in TEXTS:
            return Prediction(BeliefState(track(context)))
        raise RuntimeError("down")

    results = run(broken)
    found = conversation(results)
    assert found.unjudged_per_1000 > 0
    unjudged = [one for turn in results for one in turn.conversations if one.outcome == "error"]
    assert found.unjudged_per_1000 == pytest.approx(1000 * len(unjudged) / found.turns)


def test_without_labels_there_is_no_accuracy() -> None:
    found = estimate(run(data=dialogues(labels=False)))
    assert found.accuracy is None
    assert found.conversation is not None
    assert found.conversation.right_to_wrong_per_1000 is None
    assert found.conversation.corrected_per_1000 is None


def test_slips_in_one_turn_have_an_accuracy_of_their_own() -> None:
    found = estimate(run(attack="non-cumulative", variants=60))
    accuracy = found.accuracy
    assert accuracy is not None
    assert accuracy.conversation is None
    right_before = [turn.is_right for turn in run(attack="non-cumulative")]
    assert accuracy.clean == sum(right_before) / len(right_before)
    assert found.right_to_wrong_per_1000 is not None
    lost = accuracy.clean - found.right_to_wrong_per_1000 / 1000
    assert found.corrected_per_1000 is not None
    # In some dialogues, a slip corrects one slot of two wrong ones.
    assert lost < accuracy.one_turn < lost + found.corrected_per_1000 / 1000


def test_they_survive_a_report_and_earlier_reports_have_none() -> None:
    results = run()
    again = [TurnResult.from_json(json.loads(json.dumps(turn.to_json()))) for turn in results]
    assert again == results
    earlier = results[0].to_json()
    del earlier["conversations"]
    earlier.pop("conversation_calls", None)
    for variant in earlier["variants"]:
        variant.pop("fully_corrected", None)
    assert TurnResult.from_json(earlier).conversations == ()


def test_texts_that_are_kept_back_stay_so_and_figures_stay() -> None:
    results = run()
    masked = [redact_turn(turn) for turn in results]
    texts = [one.text for turn in masked for one in turn.conversations]
    assert set("".join(texts)) == {"x", " "}
    assert conversation(masked) == conversation(results)


def test_a_reply_that_repeats_a_slip_is_no_failure() -> None:
    def echo(context: Context) -> str:
        return f"You said: {context.exchanges[0].user}"

    results = run(echo, data=dialogues(labels=False), outcome="reply", slip_rate=0.3)
    found = conversation(results)
    assert found.turns == 180
    assert found.per_1000 < 100
