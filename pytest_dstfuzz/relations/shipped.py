"""The modules of this room whose relations ship, in the order in which these are listed.

A relation is put on this list with its page, its property tests, and a rule-based tracker without
a fault that has no violation of it. Whoever is not on it registers as anybody else does.
"""

from __future__ import annotations

from typing import Final

MODULES: Final = (
    "unchanged",
    "should_change.value_swap",
    "should_change.turn_back",
    "should_change.removal",
    "should_change.role_swap",
    "should_change.confusing_entity",
    "should_change.negation",
    "should_change.antonym",
    "should_change.repair",
    "should_change.random_input",
    "paraphrase.neighbour_swap",
    "paraphrase.stop_words",
    "paraphrase.grammar_errors",
    "paraphrase.phrases",
    "paraphrase.speech",
    "paraphrase.disfluency",
    "paraphrase.plug_in",
    "paraphrase.masked",
    "sources.retrieval",
    "sources.frozen",
    "rounds.duplicate",
    "rounds.shuffle",
    "rounds.drop",
    "rounds.restart",
    "tools.order",
    "tools.distractor",
    "tools.optional",
    "tools.paraphrase",
    "contexts.mr",
    "metal",
)
