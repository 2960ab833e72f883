"""What a model writes does not depend on what was read, guessed or written before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from pytest_dstfuzz.models.simpletod.decoder import (  # noqa: E402  # noqa: E402  # noqa: E402
    CachedPrefix,
    Generation,
    GreedyDecoder,
    PrefixCache,
    SpeculativeDecoder,
    TokenDraft,
)

END, USER, SYSTEM, BELIEF = 0, 1, 2, 3
WORDS = st.integers(4, 11)
LONGEST = 14


def small_model(**settings: object) -> Any:
    """Return a model of random weights, in double precision: rounding decides no tie."""
    sizes = {"vocab_size": 12, "n_positions": 128, "n_embd": 16, "n_layer": 2, "n_head": 2}
    config = transformers.GPT2Config(**{**sizes, **settings}, initializer_range=0.4)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = transformers.GPT2LMHeadModel(config).double()
    model.train(mode=False)
    model.config.pad_token_id = None
    return model


MODEL = small_model()
GREEDY = GreedyDecoder(MODEL, end=END, longest=LONGEST, batch_size=5)


def decoder(
    prefixes: PrefixCache | None = None,
    batch_size: int = 3,
    model: Any = MODEL,
    longest: int = LONGEST,
) -> SpeculativeDecoder:
    return SpeculativeDecoder(
        model,
        end=END,
        user=USER,
        marks=(USER, SYSTEM, BELIEF),
        longest=longest,
        batch_size=batch_size,
        prefixes=prefixes,
    )


@st.composite
def prompts(draw: st.DrawFn) -> list[list[int]]:
    """Dialogues at each of their turns, and variants of their last utterances."""
    found: list[list[int]] = []
    for _ in range(draw(st.integers(1, 3))):
        said: list[int] = []
        for _ in range(draw(st.integers(1, 4))):
            said += [SYSTEM, *draw(st.lists(WORDS, max_size=4)), USER]
            variants = draw(st.lists(st.lists(WORDS, max_size=6), min_size=1, max_size=4))
            found += [[*said, *variant, BELIEF] for variant in variants]
            said += variants[0]
    return list(draw(st.permutations(found)))


def assert_equal(found: Sequence[Generation], expected: Sequence[Generation]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert (one.tokens, one.ended) == (other.tokens, other.ended)
        # The second is computed in single precision.
        assert one.impurities == pytest.approx(other.impurities, abs=1e-5)


@pytest.mark.nightly
@settings(max_examples=40, deadline=None)
@given(prompts(), st.integers(1, 8))
def test_it_writes_what_transformers_generates(texts: list[list[int]], batch_size: int) -> None:
    remembering = decoder(batch_size=batch_size)
    expected = GREEDY.generate(texts)
    assert_equal(remembering.generate(texts), expected)
    # Now all of it was read and written before.
    assert_equal(remembering.generate(texts[::-1])[::-1], expected)


@pytest.mark.nightly
@settings(max_examples=20, deadline=None)
@given(prompts())
def test_it_may_forget(texts: list[list[int]]) -> None:
    """With room for a beginning or two, those of other texts are forgotten all the time."""
    forgetful, expected = decoder(PrefixCache(capacity=10_000)), GREEDY.generate(texts)
    for _ in range(2):
        assert_equal(forgetful.generate(texts), expected)


FEW = [[SYSTEM, one, USER, 4, other, BELIEF] for one in (5, 6) for other in range(5, 12)]


@pytest.mark.parametrize(
    "settings",
    [
        {"attn_implementation": "eager"},
        {"add_cross_attention": True},
        {"n_inner": 24, "scale_attn_by_inverse_layer_idx": True, "use_cache": False},
        {"tie_word_embeddings": False, "activation_function": "gelu_pytorch_tanh"},
    ],
    ids=str,
)
def test_models_of_other_settings_are_read_as_they_are(settings: dict[str, Any]) -> None:
    model = small_model(**settings)
    expected = GreedyDecoder(model, end=END, longest=LONGEST, batch_size=5).generate(FEW)
    remembering = decoder(model=model)
    for _ in range(2):
        assert_equal(remembering.generate(FEW), expected)


def test_long_texts_are_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than there is room for at first, and more than is read together."""
    monkeypatch.setattr("pytest_dstfuzz.models.simpletod.decoder._TOKENS", 100)
    model = small_model(n_positions=400)
    texts = [[SYSTEM, *[5 + n % 6] * 120, USER, *range(4, 5 + n), BELIEF] for n in range(6)]
    expected = GreedyDecoder(model, end=END, longest=90, batch_size=6).generate(texts)
    assert max(len(written.tokens) for written in expected) > 70
    remembering = decoder(batch_size=6, model=model, longest=90)
    for _ in range(2):
        assert_equal(remembering.generate(texts), expected)


def test_what_a_checkpoint_wants_beside_it_is_not_greedy() -> None:
    model = small_model()
    model.generation_config.repetition_penalty = 3.0
    found = GreedyDecoder(model, end=END, longest=LONGEST, batch_size=5).generate(FEW)
    assert_equal(found, GREEDY.generate(FEW))


def test_nothing_is_learnt_that_was_not_written() -> None:
    prefixes = PrefixCache()
    remembering = decoder(prefixes)
    written: set[tuple[int, ...]] = set()
    for _ in range(3):
        written |= {(*found.tokens, END)[:LONGEST] for found in remembering.generate(FEW)}
    for one in (5, 6):
        prefix = prefixes.get((SYSTEM, one))
        assert prefix is not None
        assert len(prefix.answers) == len(FEW) // 2
        assert {answer for _, answer in prefix.answers} <= written


def test_there_is_nothing_to_continue() -> None:
    assert decoder().generate([]) == []
    with pytest.raises(ValueError, match="prompt is empty"):
        decoder().generate([[5], []])


def test_some_of_those_texts_end_and_others_do_not() -> None:
    """Otherwise the tests above would not see half of the decoder."""
    texts = [[SYSTEM, USER, one, other, BELIEF] for one in range(4, 12) for other in range(4, 12)]
    assert len({written.ended for written in GREEDY.generate(texts)}) == 2
    assert len({written.tokens for written in GREEDY.generate(texts)}) > 5


def test_a_text_without_an_utterance_is_continued() -> None:
    assert_equal(decoder().generate([[5, 6, BELIEF]]), GREEDY.generate([[5, 6, BELIEF]]))


def test_what_was_read_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    forward = MODEL.transformer.forward

    def counted(tokens: Any, **rest: object) -> object:
        sizes.append(tokens.numel())
        return forward(tokens, **rest)

    text = [SYSTEM, *[5] * 40, USER, 6, BELIEF]
    remembering = decoder()
    (written,) = remembering.generate([text])
    monkeypatch.setattr(MODEL.transformer, "forward", counted)
    remembering.generate([[*text[:-2], 7, BELIEF]])
    assert sum(sizes) <= 2 + 4 * (len(written.tokens) + 1)
    del sizes[:]
    remembering.generate([text])
    # The mark, the word, the mark, and all that was written, confirmed at once.
    assert sizes == [3 + min(len(written.tokens) + written.ended, LONGEST - 1)]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ([1, 2, 9], [4, 5, 6, 7]),  # one for another
        ([1, 2, 4], [5, 6, 7]),  # one left out
        ([1, 2, 5], [6, 7]),  # two left out
        ([1, 2, 3, 4, 5, 6, 7, 9], []),  # more than there is
    ],
)
def test_a_draft_finds_its_place_again(written: list[int], expected: list[int]) -> None:
    draft = TokenDraft([1, 2, 3, 4, 5, 6, 7])
    assert draft.guess() == [1, 2, 3, 4, 5, 6, 7]
    draft.learn(written, len(written) - 1)
    assert draft.guess() == expected


def test_a_draft_finds_its_place_after_an_insertion() -> None:
    draft = TokenDraft([1, 2, 3, 4, 5])
    draft.learn([1, 9], 1)
    draft.learn([1, 9, 2], 0)
    assert draft.guess()[:1] == [3]


@given(st.lists(WORDS, max_size=40), st.data())
def test_a_draft_guesses_parts_of_its_reference(reference: list[int], data: st.DataObject) -> None:
    draft, written = TokenDraft(reference), []
    assert draft.guess() == reference
    for _ in range(data.draw(st.integers(1, 6))):
        guess = draft.guess()
        confirmed = data.draw(st.integers(0, len(guess)))
        written += [*guess[:confirmed], data.draw(WORDS)]
        draft.learn(written, confirmed)
        after = draft.guess()
        assert len(after) <= min(12, max(1, 2 * confirmed))
        assert any(reference[at : at + len(after)] == after for at in range(len(reference) + 1))


def test_the_answer_to_the_most_similar_utterance_is_taken() -> None:
    prefix = CachedPrefix(torch.zeros(1, 2, 1, 3, 4))
    assert prefix.answer_like([5]) == ()
    prefix.learn([4, 5, 6], (7,))
    prefix.learn([8, 9], (10,))
    assert prefix.answer_like([5, 6, 11]) == (7,)
    assert prefix.answer_like([9]) == (10,)


def test_what_was_used_longest_ago_is_forgotten() -> None:
    one = CachedPrefix(torch.zeros(1, 2, 1, 3, 4))
    kept = PrefixCache(capacity=2 * one.bytes)
    for number in (1, 2):
        kept.keep((number,), CachedPrefix(torch.zeros(1, 2, 1, 3, 4)))
    kept.get((1,))
    kept.keep((3,), one)
    assert [(number,) in kept for number in (1, 2, 3)] == [True, False, True]
