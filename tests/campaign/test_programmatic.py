"""A campaign from Python: five lines, the results of the engine, and mistakes told at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from toybots import WordBot, data_of, talk

from pytest_dstfuzz import (
    Campaign,
    Context,
    DialogueSet,
    Relation,
    Settings,
    UserError,
    Verdict,
    diff_states,
)
from pytest_dstfuzz.campaign.engine import CampaignEngine
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon

SAID = (
    ("a cheap chinese place in the north please", "italian then", "and the south is fine"),
    ("where is a cheap place", "in the north please"),
    ("something italian in the south please",),
)
DATA = data_of(*(talk(f"talk{number}", *users) for number, users in enumerate(SAID)))
SETTINGS = Settings.of(validity="edit-rate", variants=3, turns=None)


def track(context: Context) -> dict[str, str]:
    """Fill a slot when its word is said."""
    return WordBot().state(context)


def told(results: Any) -> str:
    return json.dumps([result.to_json() for result in results])


@pytest.fixture(scope="module")
def whole() -> Campaign:
    campaign = Campaign(WordBot(), DATA, SETTINGS)
    assert campaign.results == ()
    assert len(list(campaign)) == len(campaign) > 0
    return campaign


def test_five_lines(whole: Campaign) -> None:
    found = []
    for result in Campaign(track, DATA, SETTINGS):
        found.append(result.outcome)  # noqa: PERF401 - what a user writes
    assert found == [result.outcome for result in whole.results]
    assert "violation" in found
    assert whole.summary().violations == sum(len(one.violations) for one in whole.results)


def test_it_is_the_engine_that_pytest_runs(whole: Campaign) -> None:
    plan = [(dialogue, len(dialogue.turns) - 1) for dialogue in DATA.dialogues]
    results = CampaignEngine(SETTINGS, DATA, WordBot(), load_lexicon(), plan=plan).run()
    # Those of a tracker that must be repeatable are asked a little more.
    counted = {"repeated", "repeat_calls"}
    strip: Callable[[Any], Any] = lambda value: (  # noqa: E731
        {key: strip(one) for key, one in value.items() if key not in counted}
        if isinstance(value, dict)
        else list(map(strip, value))
        if isinstance(value, list)
        else value
    )
    assert strip([one.to_json() for one in results]) == strip(
        [one.to_json() for one in whole.results]
    )


def test_who_stops_early_loses_nothing(whole: Campaign) -> None:
    bot = WordBot()
    campaign = Campaign(bot, DATA, SETTINGS)
    first = next(iter(campaign))
    assert campaign.results[0] == first
    assert campaign.summary().turns == len(campaign.results)
    assert told(campaign) == told(whole.results)
    asked = len(bot.asked)
    assert told(campaign) == told(whole.results)
    assert len(bot.asked) == asked


def test_dialogues_may_be_a_list_a_path_or_a_setting(tmp_path: Path, whole: Campaign) -> None:
    dialogues = DATA.dialogues
    listed = Campaign(WordBot(), list(dialogues), SETTINGS)
    assert [turn.dialogue_id for turn in listed] == [one.dialogue_id for one in whole.results]
    path = tmp_path / "talks.jsonl"
    lines = [
        {"dialogue_id": one.id, "turns": [{"system": t.system, "user": t.user} for t in one.turns]}
        for one in dialogues
    ]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    for given in (path, str(path)):
        assert len(Campaign(track, given, SETTINGS)) == len(whole)
    named = Campaign("toybots:WordBot", None, SETTINGS.replace_options(data=str(path)))
    assert named.settings.tracker.model == "toybots:WordBot"
    assert len(list(named)) == len(whole)


def test_a_relation_of_ones_own(whole: Campaign) -> None:
    class Price(Relation):
        name = "price"
        inapplicable = "no price was named"

        def applies(self, clean: Any, label: object) -> bool:  # noqa: ARG002 - not used
            return "hotel-price" in clean

        def judge(self, clean: Any, perturbed: Any, label: object) -> Verdict:  # noqa: ARG002
            changes = [one for one in diff_states(clean, perturbed) if one.slot == "hotel-price"]
            return Verdict("violation" if changes else "held", tuple(changes))

    results = list(Campaign(track, DATA, SETTINGS, relation=Price()))
    changed = {
        change.slot for turn in results for one in turn.violations for change in one.changed_slots
    }
    assert changed == {"hotel-price"}
    assert len(results) == len(whole)
    reasons = {turn.reason for turn in results if turn.outcome == "inapplicable"}
    assert reasons == {"no price was named"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((track, "no-such-data"), "no-such-data"),
        ((track, 7), "the dialogues of a campaign must be a name or a path .* not int 7"),
        ((track, [track]), "the dialogues of a campaign must be a name or a path"),
        ((track, DATA.dialogues[:1] * 2), "two dialogues have the id"),
        ((7, DATA), "int"),
        (("no-such-tracker", DATA), "unknown tracker 'no-such-tracker'"),
        (
            (track, DATA, Settings.of(search="rnadom")),
            "unknown search 'rnadom'. Did you mean 'r",
        ),
        (
            (track, DATA, Settings.of(relation="golden")),
            "unknown relation 'golden'. Did you mean 'g",
        ),
    ],
)
def test_mistakes_are_told_at_once(given: tuple[Any, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Campaign(*given)


def test_objects_of_the_wrong_shape() -> None:
    with pytest.raises(UserError, match=r"Campaign\(search=...\): int is not a search"):
        Campaign(track, DATA, search=7)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"Campaign\(relation=...\): int is not a relation"):
        Campaign(track, DATA, relation=7)  # type: ignore[arg-type]


def test_a_tracker_that_cannot_be_tested_is_refused_when_it_is_asked() -> None:
    campaign = Campaign(lambda _: 7, DATA, SETTINGS)
    with pytest.raises(UserError):
        next(iter(campaign))
    assert campaign.results == ()


def test_a_budget_leaves_turns_out_and_says_why() -> None:
    results = list(Campaign(WordBot(), DATA, Settings.of(validity="edit-rate", max_calls=20)))
    skipped = [turn for turn in results if turn.outcome == "skipped"]
    assert skipped
    assert "the budget of 20 calls ended" in skipped[-1].reason


def test_an_empty_set_of_dialogues() -> None:
    with pytest.raises(UserError, match="there is no dialogue to test"):
        Campaign(track, DialogueSet("none", "test", ()))


def test_several_relations_ask_for_clean_turns_once() -> None:
    bot = WordBot()
    both = Campaign(bot, DATA, SETTINGS, relation=["metamorphic", ClosedAlone()])
    found = list(both)
    assert len(found) == len(both) == 12
    assert [one.relation for one in found] == ["metamorphic"] * 6 + ["closed-alone"] * 6
    assert told(found[:6]) == told(Campaign(WordBot(), DATA, SETTINGS))
    clean = [dialogue.context(turn.index) for dialogue in DATA.dialogues for turn in dialogue.turns]
    # The preflight asks for some more often.
    assert [bot.asked.count(context) for context in clean] == [
        one_alone.count(context) for one_alone in [asked_alone()] for context in clean
    ]
    summaries = both.summaries()
    assert list(summaries) == ["metamorphic", "closed-alone"]
    assert summaries["metamorphic"].turns == 6
    with pytest.raises(UserError, match=r"has 2 relations.*summaries\(\)"):
        both.summary()


def asked_alone() -> list[Context]:
    """Return what a campaign of one relation asks for."""
    bot = WordBot()
    list(Campaign(bot, DATA, SETTINGS))
    return bot.asked


class ClosedAlone(Relation):
    """Only the area is compared."""

    name = "closed-alone"

    def judge(self, clean: Any, perturbed: Any, label: Any) -> Verdict:  # noqa: ARG002 - has none
        """Compare the area."""
        changes = [one for one in diff_states(clean, perturbed) if one.slot == "hotel-area"]
        return Verdict("violation" if changes else "held", tuple(changes))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("metamorphic,goldd", r"unknown relation 'goldd'. Did you mean 'gold'"),
        ("metamorphic,metamorphic", "the relation 'metamorphic' is named twice"),
        (
            ["metamorphic", "metamorphic"],
            "two relations of the campaign have the name 'metamorphic'",
        ),
        ("metamorphic,,gold", "is not a list of relations"),
        ("metamorphic,gold", "'gold' does not apply to the data 'toy'"),
        ([], "a campaign needs a relation"),
    ],
)
def test_relations_that_are_none(given: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Campaign(track, DATA, SETTINGS, relation=given)


def test_all_stands_for_those_that_can_say_something() -> None:
    names = list(Campaign(track, DATA, SETTINGS, relation="all").summaries())
    assert names[0] == "metamorphic"
    assert "gold" not in names
    with pytest.raises(UserError, match="'all' cannot be combined"):
        Campaign(track, DATA, SETTINGS, relation="all,value-swap")
