"""The agent as a search: a function of its arguments, and one that learns from attempts."""

from __future__ import annotations

from itertools import pairwise

from turns import Tasks

from pytest_dstfuzz.search.protocol import Feedback
from pytest_dstfuzz.search.registry import search_by_name


def test_what_it_proposes_does_not_depend_on_what_was_asked_before(tasks: Tasks) -> None:
    search = search_by_name("agent", seed=0, k=3)
    for task in tasks(search.order, count=2):
        turn = search.turn(task)
        seen: list[Feedback] = []
        for number in range(4):
            proposal = turn.propose(number, 0, seen)
            seen.append(
                Feedback(proposal, answered=proposal.variant.valid, impurity=0.001 * number)
            )
        for number in (3, 1, 2, 0):
            assert turn.propose(number, 0, seen[:number]) == seen[number].proposal
            assert search.turn(task).propose(number, 0, seen[:number]) == seen[number].proposal


def test_later_attempts_differ_from_the_first(tasks: Tasks) -> None:
    search = search_by_name("agent", seed=0, k=3)
    for task in tasks(search.order, count=3):
        turn = search.turn(task)
        seen: list[Feedback] = []
        for number in range(4):
            proposal = turn.propose(number, 0, seen)
            seen.append(Feedback(proposal, answered=proposal.variant.valid))
        actions = [item.proposal.action for item in seen]
        assert all(earlier != later for earlier, later in pairwise(actions)), task.source.text


def test_variants_are_valid_nearly_always(tasks: Tasks) -> None:
    search = search_by_name("agent", seed=0, k=3)
    variants = [search.turn(task).propose(0, 0, []).variant for task in tasks(search.order, 12)]
    refused = [v for v in variants if v.status not in ("valid", "vacuous")]
    assert len(variants) > 50
    assert not refused, refused[:3]
