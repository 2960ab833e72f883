"""A block of sentences about something else: where it goes, and which place is tried again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.perturb.edits import apply_edits, without
from pytest_dstfuzz.relations.checks import veto
from pytest_dstfuzz.relations.paraphrase import PlugIn
from pytest_dstfuzz.relations.relation import EarlierResult, Rewrite, TurnRelation

if TYPE_CHECKING:
    from conftest import SceneOf

USER = "A room in the north. Is it cheap?"
BOUND = USER.index("Is it")


def begun(scene_of: SceneOf, user: str = USER) -> TurnRelation:
    found = PlugIn().begin(scene_of(user))
    assert not isinstance(found, tuple | list)
    return found  # type: ignore[return-value]  # it is no iterable of rewrites


def place(rewrite: Rewrite | None) -> int:
    assert rewrite is not None
    return rewrite.edits[0].start


def test_each_place_is_tried_once(scene_of: SceneOf):
    found = [begun(scene_of).propose(number, 0, ()) for number in range(3)]
    assert [place(rewrite) for rewrite in found] == [0, BOUND, len(USER)]
    texts = [rewrite.seen.user for rewrite in found if rewrite]
    assert texts[0].endswith(". " + USER)
    assert texts[1].startswith(USER[:BOUND])
    assert texts[1].endswith(USER[BOUND:])
    assert texts[2].startswith(USER + " ")


def test_then_the_place_where_the_tracker_wavered_most(scene_of: SceneOf):
    search = begun(scene_of)
    found = [search.propose(number, 0, ()) for number in range(3)]
    impurities = [0.1, 0.4, 0.2]
    seen = [
        EarlierResult(rewrite, answered=True, impurity=impurity)
        for rewrite, impurity in zip(found, impurities, strict=True)
        if rewrite
    ]
    assert place(search.propose(3, 0, seen)) == BOUND
    seen[2] = seen[2]._replace(broken=True)
    assert place(search.propose(3, 0, seen)) == len(USER)
    seen[2] = seen[2]._replace(answered=False)
    assert place(search.propose(3, 0, seen)) == BOUND


@given(st.integers(0, 40), st.integers(0, 3))
def test_a_rewrite_depends_on_its_number_alone(scene_of: SceneOf, number: int, draw: int):
    scene = scene_of(USER)
    one = PlugIn().begin(scene).propose(number, draw, ())  # type: ignore[union-attr]  # as above
    other = begun(scene_of).propose(number, draw, ())
    assert one == other
    assert other is not None
    assert 1 <= len(other.edits) <= 3
    assert apply_edits(USER, other.edits) == other.seen.user
    for dropped in ([], *([index] for index in range(len(other.edits) - 1))):
        part = without(other.edits, dropped)
        assert veto(scene, apply_edits(USER, part), part) == ""


def test_an_open_end_is_closed_first(scene_of: SceneOf):
    found = begun(scene_of, "a room at 17:15").propose(1, 0, ())
    assert found is not None
    assert found.seen.user.startswith("a room at 17:15. ")


def test_who_says_nothing_gets_no_block(scene_of: SceneOf):
    assert PlugIn().begin(scene_of(" ")) == (PlugIn.reasons[0],)
