"""The inflections that relations use: how they are made, and what ships."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_dstfuzz.relations.values import inflections
from tools.relations import words

LICENCE = "  1 Licence lines start with two blanks.  \n"
FILES = {
    "data.verb": [
        "00000010 29 v 01 leave 0 000 | go away",
        "00000020 29 v 01 find 0 000 | get",
        "00000030 29 v 01 found 0 000 | begin",
    ],
    "index.verb": [
        "leave v 1 0 1 0 00000010  ",
        "find v 1 0 1 0 00000020  ",
        "found v 1 0 1 0 00000030  ",
    ],
    "data.noun": [
        "00000100 15 n 03 city 0 stadium 0 parking 0 000 | places",
        "00000200 15 n 01 foot 0 000 | of a leg",
    ],
    "index.noun": [
        "city n 1 0 1 0 00000100  ",
        "stadium n 1 0 1 0 00000100  ",
        "parking n 1 0 1 0 00000100  ",
        "foot n 1 0 1 0 00000200  ",
    ],
    "data.adj": [],
    "index.adj": [],
    "data.adv": [],
    "index.adv": [],
    "noun.exc": ["feet foot", "stadia stadium"],
    "verb.exc": ["left leave", "found find"],
    "adj.exc": [],
    "adv.exc": [],
    "cntlist.rev": [
        *("leave%2:38:00:: 1 20", "find%2:38:00:: 1 50", "found%2:38:00:: 1 2"),
        *("city%1:15:00:: 1 9", "stadium%1:15:00:: 1 4", "parking%1:15:00:: 1 1"),
        "foot%1:15:00:: 1 7",
    ],
}


@pytest.fixture
def wordnet(tmp_path: Path):
    for name, lines in FILES.items():
        (tmp_path / name).write_text(LICENCE + "".join(f"{line}\n" for line in lines))
    return tmp_path


def test_forms_are_kept_by_how_they_end(wordnet: Path, tmp_path: Path):
    output = tmp_path / "inflections.json"
    assert words.main(["--wordnet", str(wordnet), "--output", str(output)]) == 0
    tables = json.loads(output.read_text())
    assert tables["plurals"]["y>ies"].split()[0] == "city"
    assert tables["plurals"]["oot>eet"] == "foot"
    assert "stadium" in tables["plurals"][">s"].split()  # not `stadia`
    assert not any("parking" in bases.split() for bases in tables["plurals"].values())
    assert tables["verb_forms"]["ave>ft"] == "leave"
    # `found` is of `find`, which is far more frequent; `founds` is not in doubt.
    assert tables["verb_forms"]["ind>ound"] == "find"
    assert "found" in tables["verb_forms"][">s"].split()


def test_a_missing_wordnet_is_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert words.main(["--wordnet", str(tmp_path), "--output", str(tmp_path / "o")]) == 2
    assert "cannot read WordNet's" in capsys.readouterr().err


def test_the_shipped_table_goes_both_ways():
    forms = inflections()
    assert forms.plural("Guesthouse") == "guesthouses"
    assert forms.plural("church") == "churches"
    assert forms.singular("children") == "child"
    assert forms.plural("parking") is None
    assert forms.singular("north") is None
    assert forms.infinitive("Left") == "leave"
    assert forms.infinitive("leave") is None
    assert all(forms.singular(many) for many in forms.plurals.values())
