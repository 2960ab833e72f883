"""The right trackers are right, and no relation finds a fault in them."""

from __future__ import annotations

from collections import Counter

import pytest
from domains import Domain, orders, pizza, travel

from pytest_dstfuzz.dialogue.dialogues import BeliefState
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.relations.registry import relation_by_name
from pytest_dstfuzz.relations.relation import BySearch, Inapplicable, Scenes, begin, list_rewrites

DOMAINS = {"travel": travel, "pizza": pizza}
SHOULD_CHANGE = [
    *("value-swap", "turn-back", "removal", "role-swap", "confusing-entity"),
    *("negation", "antonym", "repair", "random-input"),
]
#: What no turn of the pizza orders can satisfy: they have neither journeys nor values in common.
NOT_FOR_PIZZA = {"role-swap", "confusing-entity"}


@pytest.mark.parametrize("domain", DOMAINS)
def test_it_is_right_about_the_clean_dialogues(domain: str) -> None:
    data, bot = DOMAINS[domain]()
    for dialogue in data.dialogues:
        for turn in dialogue.turns:
            assert bot(dialogue.context(turn.index)) == turn.state, (dialogue.id, turn.index)


def test_the_labels_of_the_pizza_orders_are_those_of_a_reader() -> None:
    assert [dialogue.turns[-1].state for dialogue in pizza().data.dialogues] == orders()


def judged(domain: Domain, name: str) -> tuple[Counter[str], list[str]]:
    """Return how many rewrites of a domain have which outcome, and what those say that fail."""
    data, bot = domain
    lexicon = load_lexicon()
    scenes = Scenes(data, lexicon, Locks(lexicon, data.ontology, data.cue_words), 0)
    relation = relation_by_name(name)
    outcomes: Counter[str] = Counter()
    failing = []
    for dialogue in data.dialogues:
        for turn in dialogue.turns:
            begun = begin(relation, scenes.labelled(name, dialogue, turn.index))
            if isinstance(begun, Inapplicable):
                continue
            assert not isinstance(begun, BySearch)
            for rewrite in list_rewrites(begun):
                before, found = (BeliefState(bot(c)) for c in (rewrite.reference, rewrite.seen))
                verdict = rewrite.expected.judge(before, found)
                outcomes[verdict.failure or verdict.kind] += 1
                if verdict.failure:
                    failing.append(f"{rewrite.about} in {rewrite.seen.user!r}: {verdict.changes}")
    return outcomes, failing


@pytest.mark.parametrize("name", SHOULD_CHANGE)
@pytest.mark.parametrize("domain", DOMAINS)
def test_it_follows_every_rewrite(domain: str, name: str) -> None:
    outcomes, failing = judged(DOMAINS[domain](), name)
    assert failing == []
    impossible = relation_by_name(name).impossible(DOMAINS[domain]().data)
    if domain == "pizza" and name in NOT_FOR_PIZZA:
        assert impossible
        assert not outcomes
    else:
        assert not impossible
        # Behind the one `with` of the pizzas stand several toppings each time.
        assert (outcomes["held"] == 0) == ((domain, name) == ("pizza", "antonym"))
