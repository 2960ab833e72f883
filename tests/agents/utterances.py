"""Utterances to try edits on: those of the shipped dialogues, and odd ones."""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.perturb.draft import Source
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon

DATA = load_dialogues("sample", "test")
_SHORT = (
    "",
    " ",
    "yes",
    "?!",
    "🙂",
    "🙂 🙂 !",
    "I I I I",
    "no no no no",
    "12 13 10:15",
    "a-b-c_d/e",
)
_STRANGE = ("\t\nhello\u00a0you there", "ﬁne İstanbul straße", "don't don't", "é" * 30)
_LONG = ("x" * 300, "please call me " * 60, "could you please help " * 600)
ODD = (*_SHORT, *_STRANGE, *_LONG)
TURNS = tuple(turn for dialogue in DATA.dialogues[:20] for turn in dialogue.turns)

#: An utterance, the values that its user means, and what the system said before.
Said = tuple[str, tuple[str, ...], str]
SAID: st.SearchStrategy[Said] = st.one_of(
    st.sampled_from(
        [(turn.user, tuple(sorted((turn.state or {}).values())), turn.system) for turn in TURNS]
    ),
    st.sampled_from([(text, (), "") for text in ODD]),
    st.text(max_size=60).map(lambda text: (text, (), "")),
)
VALIDITIES = ("natural", "strict", "edit-rate")


@cache
def perturber(validity: str) -> Perturber:
    """Return a perturber of the shipped dialogues, as a campaign of the search `bandit` has it."""
    return Perturber(
        load_lexicon(),
        validity=validity,
        ontology=DATA.ontology,
        cue_words=DATA.cue_words,
        order="distance",
    )


def source_of(said: Said, validity: str = "natural") -> Source:
    """Return a prepared utterance."""
    text, values, system = said
    return perturber(validity).prepare(text, values, system)
