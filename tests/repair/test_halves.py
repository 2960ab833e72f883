"""Effects of remedies before a bot mend and break, on two halves of the dialogues."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hotel_talks import CoinTracker, campaign_on, track, write_talks

from pytest_dstfuzz import Context, UserError
from pytest_dstfuzz.perturb.spelling import SpellingCorrector
from pytest_dstfuzz.repair.mending import (
    HALVES,
    HalfResult,
    MendingCounts,
    MendingResult,
    PromisedFigure,
    RemedyResult,
    draw_turns,
    try_remedies,
)
from pytest_dstfuzz.repair.remedies import REMEDIES


def mending(path: Path, tracker: object = track, **options: object) -> MendingResult:
    campaign = campaign_on(path, tracker, **options)
    results = tuple(campaign)
    return try_remedies(campaign, draw_turns(results, 100, 0), lambda *_: None)


def total(found: MendingResult, remedy: str) -> MendingCounts:
    (one,) = (each for each in found.remedies if each.remedy.name == remedy)
    return sum((one.of(half).total for half in HALVES), MendingCounts())


def test_a_corrector_mends_slips_and_leaves_clean_turns(tmp_path: Path) -> None:
    path = write_talks(tmp_path)
    campaign = campaign_on(path)
    results = tuple(campaign)
    violations = sum(len(turn.violations) for turn in results)
    held = sum(one.outcome == "held" for turn in results for one in turn.variants)
    found = try_remedies(campaign, draw_turns(results, 100, 0), lambda *_: None)
    counts = total(found, "spelling")
    assert violations > 20
    # The bot gives the same answers, so the report's own verdicts come back.
    assert (counts.violations, counts.held, counts.turns) == (violations, held, 48)
    assert counts.mended > 0.7 * violations
    assert counts.changed == 0
    assert found.advised is not None
    assert found.advised.remedy.name == "vocabulary"
    assert found.advised.holds["mended"]
    # Words of the bot that no lexicon has stay as they are, since several dialogues say them.
    assert counts.altered == 0
    assert "zlorbine" in found.words["spelling"]
    assert "please" not in found.words["spelling"]
    assert {"zlorbine", "please"} <= found.words["vocabulary"]


def test_a_remedy_is_asked_for_what_the_bot_behind_it_sees(tmp_path: Path) -> None:
    """The counts are those of a campaign whose bot has the remedy in front."""
    path = write_talks(tmp_path)
    found = mending(path)
    corrector = SpellingCorrector(found.words["spelling"])

    def behind(context: Context) -> dict[str, str]:
        said: set[str] = set()
        texts = []
        for system, user in context.exchanges:
            said |= {word.strip("?.").lower() for word in system.split()}
            texts.append(corrector.correct(user, said))
        return track(context.saying(" ".join(texts)))

    # If only the earlier turn is wrong behind the remedy, its wrong value is carried on.
    pairs = [
        (one.outcome, other.outcome)
        for turn, same in zip(campaign_on(path), campaign_on(path, behind), strict=True)
        for one, other in zip(turn.variants, same.variants, strict=True)
    ]
    broken = {"violation": 1, "carried": 1}
    after = sum(broken.get(now, 0) for before, now in pairs if before != "carried")
    counts = total(found, "spelling")
    assert after == counts.violations - counts.mended + counts.spoilt


def test_the_form_harms_a_bot_that_minds_capitals(tmp_path: Path) -> None:
    def calm(context: Context) -> dict[str, str]:
        return track(context.saying(context.user.lower()))

    path = write_talks(tmp_path)
    harmed = mending(path, lambda one: {**track(one), "room-x": str("I " in one.user)})
    form = total(harmed, "form")
    # The answer to half of the clean turns hangs on the capital.
    assert form.changed == 24
    assert not harmed.best.remedy.form
    assert total(mending(path, calm), "form").changed == 0


def test_a_right_answer_by_the_label_is_no_harm(tmp_path: Path) -> None:
    path = write_talks(tmp_path)

    def deaf(context: Context) -> dict[str, str]:
        # Hears the kind of room only if the text has no capital.
        return track(context) if "I" not in context.user_utterances[0] else {}

    assert total(mending(path, deaf), "form").changed == 0


def test_mending_is_not_credited_for_chance(tmp_path: Path) -> None:
    # Of such variants, a corrector restores most texts exactly.
    how = {"noise": "typing", "attack": "non-cumulative", "error_rate": "no"}
    found = mending(write_talks(tmp_path), CoinTracker(), **how)
    counts = total(found, "spelling")
    assert counts.violations > 50
    # Two answers agree in a third of the cases, before and behind a remedy.
    assert 0.15 < counts.mended / counts.violations < 0.5
    assert 0.5 < counts.violations / (counts.violations + counts.held) < 0.85


def reply(messages: list[dict[str, str]]) -> str:
    return "We have a harbour." if "harbour" in messages[-1]["content"] else "Sorry?"


def book(messages: list[dict[str, str]], tools: object) -> dict[str, object]:
    del tools
    said = messages[-1]["content"]
    function = {"name": "book", "arguments": '{"view": 1}' if "harbour" in said else "{}"}
    calls = [{"id": "1", "type": "function", "function": function}]
    return {"role": "assistant", "tool_calls": calls}


@pytest.mark.parametrize(("bot", "outcome"), [(reply, "reply"), (book, "tool-calls")])
def test_replies_and_calls_are_mended_too(
    tmp_path: Path, bot: Callable[..., object], outcome: str
) -> None:
    counts = total(mending(write_talks(tmp_path), bot, outcome=outcome), "spelling")
    assert counts.violations > 3
    assert counts.mended > 0
    assert counts.turns == 48


def test_a_budget_ends_it_early_and_says_so(tmp_path: Path) -> None:
    path = write_talks(tmp_path, 40)
    results = tuple(campaign_on(path))
    short = campaign_on(path, max_calls=400)
    found = try_remedies(short, draw_turns(results, 100, 0), lambda *_: None)
    assert "400 calls" in found.ended
    assert 0 < total(found, "spelling").turns < 80
    with pytest.raises(UserError, match="budget"):
        try_remedies(campaign_on(path, max_calls=20), draw_turns(results, 100, 0), lambda *_: None)


def test_only_relations_that_keep_the_answer_count(tmp_path: Path) -> None:
    results = tuple(campaign_on(write_talks(tmp_path), relation="value-swap"))
    with pytest.raises(UserError, match="metamorphic"):
        draw_turns(results, 100, 0)


def test_the_same_seed_draws_the_same_halves(tmp_path: Path) -> None:
    path = write_talks(tmp_path)
    results = tuple(campaign_on(path, variants=1))
    drawn = draw_turns(results, 10, 3)
    assert list(drawn) == list(draw_turns(tuple(reversed(results)), 10, 3))
    assert len(drawn) == 10
    assert list(drawn) != list(draw_turns(results, 10, 4))


def test_figures_differ_if_chance_does_not_explain_it() -> None:
    few, many = PromisedFigure(0.10, (0.05, 0.18)), PromisedFigure(0.60, (0.50, 0.70))
    assert few.differs(many)
    assert many.differs(few)
    assert not few.differs(PromisedFigure(0.14, (0.08, 0.22)))
    assert few.differs(PromisedFigure(0.14, None)) is None


def test_the_interval_of_a_sum_comes_from_its_parts() -> None:
    found = PromisedFigure(5.0, (2.0, 9.0)).plus(
        PromisedFigure(0.02, (0.02 - 0.004, 0.02 + 0.003)).times(1000)
    )
    assert found.value == 25.0
    assert found.interval == pytest.approx((20.0, 30.0))
    assert PromisedFigure(5.0, (2.0, 9.0)).plus(PromisedFigure(1.0, None)) == PromisedFigure(
        6.0, None
    )


def half(counts: MendingCounts) -> HalfResult:
    """Return the result of ten equal dialogues, without an estimate of failures."""
    return HalfResult([counts] * 10)


GOOD = MendingCounts(violations=10, mended=7, held=10, spoilt=1, turns=10, altered=8)


@pytest.mark.parametrize(
    ("counts", "pays"),
    [
        (GOOD, True),
        # Most user turns have no slip, so a changed clean answer weighs more than a mended one.
        (GOOD._replace(changed=1), False),
        (GOOD._replace(spoilt=5), False),
        (GOOD._replace(spoilt=7), False),
        (GOOD._replace(mended=2), False),
    ],
)
def test_a_clean_turn_weighs_as_much_as_users_meet_it(counts: MendingCounts, pays: bool) -> None:
    assert half(counts).pays is pays


def test_the_second_half_must_confirm_the_advice() -> None:
    remedy = REMEDIES[1]
    for second, name in ((GOOD, remedy.name), (GOOD._replace(changed=1), None)):
        found = MendingResult((RemedyResult(remedy, half(GOOD), half(second)),), {}, 0)
        assert found.best.first.pays
        assert found.to_json()["advised"] == name


def test_the_failures_behind_a_remedy_are_a_promise(tmp_path: Path) -> None:
    found = mending(write_talks(tmp_path, 40), search="noise").best
    assert found.first.failures is not None
    without, behind = found.first.failures
    clean = found.first.shares["changed"].figure.value
    assert behind.value < without.value
    assert behind.interval is not None
    assert behind.interval[0] <= behind.value + clean <= behind.interval[1]
    assert set(found.holds) == {"mended", "spoilt", "changed", "failures"}
    assert all(found.holds.values())
