"""MORTAR's relations, on questions that were written here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from pytest_dstfuzz import Settings
from pytest_dstfuzz.campaign.engine import CampaignEngine, predictor_for
from pytest_dstfuzz.campaign.figures import tally_results
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.summary import summarise
from pytest_dstfuzz.comparisons.registry import comparison_by_name
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, DialogueSet, Turn
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.relations.checks import CheckedRelation, check_laws
from pytest_dstfuzz.relations.contexts import (
    ContextsAgree,
    ContextsDiffer,
    LostContext,
    SameContext,
)
from pytest_dstfuzz.relations.metal import MetalSynonyms
from pytest_dstfuzz.relations.registry import relation_by_name, relations_named
from pytest_dstfuzz.relations.relation import Relation
from pytest_dstfuzz.report.page import TerminalPage
from pytest_dstfuzz.report.terminal import show_cases
from pytest_dstfuzz.totals.cases import TOGETHER, CaseFigures, CasesTally
from pytest_dstfuzz.trackers.adapters import as_tracker
from tests.relations.contexts.harbour import dialogues

LEXICON = load_lexicon()
NAMES = ("same-context", "lost-context", "contexts-agree", "contexts-differ")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> DialogueSet:
    found = dialogues(tmp_path_factory.mktemp("mr"))
    return DialogueSet("harbour", "val", found)


def run(
    relation: Relation, data: DialogueSet, reply: object, **options: object
) -> list[TurnResult]:
    given: dict[str, object] = {"outcome": "reply", "variants": 16, **options}
    settings = Settings.of(**given)
    bot = as_tracker(reply, outcome="reply")
    engine = CampaignEngine(
        settings,
        data,
        predictor_for(settings, data, bot, wobbles=settings.tracker.repeatable is False or None),
        LEXICON,
        plan=[(one, len(one.turns) - 1) for one in data.dialogues],
        relation=relation,
        comparison=comparison_by_name("exact", settings.reply),
    )
    return list(engine.run())


def recorded(data: DialogueSet) -> dict[str, str]:
    return {
        turn.user: after.system
        for one in data.dialogues
        for turn, after in zip(one.turns, one.turns[1:], strict=False)
    }


@pytest.mark.parametrize("name", NAMES)
def test_they_keep_the_laws(name: str, data: DialogueSet):
    check_laws(relation_by_name(name), data, LEXICON, 0).assert_passed()


def test_a_bot_that_reads_the_question_alone_is_the_same_everywhere(data: DialogueSet):
    answers = recorded(data)

    def reply(context: Context) -> str:
        return answers.get(context.user, "I do not know.")

    for make in (SameContext, ContextsAgree):
        found = run(make(2), data, reply)
        assert not any(turn.violations for turn in found)
        assert any(turn.tested for turn in found)
    lost = run(LostContext(6), data, reply)
    broken = [one for turn in lost for one in turn.violations]
    assert broken, Counter(turn.reason for turn in lost)
    assert {one.failure for one in broken} == {"stuck"}
    differ = run(ContextsDiffer(6), data, reply)
    assert {one.failure for turn in differ for one in turn.violations} == {"stuck"}


def test_a_bot_that_counts_rounds_breaks_what_must_stay(data: DialogueSet):
    def reply(context: Context) -> str:
        return f"You asked {len(context.exchanges)} questions, last {context.user}"

    found = run(SameContext(2), data, reply)
    broken = [one for turn in found for one in turn.violations]
    assert broken
    assert all(one.about.startswith(one.case) and one.moves for one in broken)
    pairs = [one for turn in run(ContextsAgree(2), data, reply) for one in turn.violations]
    assert pairs
    assert all(len(one.case.split()) == 2 for one in pairs)


def test_a_lost_context_wants_another_reply_than_the_clean_one(data: DialogueSet):
    def gives_up(context: Context) -> str:
        return "I do not know." if len(context.exchanges) > 1 else f"It is {context.user}"

    found = run(LostContext(6), data, gives_up)
    reasons = {turn.reason for turn in found if turn.turn_index}
    assert "the clean reply is a fallback reply, which need not change" in reasons
    assert not any(turn.violations for turn in found)


def test_replies_may_be_held_against_recorded_answers(data: DialogueSet):
    def wrong(context: Context) -> str:
        return f"Wrong, {len(context.user)}"

    clean = run(SameContext(2), data, wrong)
    assert not any(turn.violations for turn in clean)
    against = run(SameContext(2), data, wrong, reference="answer")
    assert [turn.outcome for turn in against if turn.tested] == ["violation"] * sum(
        turn.tested for turn in against
    )
    (figures,) = tally_results(CasesTally(), against).figures
    assert figures.levels == (figures.bugs, 0, 0)
    assert "no answer to the question is recorded" in {turn.reason for turn in against}


@pytest.mark.parametrize("votes", [3, 5])
def test_votes_are_held_against_recorded_answers_too(data: DialogueSet, votes: int):
    """A bot that says one thing breaks each recorded answer, with all of its votes."""
    found = run(
        SameContext(2), data, lambda _: "ok", reference="answer", repeatable=False, votes=votes
    )
    voted = [one.votes for turn in found for one in turn.violations if one.votes is not None]
    assert voted
    assert all((one.changed, one.kept, one.same) == (one.asked, 0, 0) for one in voted)
    noise = summarise(found).noise
    assert noise is not None
    assert noise.expected_noise < 0.1 * len(voted)


def test_cases_are_counted_as_mortar_counts(data: DialogueSet):
    answers = recorded(data)

    def reply(context: Context) -> str:
        # Right where it is asked first, and never again.
        return answers.get(context.user, "It opens.") if len(context.exchanges) < 3 else "Later."

    results = [*run(SameContext(1), data, reply), *run(ContextsAgree(1), data, reply)]
    first, second, together = tally_results(CasesTally(), results).figures
    assert (first.name, second.name, together.name) == (*NAMES[::2], TOGETHER)
    assert first.detections == sum(
        len(turn.variants) for turn in results if turn.relation == NAMES[0]
    )
    assert second.detections == sum(turn.tested for turn in results if turn.relation == NAMES[2])
    assert together.bugs == first.bugs + second.bugs
    assert 0 < first.effective <= first.cases == 5 * len(data.dialogues)
    assert first.bptc == first.bugs / first.cases
    assert set(first.perturbations) <= {"DRS", "DRR", "DRD", "DSR", "DSD"}
    assert first.levels is not None
    assert sum(first.levels) <= first.bugs
    assert CasesTally().figures == []


@pytest.mark.parametrize("relation", [LostContext(1), MetalSynonyms()])
def test_test_cases_without_a_check_count_too(relation: Relation, data: DialogueSet):
    """MORTAR has 5 test cases of a dialogue, METAL one for each relation, checked or not."""
    alone = Dialogue("alone", (Turn(0, "", "Why?"),))
    pair = Dialogue("pair", (Turn(0, "", "Why?"), Turn(1, "So.", "Why?"), Turn(2, "Yes.", "Why?")))
    found = run(relation, replace(data, dialogues=(alone, pair)), lambda context: context.user)
    assert not any(turn.variants for turn in found)
    (figures,) = tally_results(CasesTally(), found).figures
    metal = isinstance(relation, MetalSynonyms)
    assert (figures.cases, figures.detections, figures.retc) == (2 if metal else 5, 0, 0.0)
    stored = [TurnResult.from_json(turn.to_json()) for turn in found]
    assert tally_results(CasesTally(), stored).figures == [figures]


def test_a_wrapped_relation_keeps_its_test_cases(data: DialogueSet):
    found = run(CheckedRelation(SameContext(1), "here"), data, lambda context: context.user)
    (figures,) = tally_results(CasesTally(), found).figures
    assert figures.cases == 5 * len(data.dialogues)


#: Table IV of Guo et al.: L1, L2, L3 and CV of METAL and of MORTAR on six dialogue systems.
PUBLISHED_LEVELS = [
    *((10_903, 1_749, 0, 1.023), (27_723, 4_219, 0, 1.041)),
    *((8_103, 2_607, 0, 0.726), (21_504, 6_295, 0, 0.774)),
    *((7_723, 2_000, 31, 0.832), (19_083, 5_399, 152, 0.790)),
    *((7_463, 2_413, 0, 0.723), (18_716, 4_203, 0, 0.896)),
    *((4_052, 2_490, 89, 0.338), (10_355, 6_664, 245, 0.307)),
    *((2_555, 1_573, 71, 0.336), (6_819, 5_756, 230, 0.120)),
]


@pytest.mark.parametrize(("first", "second", "third", "cv"), PUBLISHED_LEVELS)
def test_the_variation_is_the_published_one(first: int, second: int, third: int, cv: float):
    figures = CaseFigures("together", 1, 1, 1, 1, (first, second, third), {})
    assert figures.variation == pytest.approx(cv, abs=5e-4)


def test_there_is_no_variation_of_nothing():
    assert CaseFigures("together", 1, 1, 1, 1, (0, 0, 3), {}).variation is None
    assert CaseFigures("together", 1, 1, 1, 1, None, {}).variation is None


def test_why_they_say_nothing(data: DialogueSet):
    alone = Dialogue("one", (Turn(0, "", "Who built it?"),))
    relation = relation_by_name("same-context")
    assert "a dialogue with two rounds" in relation.impossible(replace(data, dialogues=(alone,)))
    found = run(relation, data, lambda context: context.user)
    reasons = [turn.reason for turn in found if turn.outcome == "inapplicable"]
    assert "the data says that the question has no answer" in reasons
    assert set(reasons) <= set(relation.reasons)
    mixed = run(
        relation, replace(data, dialogues=(alone, *data.dialogues)), lambda context: context.user
    )
    assert mixed[0].reason == "the dialogue has fewer than two rounds"


def test_families_stand_for_their_relations(data: DialogueSet):
    assert _names("mortar") == NAMES
    assert _names("metamorphic,metal")[1:] == (
        *("metal-synonyms", "metal-word"),
        *("metal-typos", "metal-leet"),
    )
    found = [one.name for one in relations_named("all", data, "reply")]
    assert set(NAMES) <= set(found)
    assert not any(name.startswith("metal") for name in found)
    assert not set(NAMES) & {one.name for one in relations_named("all", data, "state")}
    with pytest.raises(UserError, match="'same-context' is named twice"):
        relations_named("mortar,same-context")


def _names(text: str) -> tuple[str, ...]:
    return tuple(one.name for one in relations_named(text))


def test_settings_choose_sequences_and_checks(data: DialogueSet):
    def reply(context: Context) -> str:
        return context.user

    found = run(SameContext(3), data, reply, perturbations=("DRR",))
    assert {one.case for turn in found for one in turn.variants} <= {"DRR-0", "DRR-1", "DRR-2"}
    few = run(SameContext(3), data, reply)
    many = run(SameContext(3), data, reply, context_checks=("mortar",))
    assert _count(few) < _count(many)
    with pytest.raises(UserError, match="DRS"):
        run(SameContext(1), data, reply, perturbations=("DRX",))


def _count(results: Sequence[TurnResult]) -> int:
    return sum(len(turn.variants) for turn in results)


def test_the_summary_has_a_table_of_cases(data: DialogueSet):
    page = TerminalPage(100, "utf-8")
    results = run(SameContext(1), data, lambda context: f"{len(context.exchanges)} times")
    show_cases(page, tally_results(CasesTally(), results).figures)
    text = "\n".join(line.text for line in page.lines)
    assert "RETC" in text
    assert "same-context" in text
    assert "bugs by perturbation: DR" in text
    empty = TerminalPage(100, "utf-8")
    show_cases(empty, [])
    assert not empty.lines
