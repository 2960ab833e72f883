"""The user's own sources, on tiny corpora, vectors and models made here."""

from __future__ import annotations

import json
import pickle
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz.errors import MissingExtraError, UserError
from pytest_dstfuzz.lexicon import (
    InsertionSource,
    KeyedVectorsNeighbours,
    MaskedLanguageModelInsertions,
    NeighbourSource,
    SynonymSource,
    WordNetSynonyms,
    load_lexicon,
    wordnet_synonyms,
)


class Synset:
    def __init__(self, *names: str) -> None:
        self._names = names

    def lemma_names(self):
        return list(self._names)


class Reader:
    """Answers like NLTK's reader, which wants a whole corpus in its data folder."""

    senses = {  # noqa: RUF012 - a constant
        ("help", "v"): [Synset("help", "assist", "aid"), Synset("serve")],
        ("help", "n"): [Synset("aid", "Aid", "helping_hand")],
    }

    def get_version(self):
        return "3.0"

    def synsets(self, lemma: str, pos: str):
        return self.senses.get((lemma, pos), [])


def test_wordnet_gives_single_words_of_the_frequent_senses():
    source = WordNetSynonyms(Reader())
    assert isinstance(source, SynonymSource)
    assert source.synonyms("Help", "verb") == ("assist", "aid")
    assert source.synonyms("help") == ("aid", "assist")
    assert source.synonyms("help", "function") == ()
    assert WordNetSynonyms(Reader(), 2).synonyms("help", "verb") == ("assist", "aid", "serve")


def test_wordnet_names_the_download_when_the_corpus_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    data = pytest.importorskip("nltk.data")
    monkeypatch.setattr(data, "path", [str(tmp_path)])
    from nltk.corpus import wordnet  # noqa: PLC0415

    if "LazyCorpusLoader" not in type(wordnet).__name__:
        pytest.skip("another test has loaded WordNet already")
    with pytest.raises(UserError, match=r"nltk\.downloader wordnet"):
        wordnet_synonyms()


@pytest.fixture
def vectors():
    models = pytest.importorskip("gensim.models")
    made = models.KeyedVectors(vector_size=2)
    words = ["north", "south", "need", "require", "Far"]
    rows = [[1.0, 0.0], [0.99, 0.1], [0.0, 1.0], [0.1, 0.99], [-1.0, 0.0]]
    made.add_vectors(words, rows)
    return made


@pytest.mark.parametrize("name", ["vectors.kv", "vectors.txt", "vectors.bin", "vectors"])
def test_vectors_of_every_format(vectors: Any, tmp_path: Path, name: str):
    path = tmp_path / name
    if path.suffix == ".kv":
        vectors.save(str(path))
    else:
        vectors.save_word2vec_format(str(path), binary=path.suffix == ".bin")
    source = KeyedVectorsNeighbours(path, top=2, unpickle=path.suffix == ".kv")
    assert isinstance(source, NeighbourSource)
    assert [word for word, _ in source.neighbours("North")] == ["south", "require"]
    assert source.neighbours("unseen") == ()
    lexicon = load_lexicon().with_sources(neighbours=source)
    assert lexicon.neighbours("need") == source.neighbours("need")
    # Distribution calls north and south neighbours; the review does not.
    assert lexicon.neighbours_strict("north") == ()
    assert lexicon.neighbours_strict("need") == ("require",)


class Evil:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("name", ["evil.kv", "evil.bin", "evil.txt", "evil"])
@pytest.mark.parametrize("protocol", [0, 2, pickle.HIGHEST_PROTOCOL])
def test_no_pickle_is_read_without_being_asked(tmp_path: Path, name: str, protocol: int):
    pytest.importorskip("gensim")
    path, ran = tmp_path / name, tmp_path / "ran"
    path.write_bytes(pickle.dumps(Evil(ran), protocol))
    why = "a pickle.*save_word2vec_format.*unpickle=True" if protocol else "cannot read word"
    with pytest.raises(UserError, match=why):
        KeyedVectorsNeighbours(path)
    assert not ran.exists()


def test_vectors_that_are_none(tmp_path: Path):
    pytest.importorskip("gensim")
    with pytest.raises(UserError, match="does not exist: give word vectors"):
        KeyedVectorsNeighbours(tmp_path / "absent.kv")
    for name in ("broken.kv", "broken.txt"):
        path = tmp_path / name
        path.write_bytes(b"not vectors")
        with pytest.raises(UserError, match="cannot read word vectors"):
            KeyedVectorsNeighbours(path)


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory):
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("bert")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "please", "a", "taxi", "##s", "."]
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    tokenizer = transformers.BertTokenizer(str(folder / "vocab.txt"))
    tokenizer.save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=8,
    )
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    return folder


def test_no_pickle_and_no_code_of_a_language_model_is_read(
    bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    torch, ran = pytest.importorskip("torch"), tmp_path / "ran"
    pickled, coded = tmp_path / "pickled", tmp_path / "coded"
    for folder in (pickled, coded):
        shutil.copytree(bert, folder)
    (pickled / "model.safetensors").unlink()
    torch.save({"a": Evil(ran)}, pickled / "pytorch_model.bin")
    config = json.loads((coded / "config.json").read_text(encoding="utf-8"))
    config |= {"model_type": "own", "auto_map": {"AutoModelForMaskedLM": "own.Own"}}
    config["auto_map"]["AutoConfig"] = "own.Own"
    (coded / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (coded / "own.py").write_text(f"open({str(ran)!r}, 'w')\nclass Own: pass\n")
    # Whoever is asked whether the code may run says yes.
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    for folder in (pickled, coded):
        with pytest.raises(UserError, match="cannot load the masked language model"):
            MaskedLanguageModelInsertions(folder)
    assert not ran.exists()


def test_masked_language_model_proposes_whole_words(bert: Path):
    source = MaskedLanguageModelInsertions(bert)
    assert isinstance(source, InsertionSource)
    assert set(source.insertions("a", "")) == {"please", "taxi"}
    assert source.insertions("A", "") == source.insertions("a", "")
    assert source.name == MaskedLanguageModelInsertions(bert).name
    lexicon = load_lexicon().with_sources(insertions=source)
    assert lexicon.insertions_strict("a", "taxi") == ("please",)
    assert lexicon.fingerprint != load_lexicon().fingerprint


def test_masked_language_model_that_is_missing(tmp_path: Path):
    pytest.importorskip("transformers")
    with pytest.raises(UserError, match="cannot load the masked language model"):
        MaskedLanguageModelInsertions(tmp_path / "absent")


@pytest.mark.parametrize(
    ("module", "extra", "make"),
    [
        ("nltk.corpus", "lexicon", wordnet_synonyms),
        ("gensim.models", "lexicon", lambda: KeyedVectorsNeighbours("x.kv")),
        ("transformers", "models", lambda: MaskedLanguageModelInsertions("x")),
        ("torch", "models", lambda: MaskedLanguageModelInsertions("x")),
    ],
)
def test_an_absent_library_names_its_extra(
    monkeypatch: pytest.MonkeyPatch, module: str, extra: str, make: Callable[[], object]
):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=extra) as caught:
        make()
    assert caught.value.extra == extra
    assert module.partition(".")[0] in str(caught.value)


def test_no_source_is_the_same_lexicon():
    assert load_lexicon().with_sources() is load_lexicon()
    replaced = load_lexicon().with_sources(synonyms=WordNetSynonyms(Reader()))
    assert replaced.synonyms("help", "verb") == replaced.synonyms_all("help", "verb")
