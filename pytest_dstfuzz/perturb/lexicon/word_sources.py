"""Word sources that use third-party libraries, for use in place of compiled tables.

Each source has an interface of :mod:`pytest_dstfuzz.perturb.lexicon.lexicon`. Pass it to
:meth:`Lexicon.with_sources`. The libraries are extras. They are imported when a source is created.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

from pytest_dstfuzz.errors import UserError, needs_extra
from pytest_dstfuzz.files import refuse_special

_WORDNET_POS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
_CACHE = 65536


class WordNetSynonyms:
    """Synonyms from NLTK's WordNet reader. Create one with :func:`wordnet_synonyms`.

    Args:
        reader: an ``nltk.corpus.reader.WordNetCorpusReader``.
        max_senses: number of senses to use for each part of speech, most frequent first.
    """

    def __init__(self, reader: Any, max_senses: int = 1) -> None:
        self._reader = reader
        self._max_senses = max_senses
        self.name = f"wordnet:{reader.get_version()}:{max_senses}"

    def synonyms(self, word: str, pos: str | None = None) -> tuple[str, ...]:
        """Return single-word synonyms in the frequent senses, in WordNet's order."""
        lemma = word.lower()
        if pos is None:
            parts = list(_WORDNET_POS.values())
        elif pos in _WORDNET_POS:
            parts = [_WORDNET_POS[pos]]
        else:
            return ()
        found: dict[str, None] = {}
        for part in parts:
            for synset in self._reader.synsets(lemma, part)[: self._max_senses]:
                for name in synset.lemma_names():
                    # Capitals mark names. Underscores mark phrases.
                    if name.isalpha() and name.islower() and name != lemma:
                        found[name] = None
        return tuple(found)


def wordnet_synonyms(max_senses: int = 1) -> WordNetSynonyms:
    """Return the version of WordNet in NLTK's data folder.

    Raises:
        MissingExtraError: If nltk is not installed.
        UserError: If the corpus is not found.
    """
    with needs_extra("synonyms from NLTK's WordNet", "lexicon", "nltk"):
        from nltk.corpus import wordnet  # noqa: PLC0415 - an extra, imported where used
    try:
        wordnet.ensure_loaded()
    except (LookupError, OSError, ValueError) as error:
        raise UserError(
            "NLTK's WordNet corpus cannot be read: download it with "
            "`python -m nltk.downloader wordnet`, or add its folder to NLTK_DATA"
        ) from error
    return WordNetSynonyms(wordnet, max_senses)


class KeyedVectorsNeighbours:
    """Neighbours in word vectors stored in a word2vec format.

    Note that ``KeyedVectors.save`` writes a pickle, and reading a pickle runs the code in it.

    Args:
        path: a file in word2vec's binary (``.bin``) or text format (any other name), as written
            by ``KeyedVectors.save_word2vec_format``.
        top: number of neighbours to return.
        unpickle: also read files of ``KeyedVectors.save``. Code in such a file runs with your
            rights, so use it only for your own files, and files of people whom you trust.

    Raises:
        MissingExtraError: If gensim is not installed.
        UserError: If the file is missing, has no vectors, or is a pickle and ``unpickle`` is
            false.
    """

    def __init__(self, path: str | Path, top: int = 8, *, unpickle: bool = False) -> None:
        with needs_extra("embedding neighbours", "lexicon", "gensim"):
            from gensim.models import KeyedVectors  # noqa: PLC0415 - an extra
        file = Path(path)
        if not file.is_file():
            raise UserError(f"{file} does not exist: give word vectors in word2vec's format")
        pickled = _is_pickle(file)
        if pickled and not unpickle:
            raise UserError(
                f"{file} is a pickle, as KeyedVectors.save writes it. It is not read, because "
                "reading a pickle runs the code in it. Save the vectors as word2vec "
                "(vectors.save_word2vec_format('vectors.bin', binary=True)), or give unpickle=True "
                "if you trust the author of the file"
            )
        try:
            if pickled:
                vectors = KeyedVectors.load(str(file))
            else:
                vectors = KeyedVectors.load_word2vec_format(file, binary=".bin" in file.suffixes)
        except Exception as error:  # unpickling foreign bytes may raise anything
            raise UserError(f"gensim cannot read word vectors from {file}: {error}") from error
        if not isinstance(vectors, KeyedVectors):
            vectors = getattr(vectors, "wv", None)  # a whole Word2Vec model was saved
        if not isinstance(vectors, KeyedVectors):
            raise UserError(f"{file} was saved by gensim, but has no KeyedVectors")
        self._vectors: Any = vectors
        self._top = top
        self.name = f"keyed-vectors:{_digest(file)}:{top}"
        self._cached = lru_cache(maxsize=_CACHE)(self._neighbours)

    def neighbours(self, word: str) -> tuple[tuple[str, float], ...]:
        """Return the nearest words, lower-cased, with their cosine similarity."""
        return self._cached(word.lower())

    def _neighbours(self, word: str) -> tuple[tuple[str, float], ...]:
        if word not in self._vectors.key_to_index:
            return ()
        near: dict[str, float] = {}
        for other, cosine in self._vectors.most_similar(word, topn=self._top):
            if other.lower() != word:
                near.setdefault(other.lower(), round(float(cosine), 4))
        return tuple(sorted(near.items(), key=lambda pair: (-pair[1], pair[0])))


class MaskedLanguageModelInsertions:
    """Words that any Hugging Face masked language model proposes between two words.

    Args:
        model: a folder saved by ``save_pretrained``, or the name of a model in the local cache.
            The weights must be safetensors. Code that comes with the model is not run.
        top: number of words to return.
        local_files_only: only look in the local cache. ``False`` lets transformers download the
            model.

    Raises:
        MissingExtraError: If torch or transformers is not installed.
        UserError: If the model is missing or has no mask token.
    """

    def __init__(self, model: str | Path, top: int = 8, *, local_files_only: bool = True) -> None:
        with needs_extra("insertions from a language model", "models", "torch", "transformers"):
            import torch  # noqa: F401, PLC0415 - extras; named when absent
            from transformers import AutoModelForMaskedLM, AutoTokenizer  # noqa: PLC0415
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(
                str(model), local_files_only=local_files_only, trust_remote_code=False
            )
            # Never load pickles or run code that comes with the model.
            self._model: Any = AutoModelForMaskedLM.from_pretrained(
                str(model),
                local_files_only=local_files_only,
                use_safetensors=True,
                trust_remote_code=False,
            ).eval()
        except (OSError, ValueError, KeyError, ImportError) as error:
            raise UserError(
                f"cannot load the masked language model {str(model)!r}: {_first_line(error)} "
                "Give the folder of a saved model, or the name of one in the local cache."
            ) from error
        if self._tokenizer.mask_token is None:
            raise UserError(f"{str(model)!r} is not a masked language model: it has no mask token")
        self._top = top
        self.name = f"masked-lm:{_state_digest(self._model)}:{top}"
        self._cached = lru_cache(maxsize=_CACHE)(self._insertions)

    def insertions(self, left: str, right: str) -> tuple[str, ...]:
        """Return whole words that the model proposes between two words, likeliest first."""
        return self._cached(left.lower(), right.lower())

    def _insertions(self, left: str, right: str) -> tuple[str, ...]:
        import torch  # noqa: PLC0415 - an extra, imported where used

        text = " ".join(filter(None, [left, self._tokenizer.mask_token, right]))
        encoded = self._tokenizer(text, return_tensors="pt")
        masks = (encoded["input_ids"][0] == self._tokenizer.mask_token_id).nonzero()
        with torch.inference_mode():
            scores = self._model(**encoded).logits[0, int(masks[0])]
        # Ask for more words than needed, because word pieces and punctuation are discarded.
        best = scores.topk(min(len(scores), 8 * self._top + 64))
        ranked = sorted(
            zip(best.values.tolist(), best.indices.tolist(), strict=True),
            key=lambda pair: (-pair[0], pair[1]),
        )
        special = set(self._tokenizer.all_special_ids)
        found: dict[str, None] = {}
        for _, number in ranked:
            word = self._word(number) if number not in special else None
            if word and word not in {left, right}:
                found[word] = None
        return tuple(found)[: self._top]

    def _word(self, number: int) -> str | None:
        """Return the token as a word, or ``None`` if it is a word piece or punctuation."""
        token: str = self._tokenizer.convert_ids_to_tokens(number)
        # Byte-level and sentence-piece vocabularies mark tokens that start a word. WordPiece marks
        # tokens that continue a word.
        for mark in ("\u0120", "\u2581"):
            if token.startswith(mark):
                token = token[1:]
        word = token.lower()
        return word if word.isalpha() else None


def _is_pickle(path: Path) -> bool:
    """Return whether a file starts like a pickle of protocol 2 or later, as gensim writes."""
    refuse_special(path)
    with path.open("rb") as file:
        return file.read(1) == b"\x80"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _state_digest(model: Any) -> str:
    """Return a digest of the weights, so that renaming a model does not change the source."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().float().numpy().tobytes())
    return digest.hexdigest()[:16]


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
