"""No relation on larger units or on rounds finds a fault in the right trackers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from domains import Domain, pizza, travel

from pytest_dstfuzz.dialogue.dialogues import BeliefState
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.relations.registry import relation_by_name
from pytest_dstfuzz.relations.relation import BySearch, Inapplicable, Rewrite, Scene, Scenes

NAMES = [
    *("neighbour-swap", "stop-word-dropout", "grammar-errors", "phrase-table", "speech"),
    *("disfluency", "masked-replacement", "plug-in", "retrieval"),
    *("politeness", "indirect-question", "stated-need", "filler-sentences", "synonyms"),
    *("long-message", "contrast", "register"),
    *("number-format", "letter-case", "phrase-order", "aside", "restate", "split", "join"),
    *("duplicate", "shuffle", "drop", "restart"),
]


def rewrites(name: str, scene: Scene) -> list[Rewrite]:
    begun = relation_by_name(name).begin(scene)
    if isinstance(begun, Inapplicable):
        return []
    assert not isinstance(begun, BySearch)
    if hasattr(begun, "propose"):
        return [one for n in range(6) if (one := begun.propose(n, 0, ()))]
    return list(begun)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("domain", [travel, pizza])
def test_it_has_no_violation(domain: Callable[[], Domain], name: str) -> None:
    data, bot = domain()
    lexicon = load_lexicon()
    scenes = Scenes(data, lexicon, Locks(lexicon, data.ontology, data.cue_words), 0)
    whole = relation_by_name(name).unit == "dialogue"
    held, failing = 0, []
    for dialogue in data.dialogues:
        for turn in dialogue.turns[-1:] if whole else dialogue.turns:
            for one in rewrites(name, scenes.labelled(name, dialogue, turn.index)):
                before, found = (BeliefState(bot(c)) for c in (one.reference, one.seen))
                verdict = one.expected.judge(before, found)
                held += verdict.kind == "held"
                if verdict.kind != "held":
                    failing.append(f"{one.about} in {one.seen.user!r}: {verdict.changes}")
    assert failing == []
    # The pizza orders have no two independent rounds and no need that is said before another value.
    # The travellers ask for nothing in a sentence with a verb. No request names a day or a kind.
    pizzas = {"shuffle", "restate", "join", "contrast"}
    silent = pizzas if data.name.startswith("pizza") else {"stated-need", "contrast"}
    assert (held > 0) != (name in silent)
