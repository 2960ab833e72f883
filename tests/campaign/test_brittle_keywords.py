"""Bots that know a keyword in one spelling only: a default run finds each of them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pytest_dstfuzz import Campaign
from pytest_dstfuzz.campaign.results import VariantResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, DialogueSet, Turn
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.words import one_letter_away, word_list
from pytest_dstfuzz.search.registry import default_search

#: Keyword -> reply of the bot, and a phrase with the keyword.
BOTS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "faq": {
        "open": ("We are there from nine to five.", "when you open"),
        "bikes": ("They cost ten pounds a day.", "how much the bikes are"),
        "parking": ("Behind the house.", "where the parking is"),
    },
    "clinic": {
        "appointment": ("A nurse will call you.", "how to get an appointment"),
        "prescription": ("It is ready.", "when my prescription is ready"),
        "vaccine": ("Come on any day.", "which vaccine I need"),
    },
    "bank": {
        "balance": ("You have 20 pounds.", "the balance of my account"),
        "transfer": ("How much?", "how to transfer money"),
        "statement": ("It is in your inbox.", "where my last statement is"),
    },
}
FRAMES = (
    "Please tell me {}.",
    "I want to know {}.",
    "Hello, {}?",
    "Can you tell me {}?",
    "{}?",
    "Do you know {}?",
    "My question is {}.",
    "I would like to ask {}.",
    "Could you say {}, please?",
    "Thanks, and {}?",
)


@pytest.mark.parametrize("name", BOTS)
def test_a_default_run_finds_every_brittle_keyword(name: str) -> None:
    bot = BOTS[name]

    def answer(context: Context) -> str:
        said = context.user.lower()
        found = [reply for keyword, (reply, _) in bot.items() if keyword in said]
        return found[0] if found else "Sorry, I did not understand that."

    asked, data = asked_of(name)
    search = default_search(Settings.of(outcome="reply"))
    results = Campaign(answer, data, Settings.of(outcome="reply", shrink=False, search=search))
    broken = {
        keyword
        for turn in results
        for keyword, text in asked
        if text == turn.user and any(_touches(keyword, one) for one in turn.violations)
    }
    assert broken == set(bot)


@pytest.mark.parametrize("name", BOTS)
def test_nearly_all_slips_of_a_keyword_are_drawn(name: str) -> None:
    _, data = asked_of(name)
    perturber = Perturber.of(Settings.of(outcome="reply").variant, data, load_lexicon())
    for keyword, (_, phrase) in BOTS[name].items():
        drawn: set[str] = set()
        for frame in FRAMES:
            support = perturber.prepare(frame.format(phrase)).support
            assert support is not None
            sites = (site for site in support.noisy.sites if keyword in site.clean)
            drawn.update(word for site in sites for text in site.texts for word in word_list(text))
        possible = one_letter_away(keyword)
        # The others are words (`pen`), or may stand for other words (`spen` for `spend`).
        share = len(possible & drawn) / len(possible)
        assert share >= (0.97 if len(keyword) > 6 else 0.93), (keyword, share)


def asked_of(name: str) -> tuple[list[tuple[str, str]], DialogueSet]:
    """Return what users ask a bot, each with its keyword, and the same as data."""
    asked = [
        (keyword, frame.format(phrase))
        for keyword, (_, phrase) in BOTS[name].items()
        for frame in FRAMES
    ]
    dialogues = (Dialogue(text, (Turn(0, "", text, None),)) for _, text in asked)
    return asked, DialogueSet(name, "test", tuple(dialogues))


def _touches(keyword: str, variant: VariantResult) -> bool:
    return keyword not in variant.text.lower()
