"""Results of whole dialogues that stand for a run: the same ones, and only where they may."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from toybots import WordBot

from pytest_dstfuzz.campaign.cache import PredictionCache, Store, scope_of
from pytest_dstfuzz.campaign.engine import CampaignEngine, predictor_for
from pytest_dstfuzz.campaign.predictor import Predictor
from pytest_dstfuzz.campaign.results import CampaignFinished, CampaignStarted, TurnResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, Dialogue, DialogueSet
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.relations.registry import relation_by_name
from pytest_dstfuzz.relations.unchanged import Metamorphic
from pytest_dstfuzz.search.protocol import Search, SearchTask, TurnSearch
from pytest_dstfuzz.search.searches import RandomSearch
from pytest_dstfuzz.trackers.tracker import Prediction

SAMPLE = load_dialogues("sample", "test")
DATA = replace(SAMPLE, dialogues=SAMPLE.dialogues[:4])
#: Enough turns of each dialogue for variants that are carried, shrunk and asked again.
LAST = 4


class Letters(WordBot):
    """Believes what the letters of an utterance say, so that nearly every edit is a violation."""

    def state(self, context: Context) -> dict[str, str]:
        return {"hotel-name": context.user[:12], "hotel-stars": str(len(context.user) % 3)}


class Counting(Search):
    """The random search, which says how often it began a turn."""

    name = "counting"

    def __init__(self) -> None:
        self.begun = 0
        self._inner = RandomSearch(seed=0, k=3)

    def turn(self, task: SearchTask) -> TurnSearch:
        self.begun += 1
        return self._inner.turn(task)


Run = Callable[..., tuple[list[TurnResult], Predictor]]


@pytest.fixture
def run(tmp_path: Path, lexicon: Lexicon) -> Iterator[Run]:
    """Run a campaign as a new process would, on one file; return its results and its door."""
    stores: list[Store] = []

    def build(
        bot: Any = None,
        data: DialogueSet = DATA,
        *,
        last: int = LAST,
        words: Lexicon = lexicon,
        wobbles: bool = False,
        keep: bool = True,
        given: dict[str, Any] | None = None,
        **options: Any,
    ) -> tuple[list[TurnResult], Predictor]:
        # To learn how slips are read takes longer than all else, and each lexicon learns anew.
        default = {"variants": 3, "relation": "metamorphic", "validity": "strict"}
        settings = Settings.of(**{**default, **options})
        door = predictor_for(settings, data, bot or Letters(), wobbles=wobbles)
        if keep:
            stores.append(Store(tmp_path / "kept", 50_000_000))
            door.cache = PredictionCache(stores[-1], scope_of(("bot", "1"), data))
        plan = [(one, min(last, len(one.turns) - 1)) for one in data.dialogues]
        engine = CampaignEngine(settings, data, door, words, plan=plan, **(given or {}))
        return list(engine.run()), door

    yield build
    for store in stores:
        store.close()
        assert store.problems == []


@pytest.fixture
def edits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note every utterance that is prepared for edits."""
    noted: list[str] = []
    prepare = Perturber.prepare

    def noting(self: Perturber, text: str, *others: Any, **named: Any) -> Any:
        noted.append(text)
        return prepare(self, text, *others, **named)

    monkeypatch.setattr(Perturber, "prepare", noting)
    return noted


@pytest.mark.parametrize(
    "options",
    [
        {"validity": "natural"},
        {"search": "greedy", "stop_at_first": True},
        {"search": "bandit"},
        {"relation": "value-swap"},
        {"relation": "shuffle"},
        {"attack": "cumulative", "edits": ("word_drop", "char_replace"), "validity": "edit-rate"},
        {"attack": "cumulative", "search": "noise", "slip_rate": 0.2, "validity": "natural"},
    ],
    ids=str,
)
def test_a_second_run_finds_the_same_and_makes_no_variant(
    run: Run, edits: list[str], options: dict[str, Any]
) -> None:
    expected, _ = run(keep=False, **options)
    first, door = run(**options)
    assert first == expected
    asked = door.calls
    assert asked > 0
    edits.clear()
    bot = Letters()
    second, door = run(bot, **options)
    assert second == expected
    assert edits == []
    assert bot.asked == []
    assert (door.calls, door.recalled) == (0, asked)


@pytest.mark.parametrize(
    "options",
    [
        {"seed": 1},
        {"variants": 2},
        {"relation": "gold"},
        {"search": "near-value", "edits": ("word_drop",)},
        {"lock": ("hotel",)},
        {"slip_rate": 0.2},
        {"last": LAST - 1},
        {"shrink": False},
    ],
    ids=str,
)
def test_what_was_found_by_other_rules_stands_for_nothing(
    run: Run, options: dict[str, Any]
) -> None:
    run()
    expected, _ = run(keep=False, **options)
    found, _ = run(**options)
    assert found == expected


def relabelled(dialogue: Dialogue) -> Dialogue:
    first, *others = dialogue.turns
    return replace(
        dialogue, turns=(replace(first, state=BeliefState({"hotel-area": "south"})), *others)
    )


@pytest.mark.parametrize(
    "data",
    [
        replace(DATA, dialogues=(relabelled(DATA.dialogues[0]), *DATA.dialogues[1:])),
        replace(DATA, cue_words=("zzz",)),
        replace(DATA, name="another"),
        # A variant may use words of other dialogues.
        replace(DATA, dialogues=SAMPLE.dialogues[:5]),
    ],
    ids=["label", "cue words", "name", "one more"],
)
def test_other_data_are_run_anew(run: Run, edits: list[str], data: DialogueSet) -> None:
    run()
    edits.clear()
    found, _ = run(data=data)
    assert edits
    assert found == run(data=data, keep=False)[0]


def test_another_lexicon_is_run_anew(run: Run, edits: list[str], lexicon: Lexicon) -> None:
    run()
    edits.clear()
    run(words=replace(lexicon, fingerprint="another"))
    assert edits


def test_a_search_of_somebody_s_own_is_asked_each_time(run: Run) -> None:
    search = Counting()
    first, _ = run(given={"search": search})
    begun = search.begun
    assert begun > 0
    second, _ = run(given={"search": search})
    assert search.begun == 2 * begun
    assert first == second


def test_a_relation_of_somebody_s_own_is_asked_each_time(run: Run, edits: list[str]) -> None:
    for relation in (Metamorphic(), relation_by_name("metamorphic")):
        run(given={"relation": relation})
        edits.clear()
        run(given={"relation": relation})
        # One that was made by hand may be another one than the one of its name.
        assert bool(edits) is (relation is not relation_by_name("metamorphic"))


def test_answers_that_are_put_to_the_vote_are_judged_anew(run: Run, edits: list[str]) -> None:
    run(wobbles=True, votes=3)
    edits.clear()
    run(wobbles=True, votes=3)
    assert edits


def test_a_dialogue_that_is_begun_anew_is_asked_each_time(run: Run) -> None:
    bot = Letters()
    first, _ = run(bot, relation="restart")
    asked = len(bot.asked)
    second, _ = run(bot, relation="restart")
    assert first == second
    assert len(bot.asked) > asked


def test_where_the_tracker_failed_it_is_asked_again(run: Run) -> None:
    class Failing(Letters):
        def answer(self, context: Context) -> Prediction:
            if len(context.user) % 5 == 0:
                raise ValueError("at times")
            return super().answer(context)

    broken, _ = run(Failing())
    assert "error" in {turn.outcome for turn in broken}
    assert run()[0] == run(keep=False)[0]


def test_what_the_budget_cut_short_is_gone_on_with(run: Run) -> None:
    expected, _ = run(keep=False)
    skipped = []
    for _ in range(2):
        cut, door = run(max_calls=80)
        assert door.calls <= 80
        skipped.append(sum(turn.outcome == "skipped" for turn in cut))
    # The second one goes on after what the first one has left.
    assert len(expected) > skipped[0] > skipped[1]
    found, door = run()
    assert found == expected
    assert door.recalled > 0


def test_an_interrupted_run_leaves_what_was_done(run: Run, edits: list[str]) -> None:
    class Interrupted(Letters):
        def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
            if len(self.batches) == 12:
                raise KeyboardInterrupt
            return super().predict(contexts)

    expected, _ = run(keep=False)
    with pytest.raises(KeyboardInterrupt):
        run(Interrupted(), max_calls=100_000, batch_size=16)
    edits.clear()
    found, _ = run(batch_size=16)
    assert found == expected
    assert 0 < len(edits) < len(expected)


def test_half_of_a_character_is_no_reason_to_stop(run: Run) -> None:
    class Odd(Letters):
        def state(self, context: Context) -> dict[str, str]:
            return {"hotel-name": "\ud800" + context.user[:2]}

    first, _ = run(Odd())
    assert run(Odd())[0] == first
    dialogue = DATA.dialogues[0]
    odd = replace(dialogue, turns=(replace(dialogue.turns[0], user="hi \ud83d there"),))
    data = replace(DATA, dialogues=(odd,))
    assert run(data=data)[0] == run(data=data)[0]


def test_another_noise_model_in_the_same_file_is_run_anew(
    run: Run, edits: list[str], tmp_path: Path
) -> None:
    shipped = resources.files("pytest_dstfuzz") / "resources" / "noise" / "typing.json"
    model = json.loads(shipped.read_text(encoding="utf-8"))
    path = tmp_path / "mine.json"
    for rate in (0.05, 0.05, 0.2):
        path.write_text(json.dumps({**model, "slip_rate": rate}), encoding="utf-8")
        edits.clear()
        found, _ = run(noise=(str(path),))
    assert edits
    assert found == run(noise=(str(path),), keep=False)[0]
    edits.clear()
    run(noise=(str(path),))
    assert edits == []


def test_words_of_a_suite_are_looked_up_each_time(
    run: Run, edits: list[str], lexicon: Lexicon
) -> None:
    """Their fingerprint does not matter."""
    for _ in range(2):
        edits.clear()
        run(words=replace(lexicon))
    assert edits


def test_a_campaign_is_begun_once_also_where_all_is_kept(run: Run) -> None:
    for _ in range(2):
        events: list[Any] = []
        run(given={"listener": events.append}, batch_size=1)
        assert [type(one) for one in events].count(CampaignStarted) == 1
        assert [type(one) for one in events].count(CampaignFinished) == 1
