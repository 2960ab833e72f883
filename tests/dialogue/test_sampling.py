from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Dialogue, DialogueSet, Ontology, Turn
from pytest_dstfuzz.dialogue.sampling import domains_of, note_unlabelled, sample_set, sample_turns
from pytest_dstfuzz.errors import DataError, UserError


def dialogue(number: int, length: int, *slots: str) -> Dialogue:
    state = BeliefState(dict.fromkeys(slots, "x"))
    turns = (Turn(index, "", "u", state if slots else BeliefState()) for index in range(length))
    return Dialogue(f"d{number}", tuple(turns))


def dataset(*lengths: int) -> DialogueSet:
    return DialogueSet("s", "test", tuple(dialogue(i, n) for i, n in enumerate(lengths)))


def turns_in(sample: tuple[tuple[Dialogue, int], ...]) -> int:
    return sum(last + 1 for _, last in sample)


MIXED = DialogueSet(
    "mixed",
    "test",
    (
        dialogue(0, 2, "hotel-area"),
        dialogue(1, 3, "taxi-leaveat", "hotel-area"),
        dialogue(2, 1, "train-day"),
        dialogue(3, 1),
    ),
    Ontology({"attraction-area": ("east",)}),
)


def test_all_turns_in_the_order_of_the_data():
    data = dataset(2, 3, 1)
    assert sample_turns(data, None, 0) == tuple(zip(data.dialogues, (1, 2, 0), strict=True))


@settings(deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.integers(1, 90), st.integers(0, 9))
def test_exactly_the_turns_asked_for_in_whole_dialogues(lengths: list[int], count: int, seed: int):
    data = dataset(*lengths)
    sample = sample_turns(data, count, seed)
    assert turns_in(sample) == min(count, sum(lengths))
    ids = [int(found.id[1:]) for found, _ in sample]
    assert ids == sorted(set(ids))
    assert sum(last + 1 < len(found.turns) for found, last in sample) <= 1
    assert sample == sample_turns(data, count, seed)


def test_the_set_of_the_sampled_turns_has_no_others():
    data = dataset(2, 3, 1, 4)
    assert sample_set(data, None, 0) == data
    cut = sample_set(data, 4, 0)
    assert [(d.id, len(d.turns)) for d in cut.dialogues] == [
        (d.id, last + 1) for d, last in sample_turns(data, 4, 0)
    ]
    assert cut.turn_count() == 4
    assert (cut.name, cut.split, cut.ontology) == (data.name, data.split, data.ontology)


def test_a_larger_count_keeps_the_dialogues_of_a_smaller_one():
    data = dataset(*[3] * 40)
    small = {found.id for found, _ in sample_turns(data, 12, 5)}
    large = {found.id for found, _ in sample_turns(data, 50, 5)}
    assert small < large


def test_seeds_draw_differently():
    data = dataset(*[1] * 40)
    assert len({sample_turns(data, 5, seed) for seed in range(3)}) == 3


def test_the_same_dialogues_under_another_name_give_the_same_sample():
    data = dataset(*[2] * 40)
    copy = DialogueSet("copy_of_s", "val", data.dialogues)
    assert sample_turns(copy, 9, 0) == sample_turns(data, 9, 0)


def test_order_and_other_dialogues_leave_the_ranks_alone():
    data = dataset(*[1] * 40)
    drawn = [found for found, _ in sample_turns(data, 10, 0)]
    backwards = DialogueSet("s", "test", data.dialogues[::-1])
    assert [found for found, _ in sample_turns(backwards, 10, 0)] == drawn[::-1]
    others = tuple(found for found in data.dialogues if found not in drawn[:4])
    fewer = sample_turns(DialogueSet("s", "test", others), 6, 0)
    assert [found for found, _ in fewer] == drawn[4:]


def test_domains_keep_dialogues_that_touch_one_of_them():
    def ids(*domains: str) -> list[str]:
        return [found.id for found, _ in sample_turns(MIXED, None, 0, domains)]

    assert ids("hotel") == ["d0", "d1"]
    assert ids("taxi", "train") == ["d1", "d2"]
    assert len(ids()) == 4
    assert domains_of(MIXED.dialogues[1]) == {"taxi", "hotel"}


@pytest.mark.parametrize("count", [0, -3])
def test_count_below_one(count: int):
    with pytest.raises(UserError, match=f"must be at least 1 or 'all', got {count}"):
        sample_turns(MIXED, count, 0)


def test_unknown_domain():
    message = r"unknown domain 'hotels'. Did you mean 'hotel'.*\. These are the domains"
    with pytest.raises(UserError, match=message):
        sample_turns(MIXED, None, 0, ("hotels",))


def test_known_domain_without_dialogues():
    with pytest.raises(
        DataError, match=r"no dialogue of 'mixed' \(test\) has a label in the domain attraction"
    ):
        sample_turns(MIXED, None, 0, ("attraction",))


def test_slots_without_a_dash_are_of_no_domain():
    turns = (Turn(0, "", "a big one", BeliefState({"size": "big", "crust_kind": "thin"})),)
    plain = DialogueSet(
        "p", "test", (Dialogue("a", turns),), Ontology({"crust_kind": (), "size": ("big",)})
    )
    assert domains_of(plain.dialogues[0]) == frozenset()
    with pytest.raises(DataError, match=r"have no domain .*: crust_kind, size\. Leave"):
        sample_turns(plain, None, 0, ("size",))


def test_dialogues_without_labels_are_noted_if_domains_choose():
    plain = Dialogue("d", (Turn(0, "", "hi"),))
    mixed = replace(MIXED, dialogues=(*MIXED.dialogues, plain))
    told = f"1 of {len(mixed.dialogues)} dialogues have no labels"
    assert told in note_unlabelled(mixed, ("hotel",)).notes[-1]
    assert note_unlabelled(mixed, ()) is mixed
    assert note_unlabelled(MIXED, ("hotel",)) is MIXED


def test_domains_of_unlabelled_data():
    data = DialogueSet("own", "test", (Dialogue("d", (Turn(0, "", "hi"),)),))
    with pytest.raises(DataError, match="'own' have no labels, so they cannot be chosen by dom"):
        sample_turns(data, None, 0, ("hotel",))
