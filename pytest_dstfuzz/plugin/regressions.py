"""The tests of remembered violations: one item each, as if they were in a file of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_dstfuzz.plugin.selection import NODE

if TYPE_CHECKING:
    from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
    from pytest_dstfuzz.plugin.memory import DstRegression, RegressionCorpus

_MEMORY: pytest.StashKey[RegressionCorpus] = pytest.StashKey()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one item of each regression, in the order of their ids."""
    corpus = metafunc.config.stash[_MEMORY].corpus
    metafunc.parametrize("dst_regression", corpus.values(), ids=list(corpus), indirect=True)


@pytest.fixture
def dst_regression(
    request: pytest.FixtureRequest,
    dst_model: object,
    dst_search: object,  # noqa: ARG001 - by these fixtures it is known that tests share a tracker
    dst_relation: object,
    dst_lexicon: Lexicon,  # noqa: ARG001 - likewise
) -> DstRegression:
    """A remembered violation, asked for again."""
    return request.config.stash[_MEMORY].replay(request, dst_model, dst_relation)


def regression(dst_regression: DstRegression) -> None:
    """What was found to break has been mended."""
    dst_regression.assert_fixed()


class _Module(pytest.Module):
    """This module as a collector."""

    def funcnamefilter(self, name: str) -> bool:
        """Take the one test of this module."""
        return name == regression.__name__

    def classnamefilter(self, name: str) -> bool:  # noqa: ARG002  # there is no test class
        """Take no class."""
        return False


def regression_items(session: pytest.Session, memory: RegressionCorpus) -> dict[str, pytest.Item]:
    """Return the test of each regression by its id."""
    if not memory.corpus:
        return {}
    session.config.stash[_MEMORY] = memory
    module = _Module.from_parent(session, path=Path(__file__), name=NODE, nodeid=NODE)
    items: Iterator[pytest.Item] = session.genitems(module)
    return dict(zip(memory.corpus, items, strict=True))
