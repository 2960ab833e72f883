"""Greedy decoding for SimpleTOD, with a cache of the model's keys and values."""

from __future__ import annotations

import sys
from collections import OrderedDict, deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers import (
    Cache,
    GenerationConfig,
    GPT2LMHeadModel,
    LogitsProcessor,
    LogitsProcessorList,
    PreTrainedModel,
)
from transformers.cache_utils import DynamicLayer

#: Size of the cache of keys and values in bytes. The least recently used entries go first.
_BYTES: Final = 512 * 1024 * 1024
#: Number of stored answers per prefix.
_ANSWERS: Final = 64


@dataclass(frozen=True)
class CachedPrefix:
    """The start of a dialogue up to a user utterance, with its keys and values in the model."""

    states: Tensor  #: Keys and values ``[layers, 2, heads, T, width]``.
    #: Tokens of user utterances, and the generated tokens after them.
    answers: deque[tuple[frozenset[int], tuple[int, ...]]] = field(
        default_factory=lambda: deque(maxlen=_ANSWERS)
    )

    @property
    def bytes(self) -> int:
        """Size of the stored keys and values in bytes."""
        return self.states.numel() * self.states.element_size()

    def learn(self, utterance: Sequence[int], answer: tuple[int, ...]) -> None:
        """Store the tokens that the model generated after an utterance."""
        pair = (frozenset(utterance), answer)
        if pair not in self.answers:
            self.answers.append(pair)

    def answer_like(self, utterance: Sequence[int]) -> tuple[int, ...]:
        """Return the stored answer to the most similar utterance, or ``()``."""
        wanted = frozenset(utterance)

        def likeness(pair: tuple[frozenset[int], tuple[int, ...]]) -> float:
            return len(wanted & pair[0]) / max(1, len(wanted | pair[0]))

        return max(self.answers, key=likeness, default=(wanted, ()))[1]


class PrefixCache:
    """A cache of dialogue beginnings, by their tokens."""

    def __init__(self, capacity: int = _BYTES) -> None:
        self._capacity = capacity
        self._size = 0
        self._kept: OrderedDict[tuple[int, ...], CachedPrefix] = OrderedDict()

    def __contains__(self, key: tuple[int, ...]) -> bool:
        return key in self._kept

    def get(self, key: tuple[int, ...]) -> CachedPrefix | None:
        """Return a cached prefix, and mark it as recently used."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def keep(self, key: tuple[int, ...], prefix: CachedPrefix) -> None:
        """Add a new prefix. Drop the oldest prefixes if the cache is full."""
        self._kept[key] = prefix
        self._size += prefix.bytes
        while self._size > self._capacity and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self._size -= oldest.bytes


#: Number of columns added when keys and values need more room.
_ROOM = 64


class _Layer(DynamicLayer):  # type: ignore[no-untyped-call]  # untyped
    """Keys and values of a layer with spare columns. The base class copies at each step."""

    def __init__(self, states: Tensor, used: int) -> None:
        """Store ``states [2, B, heads, T, width]``. The first ``used`` columns are in use."""
        super().__init__()  # type: ignore[no-untyped-call]  # untyped
        self.is_initialized = True
        self.states = states
        self.used = used

    def update(
        self,
        key_states: Tensor,
        value_states: Tensor,
        *_args: object,
        **_kwargs: object,
    ) -> tuple[Tensor, Tensor]:
        """Append keys and values ``[B, heads, t, width]``, and return all."""
        end = self.used + key_states.shape[2]
        self.states[0, :, :, self.used : end] = key_states
        self.states[1, :, :, self.used : end] = value_states
        self.used = end
        return self.states[0, :, :, :end], self.states[1, :, :, :end]

    def get_seq_length(self) -> int:
        """Return the number of used columns."""
        return self.used


class KVBatch:
    """Texts in one batch that advance at different speeds. Gaps between columns are masked.

    ``known`` has for each row the cached keys and values, see `CachedPrefix`, or ``None``.
    """

    def __init__(self, model: GPT2LMHeadModel, known: Sequence[Tensor | None]) -> None:
        self._model = model
        config = model.config
        width = max((states.shape[3] for states in known if states is not None), default=0)
        size = (len(known), config.n_head, width + _ROOM, config.n_embd // config.n_head)
        self._states = torch.zeros(
            (config.n_layer, 2, *size), dtype=model.dtype, device=model.device
        )
        #: Whether a column is visible ``[B, columns]``.
        self._seen = torch.zeros(size[0], size[2], dtype=torch.bool, device=model.device)
        self._start, self._used = 0, width
        for row, states in enumerate(known):
            if states is not None:
                self._states[:, :, row, :, : states.shape[3]] = states
                self._seen[row, : states.shape[3]] = True

    def read(
        self, feeds: Sequence[list[int]], guesses: Sequence[list[int]], positions: Sequence[int]
    ) -> tuple[list[int], list[float]]:
        """Run the model on each row's new tokens, and on the guessed tokens after them.

        Finished rows have no tokens. The result has two lists with an entry for the last token of
        each feed and for each guess, row by row. The first has the most likely next token. The
        second has the Gini impurity of its distribution. ``positions`` are the positions of the
        first tokens.
        """
        lines = [feed + guess for feed, guess in zip(feeds, guesses, strict=True)]
        width = max(map(len, lines))
        self._grow(width)
        device = self._seen.device
        tokens = torch.zeros(len(lines), width, dtype=torch.long)
        wanted = torch.zeros(len(lines), width, dtype=torch.bool)
        for row, (line, feed) in enumerate(zip(lines, feeds, strict=True)):
            tokens[row, : len(line)] = torch.tensor(line, dtype=torch.long)
            wanted[row, max(0, len(feed) - 1) : len(line)] = True
        # Give padding the position of the last token: there may be no later position.
        steps = torch.arange(width)
        ends = torch.tensor(
            [start + len(line) for start, line in zip(positions, lines, strict=True)]
        )
        places = torch.minimum(
            torch.tensor(positions)[:, None] + steps, (ends - 1).clamp(0)[:, None]
        )
        new = (steps[:, None] >= steps).to(device).expand(len(lines), 1, width, width)
        old = self._seen[:, None, None, : self._used].expand(-1, 1, width, -1)
        seen = torch.cat([old, new], dim=3)
        # An additive mask: some attention kernels accept no boolean mask.
        mask = torch.zeros(seen.shape, dtype=self._model.dtype, device=device)
        mask.masked_fill_(~seen, torch.finfo(mask.dtype).min)
        layers: list[Any] = [_Layer(states, self._used) for states in self._states]
        hidden = self._model.transformer(
            tokens.to(device),
            past_key_values=Cache(layers=layers),
            attention_mask=mask,
            position_ids=places.to(device),
            use_cache=True,
        ).last_hidden_state
        self._start, self._used = self._used, self._used + width
        scores = self._model.lm_head(hidden[wanted.to(device)]).float()
        impurities = 1.0 - scores.softmax(-1).square().sum(-1)
        return scores.argmax(-1).tolist(), impurities.tolist()

    def accept(self, sizes: Sequence[int]) -> None:
        """Keep the first ``sizes`` tokens of the last `read` in each row. Mask the rest."""
        width = torch.tensor(sizes)[:, None]
        accepted = torch.arange(self._used - self._start) < width
        self._seen[:, self._start : self._used] = accepted.to(self._seen.device)

    def states(self, row: int, tokens: int) -> Tensor:
        """Return a copy of the keys and values of a row's first tokens."""
        columns = self._seen[row].nonzero()[:tokens, 0]
        return self._states[:, :, row].index_select(3, columns)

    def select(self, rows: Sequence[int]) -> None:
        """Keep only some rows of the batch."""
        kept = torch.tensor(rows, device=self._seen.device)
        self._states = self._states.index_select(2, kept)
        self._seen = self._seen.index_select(0, kept)

    def _grow(self, width: int) -> None:
        """Make room for ``width`` more columns."""
        missing = self._used + width - self._seen.shape[1]
        if missing > 0:
            self._states = pad(self._states, (0, 0, 0, missing + _ROOM))
            self._seen = pad(self._seen, (0, missing + _ROOM))


@dataclass(frozen=True, slots=True)
class Generation:
    """The tokens that the model generated after a prompt."""

    tokens: tuple[int, ...]  #: Without the end token.
    #: Gini impurity of the distribution of each token, including the end token.
    impurities: tuple[float, ...]
    ended: bool  #: Whether the end token was generated.


class _Impurities(LogitsProcessor):
    """Records the Gini impurity of each generated token's distribution."""

    def __init__(self) -> None:
        self.steps: list[Tensor] = []

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:  # noqa: ARG002 - signature of transformers
        """Record the impurity of ``scores [B, V]`` and return them unchanged."""
        self.steps.append(1.0 - scores.float().softmax(-1).square().sum(-1))
        return scores


class GreedyDecoder:
    """Continues texts up to the token ``end``, or by at most ``longest`` tokens."""

    def __init__(self, model: PreTrainedModel, *, end: int, longest: int, batch_size: int) -> None:
        self._model = model
        # A checkpoint's own settings, such as a repetition penalty, would not be greedy decoding.
        model.generation_config = GenerationConfig()  # type: ignore[no-untyped-call]  # untyped
        self._end = end
        self._batch_size = batch_size
        self._greedy = GenerationConfig(  # type: ignore[no-untyped-call]  # untyped
            max_new_tokens=longest,
            do_sample=False,
            num_beams=1,
            eos_token_id=end,
            pad_token_id=end,
            # A dynamic cache is copied for each token, but not every model supports a static one.
            cache_implementation="static" if isinstance(model, GPT2LMHeadModel) else None,
            disable_compile=True,
        )

    def generate(self, prompts: Sequence[list[int]]) -> list[Generation]:
        """Continue each prompt with the most likely tokens."""
        # Batches of similar length need little padding.
        ordered = sorted(range(len(prompts)), key=lambda place: (len(prompts[place]), place))
        found: dict[int, Generation] = {}
        for start in range(0, len(ordered), self._batch_size):
            places = ordered[start : start + self._batch_size]
            found.update(zip(places, self._generate([prompts[at] for at in places]), strict=True))
        return [found[place] for place in range(len(prompts))]

    def _generate(self, prompts: list[list[int]]) -> list[Generation]:
        width = max(map(len, prompts))
        # Pad on the left, so that generated tokens are in the same columns.
        tokens = [[self._end] * (width - len(prompt)) + prompt for prompt in prompts]
        mask = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
        impurities = _Impurities()
        device = self._model.device
        with torch.inference_mode():
            # This method has no types in transformers.
            generate: Any = self._model.generate
            written = generate(
                torch.tensor(tokens, device=device),
                attention_mask=torch.tensor(mask, device=device),
                generation_config=self._greedy,
                logits_processor=LogitsProcessorList([impurities]),
            )
        noted = torch.stack(impurities.steps, 1).tolist()
        rows = written[:, width:].tolist()
        return [generation_of(*both, self._end) for both in zip(rows, noted, strict=True)]


def generation_of(tokens: Sequence[int], impurities: Sequence[float], end: int) -> Generation:
    """Return the generated tokens up to the token ``end``."""
    ended = end in tokens
    size = list(tokens).index(end) if ended else len(tokens)
    return Generation(tuple(tokens[:size]), tuple(impurities[: size + ended]), ended)


#: Maximum length of later guesses. All rows of a batch wait for the longest guess.
_LONGEST_GUESS = 12
#: Maximum number of preceding tokens to match in the reference.
_LONGEST_MATCH = 3


class TokenDraft:
    """Guesses the next tokens of one row from a similar earlier answer, which may be empty."""

    def __init__(self, reference: Sequence[int]) -> None:
        self._reference = list(reference)
        #: Position of the next token in the reference.
        self._place = 0
        self._length = len(self._reference)

    def guess(self) -> list[int]:
        """Return the expected next tokens. The list may be empty."""
        return self._reference[self._place : self._place + self._length]

    def learn(self, written: Sequence[int], confirmed: int) -> None:
        """Continue after a guess with ``confirmed`` correct tokens.

        ``written`` are all tokens so far. The last one comes from the model, not from a guess.
        """
        # After a wrong guess, a long guess would probably be wasted.
        self._length = min(max(1, 2 * confirmed), _LONGEST_GUESS)
        self._place = self._find(written, self._place + confirmed)

    def _find(self, written: Sequence[int], place: int) -> int:
        """Return the position in the reference that continues the end of ``written``.

        ``place`` is the position of the first wrong guess. The longest match wins, then the
        nearest. If nothing matches, the wrong token counts as a substitution.
        """
        for size in range(min(_LONGEST_MATCH, len(written)), 0, -1):
            end = list(written[-size:])
            starts = range(len(self._reference) - size + 1)
            found = [at + size for at in starts if self._reference[at : at + size] == end]
            if found:
                return min(found, key=lambda after: (abs(after - place - 1), after))
        return place + 1


#: Maximum number of tokens per read on a CPU. More would exceed the processor's caches.
_TOKENS = 1500


@dataclass
class _Text:
    """A text that is being continued."""

    prompt: list[int]
    #: Start and end of each user utterance, including its mark. There is at least one.
    users: list[tuple[int, int]]
    draft: TokenDraft = field(default_factory=lambda: TokenDraft(()))
    guessed: list[int] = field(default_factory=list)
    read: int = 0  #: Number of tokens read so far.
    #: Their keys and values, see `CachedPrefix`, or ``None``.
    states: Tensor | None = None
    tokens: list[int] = field(default_factory=list)
    impurities: list[float] = field(default_factory=list)

    @property
    def key(self) -> tuple[int, ...]:
        """The tokens before the last user utterance."""
        return tuple(self.prompt[: self.users[-1][0]])

    @property
    def said(self) -> tuple[int, ...]:
        """The tokens up to and including the last user utterance."""
        return tuple(self.prompt[: self.users[-1][1]])

    @property
    def said_before(self) -> tuple[int, ...] | None:
        """The tokens up to the previous user utterance, or ``None`` at the first turn."""
        return tuple(self.prompt[: self.users[-2][1]]) if len(self.users) > 1 else None

    @property
    def utterance(self) -> list[int]:
        """The last user utterance."""
        start, end = self.users[-1]
        return self.prompt[start:end]

    @property
    def pending(self) -> list[int]:
        """Tokens to run the model on next, without the guess."""
        return (self.prompt + self.tokens)[self.read :]

    @property
    def width(self) -> int:
        """Number of tokens to run the model on next, with the guess."""
        return len(self.pending) + len(self.guessed)

    def take(self, tokens: Sequence[int], impurities: Sequence[float], end: int) -> None:
        """Add generated tokens up to the end token, and drop correct guesses after it."""
        size = tokens.index(end) + 1 if end in tokens else len(tokens)
        self.tokens += tokens[:size]
        self.impurities += impurities[:size]


class SpeculativeDecoder:
    """Continues texts like `GreedyDecoder`, but faster by checking several guesses at once.

    The weights of the model must not change afterwards. ``user`` is the token before a user
    utterance. It is one of the ``marks`` that end an utterance.
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
        """Continue each prompt with the most likely tokens.

        A prompt must have at least one token, and leave ``longest`` positions free.
        """
        if not all(prompts):
            raise ValueError("the prompt is empty: a continuation needs at least one token")
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
        """Split texts into two lists: those to generate now, and those to generate afterwards.

        Of several texts with the same prefix, one is generated now. The others wait for its cached
        prefix. Texts of earlier turns come first.
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
        """Look up the cached prefix of a text, and make the first guess."""
        for start, end in reversed(text.users):
            known = self._prefixes.get(tuple(text.prompt[:start]))
            if known is not None:
                text.draft = TokenDraft(known.answer_like(text.prompt[start:end]))
                text.read, text.states = start, known.states
                break
        text.guessed = text.draft.guess()[: self._longest - 1]

    def _generate(self, texts: list[_Text]) -> None:
        """Generate a batch of prepared texts."""
        for part in self._parts(texts):
            self._read(part)
        rest = [text for text in texts if not self._done(text)]
        rows = KVBatch(self._model, [text.states for text in rest])
        for text in rest:
            text.states = None
        while rest:
            self._step(rows, rest)
            left = [row for row, text in enumerate(rest) if not self._done(text)]
            # Finished rows waste time, but removing them costs a copy.
            if left and 4 * len(left) <= 3 * len(rest):
                rows.select(left)
            elif left:
                continue
            rest = [rest[row] for row in left]
        for text in texts:
            if (prefix := self._prefixes.get(text.key)) is not None:
                prefix.learn(text.utterance, tuple(text.tokens))

    def _parts(self, texts: Sequence[_Text]) -> Iterator[list[_Text]]:
        """Divide prepared texts, sorted by length, into groups with a limited number of tokens."""
        part: list[_Text] = []
        for text in texts:
            if part and (len(part) + 1) * text.width > self._tokens:
                yield part
                part = []
            part.append(text)
        if part:
            yield part

    def _read(self, texts: Sequence[_Text]) -> None:
        """Run the model on texts and their first guesses, and cache the prefixes."""
        rows = KVBatch(self._model, [text.states for text in texts])
        self._step(rows, texts)
        for row, text in enumerate(texts):
            if text.key not in self._prefixes:
                self._prefixes.keep(text.key, CachedPrefix(rows.states(row, len(text.key))))
            text.states = None if self._done(text) else rows.states(row, text.read)

    def _step(self, batch: KVBatch, texts: Sequence[_Text]) -> None:
        """Run the model on the pending tokens and guessed next tokens of each text.

        The guesses that the model confirms are kept.
        """
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
