"""Paraphrases of utterances that a text generation model writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from pytest_dstfuzz.errors import UserError, message_of, needs_extra
from pytest_dstfuzz.relations.sources import CandidateSource

if TYPE_CHECKING:
    from pytest_dstfuzz.relations.relation import Scene


#: Kinds of model, each with the form of its source name.
FORMS: Final = {"t5": "t5:MODEL", "marian": "marian:THERE,BACK"}
#: The prompt of T5 models that were trained to paraphrase.
_PREFIX: Final = "paraphrase: "
_BATCH: Final = 16
#: Candidates per utterance, and the width of the beam search.
_BEAMS: Final = 8
_MOST_TOKENS: Final = 128


def generative_source(text: str) -> CandidateSource:
    """Return the source of paraphrases for the text ``t5:MODEL`` or ``marian:THERE,BACK``.

    A T5 model paraphrases texts. Two Marian models translate them into another language and back.
    ``MODEL``, ``THERE`` and ``BACK`` are folders, or names in the local cache of transformers.

    Raises:
        UserError: the name has another form, or a model cannot be loaded.
        MissingExtraError: torch or transformers is not installed.
    """
    kind, _, given = text.partition(":")
    names = [name.strip() for name in given.split(",")]
    if kind not in FORMS or "" in names or len(names) != (2 if kind == "marian" else 1):
        raise UserError(f"the source {text!r} must be {' or '.join(FORMS.values())}")
    models = [TextWriter(name) for name in names]

    def words(scenes: Sequence[Scene]) -> Iterator[Sequence[str]]:
        for start in range(0, len(scenes), _BATCH):
            users = [scene.turn.user for scene in scenes[start : start + _BATCH]]
            if kind == "t5":
                yield from models[0].write([_PREFIX + user for user in users], _BEAMS)
            else:
                there = [found[0] if found else "" for found in models[0].write(users, 1)]
                yield from models[1].write(there, _BEAMS)

    licence = f"see the licence of {' and '.join(names)}, which wrote the texts"
    return CandidateSource(text, licence, words)


class TextWriter:
    """A model that writes texts, with its tokeniser."""

    def __init__(self, name: str) -> None:
        with needs_extra("a generative source", "simpletod", "torch", "transformers"):
            import torch  # noqa: F401, PLC0415 - extras; named when absent
            from transformers import AutoModelForSeq2SeqLM, AutoTokenizer  # noqa: PLC0415
        # Load from the local cache only, without pickles and without code from the model's folder.
        how: dict[str, bool] = {"local_files_only": True, "trust_remote_code": False}
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(name, **how)
            self._model: Any = AutoModelForSeq2SeqLM.from_pretrained(
                name, use_safetensors=True, **how
            ).eval()
        except (OSError, ValueError, KeyError, ImportError) as error:
            raise UserError(
                f"cannot load {name!r} as a text-to-text model: "
                f"{message_of(error).partition(chr(10))[0]} Give the folder of a saved model, or "
                "the name of one in the local cache of transformers."
            ) from error

    def write(self, texts: Sequence[str], beams: int) -> list[list[str]]:
        """Return the ``beams`` most likely texts for each text. An empty text gets no texts."""
        asked = [text for text in texts if self._tokenizer(text)["input_ids"]]
        if not asked:
            return [[] for _ in texts]
        batch = self._tokenizer(
            asked, return_tensors="pt", padding=True, truncation=True, max_length=_MOST_TOKENS
        )
        found = self._model.generate(
            input_ids=batch["input_ids"],
            attention_mask=batch["attention_mask"],
            num_beams=beams,
            num_return_sequences=beams,
            do_sample=False,
            max_new_tokens=_MOST_TOKENS,
        )
        written = self._tokenizer.batch_decode(found, skip_special_tokens=True)
        lines = [" ".join(text.split()) for text in written]
        of = {text: lines[n * beams :][:beams] for n, text in enumerate(asked)}
        return [of.get(text, []) for text in texts]
