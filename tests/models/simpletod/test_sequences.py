"""One sequence a dialogue is the same as one text a turn, and exchanges keep dialogues whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from trade_data import dialogues  # noqa: E402
from transformers import GPT2Config, GPT2LMHeadModel  # noqa: E402

from pytest_dstfuzz.models.simpletod.model import learn_subwords  # noqa: E402
from pytest_dstfuzz.models.simpletod.texts import (  # noqa: E402
    OPENING,
    TURNOVER,
    belief_words,
    context_words,
)
from pytest_dstfuzz.models.simpletod.training import (  # noqa: E402  # noqa: E402
    IGNORED,
    DialogueWords,
    Encoder,
    SlotValueAugmenter,
    TreeSequence,
    batches,
    collate,
    split_dialogue,
)

TOKENISER = learn_subwords(
    (
        " ".join(words)
        for d in dialogues()
        for turn in split_dialogue(d).turns
        for words in turn[:2]
    ),
    400,
)
ENCODER = Encoder(TOKENISER, 256)


def texts_of_turns(number: int) -> list[tuple[list[int], int]]:
    """Return the tokens of each turn's own text, and where its belief begins."""
    dialogue = dialogues()[number]
    made = []
    for turn in dialogue.turns:
        words = [*OPENING, *context_words(dialogue.context(turn.index), common=True), *TURNOVER]
        prompt = TOKENISER.encode(" ".join(words), add_special_tokens=False)
        belief = belief_words(turn.state or {})
        whole = TOKENISER.encode(" ".join((*words, *belief)), add_special_tokens=False)
        assert whole[: len(prompt)] == prompt
        made.append((whole, len(prompt)))
    return made


def test_one_sequence_a_dialogue_computes_what_one_text_a_turn_does() -> None:
    sizes = GPT2Config(
        vocab_size=len(TOKENISER),
        n_positions=256,
        n_embd=32,
        n_layer=2,
        n_head=2,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = GPT2LMHeadModel(sizes).eval()
    numbers = (0, 3, 7)
    sequences = [ENCODER.encode(split_dialogue(dialogues()[number])) for number in numbers]
    batch = collate(sequences)
    hidden = torch.zeros(batch.mask.shape).masked_fill_(~batch.mask, torch.finfo().min)
    with torch.inference_mode():
        together = model(
            input_ids=batch.tokens, position_ids=batch.positions, attention_mask=hidden
        ).logits
        for row, number in enumerate(numbers):
            for turn, (tokens, begin) in enumerate(texts_of_turns(number), start=1):
                alone = model(torch.tensor([tokens])).logits[0]
                places = (batch.branches[row] == turn).nonzero()[:, 0]
                # The belief's own tokens, its two marks included.
                expected = alone[begin - len(TURNOVER) :]
                assert torch.allclose(together[row, places], expected, atol=1e-5)
                wanted = batch.targets[row, places]
                assert wanted[wanted != IGNORED].tolist() == tokens[begin:]


def test_a_turn_that_is_too_long_is_left_out() -> None:
    whole = ENCODER.encode(split_dialogue(dialogues()[0]))
    first = int((whole.branches == 1).sum() + whole.reach[whole.branches == 1][0])
    cut = Encoder(TOKENISER, first).encode(split_dialogue(dialogues()[0]))
    assert set(whole.branches) == {0, 1, 2}
    assert set(cut.branches) == {0, 1}
    assert cut.positions.max() < first


@given(st.lists(st.integers(1, 60), min_size=1, max_size=40), st.integers(50, 200), st.booleans())
def test_batches_hold_every_sequence_once(
    lengths: list[int],
    tokens: int,
    shuffled: bool,
) -> None:
    sequences = [TreeSequence(*[np.zeros(length, np.int64)] * 5) for length in lengths]
    rng = np.random.default_rng(0) if shuffled else None
    made = batches(sequences, tokens, rng)
    assert sorted(number for group in made for number in group) == list(range(len(lengths)))
    for group in made:
        longest = max(lengths[number] for number in group)
        assert len(group) == 1 or longest * len(group) <= tokens


@given(st.integers(0, 9), st.integers(0, 2**32 - 1))
def test_exchanged_values_are_said_as_the_state_has_them(number: int, seed: int) -> None:
    exchange = SlotValueAugmenter([split_dialogue(dialogue) for dialogue in dialogues()], 1.0)
    before = split_dialogue(dialogues()[number])
    after = exchange(before, np.random.default_rng(seed))
    assert len(after.turns) == len(before.turns)
    for (_, user, state), (_, changed, new) in zip(before.turns, after.turns, strict=True):
        assert state.keys() == new.keys()
        for slot, value in state.items():
            said = f" {' '.join(value)} " in f" {' '.join(user)} "
            assert (f" {' '.join(new[slot])} " in f" {' '.join(changed)} ") or not said


def test_values_are_exchanged_everywhere_and_from_the_same_slot() -> None:
    other = DialogueWords(((("",), ("x",), {"hotel-area": ("south",), "train-area": ("ely",)}),))
    first = DialogueWords(
        (
            ((), ("in", "the", "north"), {"hotel-area": ("north",)}),
            (("north", "it", "is"), ("yes",), {"hotel-area": ("north",)}),
        )
    )
    exchange = SlotValueAugmenter([other], 1.0)
    results = {exchange(first, np.random.default_rng(seed)) == first for seed in range(20)}
    assert results == {True, False}
    changed = next(
        result
        for seed in range(20)
        if (result := exchange(first, np.random.default_rng(seed))) != first
    )
    assert changed.turns[0][1] == ("in", "the", "south")
    assert changed.turns[1] == (("south", "it", "is"), ("yes",), {"hotel-area": ("south",)})


def test_no_exchange_without_a_share() -> None:
    exchange = SlotValueAugmenter([split_dialogue(dialogue) for dialogue in dialogues()], 0.0)
    first = split_dialogue(dialogues()[0])
    assert exchange(first, np.random.default_rng(0)) == first
