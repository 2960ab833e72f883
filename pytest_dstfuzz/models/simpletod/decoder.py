"""Greedy generation with a GPT-2 that reads shared beginnings once and guesses what it will write.

It writes what `generator.Generator` writes, but for ties that rounding decides. What is saved is
what tests of a tracker are full of: hundreds of texts that begin alike, with answers alike.

A variant of a turn mostly gets the belief of the clean turn, and a turn keeps most of the belief
of the turn before. A model reads a guess of many tokens as quickly as it writes one, and what it
confirms is what it would have written (speculative decoding, arXiv 2211.17192; that a guess
may be copied from a text, arXiv 2304.04487).
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from transformers import GPT2LMHeadModel

from pytest_dstfuzz.models.simpletod.greedy import Generation, generation_of
from pytest_dstfuzz.models.simpletod.kv_cache import CachedPrefix, KVBatch, PrefixCache

#: Tokens of a guess that is not the first: rows that are read together wait for the longest.
_LONGEST_GUESS = 12
#: Tokens before a place that are compared to find it in another text.
_LONGEST_MATCH = 3


class TokenDraft:
    """Guesses one row of tokens from a reference that is probably much like it; it may be empty."""

    def __init__(self, reference: Sequence[int]) -> None:
        self._reference = list(reference)
        #: Place in the reference of the token that is to be written next.
        self._place = 0
        self._length = len(self._reference)

    def guess(self) -> list[int]:
        """Return what is probably written next; it may be nothing."""
        return self._reference[self._place : self._place + self._length]

    def learn(self, written: Sequence[int], confirmed: int) -> None:
        """Go on after a guess, of which so many tokens were right.

        The last one of all that is ``written`` was not guessed.
        """
        # Where one guess went wrong, a long one is probably read in vain.
        self._length = min(max(1, 2 * confirmed), _LONGEST_GUESS)
        self._place = self._find(written, self._place + confirmed)

    def _find(self, written: Sequence[int], place: int) -> int:
        """Return where the reference goes on after the end of ``written``.

        ``place`` is that of the token that was written instead of the guessed one. The longest
        match counts, then the nearest; without any, one token stands for another.
        """
        for size in range(min(_LONGEST_MATCH, len(written)), 0, -1):
            end = list(written[-size:])
            starts = range(len(self._reference) - size + 1)
            found = [at + size for at in starts if self._reference[at : at + size] == end]
            if found:
                return min(found, key=lambda after: (abs(after - place - 1), after))
        return place + 1


#: Tokens that a processor reads together at most: what more of them need leaves its caches.
_TOKENS = 1500


@dataclass
class _Text:
    """A text that is being continued."""

    prompt: list[int]
    #: Where the user utterances begin and end, each with its mark; at least one.
    users: list[tuple[int, int]]
    draft: TokenDraft = field(default_factory=lambda: TokenDraft(()))
    guessed: list[int] = field(default_factory=list)
    read: int = 0  #: How many tokens were read.
    #: Keys and values of those, see `CachedPrefix`; ``None`` where there are none, or no longer.
    states: Tensor | None = None
    tokens: list[int] = field(default_factory=list)
    impurities: list[float] = field(default_factory=list)

    @property
    def key(self) -> tuple[int, ...]:
        """All before its last user utterance."""
        return tuple(self.prompt[: self.users[-1][0]])

    @property
    def said(self) -> tuple[int, ...]:
        """All up to its last user utterance, that included."""
        return tuple(self.prompt[: self.users[-1][1]])

    @property
    def said_before(self) -> tuple[int, ...] | None:
        """What the text of the turn before says; ``None`` at the first turn."""
        return tuple(self.prompt[: self.users[-2][1]]) if len(self.users) > 1 else None

    @property
    def utterance(self) -> list[int]:
        """The last user utterance."""
        start, end = self.users[-1]
        return self.prompt[start:end]

    @property
    def pending(self) -> list[int]:
        """Tokens that are to be read next, the guess left out."""
        return (self.prompt + self.tokens)[self.read :]

    @property
    def width(self) -> int:
        """How many tokens are read next, the guess included."""
        return len(self.pending) + len(self.guessed)

    def take(self, tokens: Sequence[int], impurities: Sequence[float], end: int) -> None:
        """Add what was written, as far as the closing token; a right guess goes on after it."""
        size = tokens.index(end) + 1 if end in tokens else len(tokens)
        self.tokens += tokens[:size]
        self.impurities += impurities[:size]


class SpeculativeDecoder:
    """Continues texts by ``longest`` tokens at most, up to the token ``end``.

    The weights of the model must not change from then on. ``user`` is the token before a user
    utterance, one of the ``marks`` that end an utterance.
    """

    def __init__(
        self,
        model: GPT2LMHeadModel,
        *,
        end: int,
        user: int,
        marks: Collection[int],
        longest: int,
        batch_size: int,
        prefixes: PrefixCache | None = None,
    ) -> None:
        self._model = model
        self._end = end
        self._user = user
        self._marks = frozenset(marks)
        self._longest = longest
        self._batch_size = batch_size
        self._tokens = _TOKENS if model.device.type == "cpu" else sys.maxsize
        self._prefixes = PrefixCache() if prefixes is None else prefixes

    def generate(self, prompts: Sequence[list[int]]) -> list[Generation]:
        """Continue each prompt, the likeliest token each time.

        A prompt has at least one token, and ``longest`` more have a position.
        """
        if not all(prompts):
            raise ValueError("there is nothing to continue in an empty prompt")
        texts = [_Text(prompt, self._users(prompt)) for prompt in prompts]
        waiting = texts
        with torch.inference_mode():
            while waiting:
                ready, waiting = self._ready(waiting)
                for text in ready:
                    self._prepare(text)
                # Texts of similar length need little padding.
                ready.sort(key=lambda text: (text.width, text.prompt))
                for start in range(0, len(ready), self._batch_size):
                    self._generate(ready[start : start + self._batch_size])
        return [generation_of(text.tokens, text.impurities, self._end) for text in texts]

    def _users(self, prompt: Sequence[int]) -> list[tuple[int, int]]:
        marks = [(at, token) for at, token in enumerate(prompt) if token in self._marks]
        ends = [at for at, _ in marks[1:]] + [len(prompt)]
        found = [
            (at, end) for (at, token), end in zip(marks, ends, strict=True) if token == self._user
        ]
        return found or [(0, len(prompt))]

    def _ready(self, texts: Sequence[_Text]) -> tuple[list[_Text], list[_Text]]:
        """Return the texts that can be written now, and those that will find more later.

        Of texts that begin alike the first goes ahead, and texts of the turn before go first.
        """
        said = {text.said for text in texts}
        ready: list[_Text] = []
        later: list[_Text] = []
        ahead: set[tuple[int, ...]] = set()
        for text in texts:
            key = text.key
            if key not in self._prefixes and (key in ahead or text.said_before in said):
                later.append(text)
            else:
                ready.append(text)
                ahead.add(key)
        return ready, later

    def _prepare(self, text: _Text) -> None:
        """Look for what is known of a text."""
        for start, end in reversed(text.users):
            known = self._prefixes.get(tuple(text.prompt[:start]))
            if known is not None:
                text.draft = TokenDraft(known.answer_like(text.prompt[start:end]))
                text.read, text.states = start, known.states
                break
        text.guessed = text.draft.guess()[: self._longest - 1]

    def _generate(self, texts: list[_Text]) -> None:
        """Write a batch of prepared texts to their ends."""
        for part in self._parts(texts):
            self._read(part)
        rest = [text for text in texts if not self._done(text)]
        rows = KVBatch(self._model, [text.states for text in rest])
        for text in rest:
            text.states = None
        while rest:
            self._step(rows, rest)
            left = [row for row, text in enumerate(rest) if not self._done(text)]
            # Rows that are done are read in vain; leaving them out costs a copy.
            if left and 4 * len(left) <= 3 * len(rest):
                rows.select(left)
            elif left:
                continue
            rest = [rest[row] for row in left]
        for text in texts:
            if (prefix := self._prefixes.get(text.key)) is not None:
                prefix.learn(text.utterance, tuple(text.tokens))

    def _parts(self, texts: Sequence[_Text]) -> Iterator[list[_Text]]:
        """Group prepared texts, the shortest first, such that no group has too many tokens."""
        part: list[_Text] = []
        for text in texts:
            if part and (len(part) + 1) * text.width > self._tokens:
                yield part
                part = []
            part.append(text)
        if part:
            yield part

    def _read(self, texts: Sequence[_Text]) -> None:
        """Read texts and their first guesses, and keep what others may begin with."""
        rows = KVBatch(self._model, [text.states for text in texts])
        self._step(rows, texts)
        for row, text in enumerate(texts):
            if text.key not in self._prefixes:
                self._prefixes.keep(text.key, CachedPrefix(rows.states(row, len(text.key))))
            text.states = None if self._done(text) else rows.states(row, text.read)

    def _step(self, batch: KVBatch, texts: Sequence[_Text]) -> None:
        """Read what is pending and a guess of each text, and take what is confirmed."""
        feeds = [([] if self._done(text) else text.pending) for text in texts]
        guesses = [([] if self._done(text) else text.guessed) for text in texts]
        best, impurities = batch.read(feeds, guesses, [text.read for text in texts])
        at = 0
        sizes: list[int] = []
        for text, feed, guess in zip(texts, feeds, guesses, strict=True):
            if not feed:
                sizes.append(0)
                continue
            chosen, noted = best[at : at + len(guess) + 1], impurities[at : at + len(guess) + 1]
            at += len(guess) + 1
            right = next((n for n, token in enumerate(guess) if token != chosen[n]), len(guess))
            sizes.append(len(feed) + right)
            text.take(chosen[: right + 1], noted[: right + 1], self._end)
            text.read += sizes[-1]
            text.draft.learn(text.tokens, right)
            text.guessed = text.draft.guess()[: self._longest - len(text.tokens) - 1]
        batch.accept(sizes)

    def _done(self, text: _Text) -> bool:
        return self._end in text.tokens or len(text.tokens) >= self._longest
