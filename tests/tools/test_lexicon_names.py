"""The lists of names are made of WordNet's capitals and of the package's own words."""

from __future__ import annotations

from pytest_dstfuzz.perturb.names import name_lists
from tools.lexicon.names import names, read_own
from tools.lexicon.wndb import Synset, SynsetId, WordNet

FILES = {1: "15", 2: "06", 3: "15", 4: "05", 5: "18"}
SYNSETS = {
    SynsetId("noun", 1): Synset(("Harborton", "Lillen"), ()),
    SynsetId("noun", 2): Synset(("lillen", "tub"), ()),
    SynsetId("noun", 3): Synset(("Tubs",), ()),
    SynsetId("noun", 4): Synset(("Tubidae",), ()),
    SynsetId("noun", 5): Synset(("Ossia(ip)", "New_York"), ()),
}
OWN = {"always": [], "never": [], "places": ["deal"], "given": ["rose"], "family": ["hill"]}


def test_capitals_in_all_senses_make_a_name() -> None:
    found = names(WordNet(SYNSETS, {}, {}), FILES, OWN)
    assert found["always"] == ["harborton", "ossia"]
    assert found["places"] == ["deal", "lillen", "tubs"]
    assert (found["given"], found["family"]) == (["rose"], ["hill"])


def test_what_ships_has_the_packages_own_names() -> None:
    shipped, own = name_lists(), read_own()
    assert shipped.given <= {*own["given"]}
    assert {*own["always"]} <= shipped.always
    assert shipped.places.isdisjoint(own["never"])
