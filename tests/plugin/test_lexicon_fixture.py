"""A suite's own sources of words, through the fixture ``dst_lexicon``."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon

OPTIONS = (
    "--dst-model=mybot:steady",
    "--dst-turns=8",
    "--dst-edits=word_replace",
    "--dst-validity=edit-rate",
    "--dst-report=out.json",
)
#: A source of synonyms that knows one, for every word.
CONFTEST = """
import pytest
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon

class Zebras:
    name = "zebras"
    def synonyms(self, word, pos=None):
        return ("zebra",)

@pytest.fixture(scope="session")
def dst_lexicon():
    return load_lexicon().with_sources(synonyms=Zebras())
"""


def read_report(pytester: pytest.Pytester) -> Any:
    return json.loads((pytester.path / "out.json").read_text(encoding="utf-8"))


def replacements(report: Any, operator: str) -> set[str]:
    """Return what an operator put in the place of words."""
    return {
        edit["after"].lower()
        for turn in report["turns"]
        for variant in turn["variants"]
        for edit in variant["edits"]
        if edit["operator"] == operator
    }


def test_the_shipped_lexicon_is_the_default(bot: pytest.Pytester) -> None:
    assert bot.runpytest_inprocess(*OPTIONS).ret == 0
    report = read_report(bot)
    assert report["data"]["lexicon"] == load_lexicon().fingerprint
    assert "zebra" not in replacements(report, "synonym")


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_the_builtin_suite_takes_words_from_the_fixture(
    bot: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    bot.makeconftest(CONFTEST)
    assert bot.runpytest_inprocess(*OPTIONS, *workers).ret == 0
    report = read_report(bot)
    assert replacements(report, "synonym") == {"zebra"}
    assert report["data"]["lexicon"] != load_lexicon().fingerprint
    assert len(report["data"]["lexicon"]) == 64


@pytest.fixture(scope="module")
def gensim_models() -> Any:
    """The library, loaded before pytester begins to forget what was loaded."""
    return pytest.importorskip("gensim.models")


def test_vectors_that_gensim_saved_are_neighbours(gensim_models: Any, bot: pytest.Pytester) -> None:
    vectors = gensim_models.KeyedVectors(vector_size=2)
    common = ["i", "a", "to", "the", "need", "want", "for", "in", "please", "you", "train"]
    vectors.add_vectors(
        [*common, "okapi"], [[1.0, 0.01 * n] for n in range(len(common))] + [[1, 1]]
    )
    vectors.save_word2vec_format(str(bot.path / "own.vec"))
    bot.makeconftest(
        "import pytest\n"
        "from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon\n"
        "from pytest_dstfuzz.perturb.lexicon.word_sources import KeyedVectorsNeighbours\n"
        "@pytest.fixture(scope='session')\n"
        "def dst_lexicon():\n"
        "    return load_lexicon().with_sources(neighbours=KeyedVectorsNeighbours('own.vec', 20))\n"
    )
    assert bot.runpytest_inprocess(*OPTIONS).ret == 0
    found = replacements(read_report(bot), "neighbour")
    assert found
    assert found <= {*common, "okapi"}


def test_one_turn_with_two_lexicons_is_two_results(bot: pytest.Pytester) -> None:
    test = "def test_state(dst_turn):\n    dst_turn.assert_unchanged()\n"
    for name in ("own", "shipped"):
        (bot.path / name).mkdir()
        (bot.path / name / f"test_{name}.py").write_text(test, encoding="utf-8")
    (bot.path / "own" / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    assert bot.runpytest_inprocess(*OPTIONS).ret == 0
    report = read_report(bot)
    assert len(report["turns"]) == 16
    assert load_lexicon().fingerprint in report["data"]["lexicon"].split()
    assert len(report["data"]["lexicon"].split()) == 2


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 3", "*dst_lexicon must return a lexicon, such as *, not int 3"),
        ("raise UserError('no word vectors at own.kv')", "no word vectors at own.kv"),
    ],
)
@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_a_lexicon_that_cannot_be_had_ends_the_session(
    bot: pytest.Pytester, body: str, message: str, workers: tuple[str, ...]
) -> None:
    bot.makeconftest(
        "import pytest\n"
        "from pytest_dstfuzz.errors import UserError\n"
        f"@pytest.fixture(scope='session')\ndef dst_lexicon():\n    {body}\n"
    )
    result = bot.runpytest_inprocess(*OPTIONS, *workers)
    assert result.ret == 4
    result.stdout.fnmatch_lines([message])
    result.stdout.no_fnmatch_line("*Traceback*")
    assert not (bot.path / "out.json").exists()
