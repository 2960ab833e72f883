"""Candidates of ``dstfuzz freeze`` that a language model at an address writes."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from pytest_dstfuzz.campaign.predictor import Budget
from pytest_dstfuzz.cli.command import EstimateLine, print_page, terminal_page
from pytest_dstfuzz.config import Address, Settings
from pytest_dstfuzz.dialogue.dialogues import turn_keys
from pytest_dstfuzz.errors import (
    GivenUpError,
    NoAnswerError,
    TrackerError,
    UserError,
    needs_extra,
)
from pytest_dstfuzz.printable import format_count
from pytest_dstfuzz.relations.language_model import (
    Messages,
    back_check_request,
    find_repeated,
    paraphrase_request,
    read_back_check,
    read_paraphrases,
    without_thoughts,
)
from pytest_dstfuzz.relations.relation import Scene
from pytest_dstfuzz.relations.sources import FrozenFile, FrozenRow, candidate_row
from pytest_dstfuzz.report.figures import usage_text
from pytest_dstfuzz.trackers.schemes import ServiceSettings
from pytest_dstfuzz.trackers.tracker import BatchInterrupt

if TYPE_CHECKING:
    from pytest_dstfuzz.trackers.chat.client import ChatClient

_ADDRESS: Final = re.compile(r"(openai|anthropic)\+https?://[^/?#]", re.IGNORECASE)
#: Turns in a batch. The file is written after each batch.
_BATCH: Final = 8
#: Maximum number of tokens of an answer: for each text, and for the rest.
_TOKENS_EACH, _TOKENS = 64, 64
#: Lock -> the reason why a candidate that breaks it is refused.
_REFUSED: Final = {
    "user": "changed a locked word",
    "value": "changed a value or a number",
    "exact": "changed an address, a code or a quotation",
    "name": "changed a name",
    "negation": "lost or added a negation",
    "dontcare": "lost or added that any value is fine",
    "affirmation": "lost or added a yes",
    "reference": "lost or added a reference to earlier turns",
    "size": "no words, or too long",
}


@dataclass
class FreezeCounts:
    """The counts of a run, for its table."""

    #: Number of requests with and without an answer.
    answered: int = 0
    failed: int = 0
    #: The last error of a request.
    error: TrackerError | None = None
    accepted: int = 0
    #: Reason -> number of texts that were refused for it.
    refused: Counter[str] = field(default_factory=Counter)
    #: Verdict of the back-check -> number of candidates.
    checked: Counter[str] = field(default_factory=Counter)


class ModelWriter:
    """Asks a model for paraphrases of turns, and checks them, within a budget.

    The file is written after each batch of turns. A turn that has a candidate of this model in the
    file is not asked again, so a run that ended early can be continued.
    """

    def __init__(self, client: ChatClient, name: str, budget: Budget, path: Path) -> None:
        """Store the connection, the name of the source, the budget, and the path of the file."""
        self._client = client
        self.name = name
        self._budget = budget
        self._path = path
        #: Whether answers are limited to the tokens that paraphrases need.
        self._short = True
        self._interrupted = False
        #: Whether the budget did not cover all requests.
        self._stopped = False
        self._since = time.monotonic()
        self._tally = FreezeCounts()

    def extend(self, file: FrozenFile, scenes: Sequence[Scene], each: int) -> FrozenFile:
        """Return the file with at most ``each`` candidates more for each turn without one.

        Raises:
            NoAnswerError: the service answered no request of a batch.
            KeyboardInterrupt: Ctrl-C was pressed. The file has the candidates so far.
        """
        mine = [row for row in file.rows if row.source == self.name]
        there, unchecked = {row.key for row in mine}, {row.key for row in mine if _open(row)}
        left: dict[str, Scene] = {}
        for scene in scenes:
            key = turn_keys(scene.dialogue)[scene.index]
            if key not in there or key in unchecked:
                left.setdefault(key, scene)
        with closing(EstimateLine("turns")) as progress:
            keys = list(left)
            for start in range(0, len(keys), _BATCH):
                batch = {key: left[key] for key in keys[start : start + _BATCH]}
                answered, failed = self._tally.answered, self._tally.failed
                new = {key: scene for key, scene in batch.items() if key not in there}
                file = self._paraphrased(file, new, each)
                if not self._interrupted:
                    file = self._checked(file, batch)
                if self._interrupted:
                    raise KeyboardInterrupt
                if self._tally.answered == answered and self._tally.failed > failed:
                    raise self._no_answer(file)
                if self._stopped:
                    break
                progress(min(start + _BATCH, len(keys)), len(keys))
        return file

    def _paraphrased(self, file: FrozenFile, scenes: dict[str, Scene], each: int) -> FrozenFile:
        """Return the file with candidates for turns, and write it."""
        answers = self._ask(
            [paraphrase_request(scene, each) for scene in scenes.values()],
            _TOKENS + each * _TOKENS_EACH,
        )
        rows: list[FrozenRow] = []
        known: dict[str, list[str]] = {}
        for row in file.rows:
            known.setdefault(row.key, []).append(row.text)
        for place, (key, scene) in enumerate(scenes.items()):
            answer = answers.get(place)
            if answer is not None:
                rows += self._rows(scene, answer, known.get(key, []), each)
        return self._written(file.joined(self.name, _licence(self.name), rows), file)

    def _rows(
        self, scene: Scene, answer: str, known: Sequence[str], each: int
    ) -> Iterator[FrozenRow]:
        """Yield the candidates of an answer, and count those that are refused."""
        found, others = read_paraphrases(answer), list(known)
        refused = self._tally.refused
        refused["not a JSON line with a text"] += found.unreadable
        for text in found.texts:
            if reason := find_repeated(scene, text, others):
                refused[reason] += 1
                continue
            if len(others) - len(known) == each:
                refused["more than --each"] += 1
                continue
            others.append(text)
            row = candidate_row(scene, text, self.name)
            if row.lock:
                refused[_REFUSED[row.lock]] += 1
            else:
                self._tally.accepted += 1
            yield row

    def _checked(self, file: FrozenFile, scenes: dict[str, Scene]) -> FrozenFile:
        """Return the file with the verdicts of the back-check, and write it."""
        rows = [
            row for row in file.rows if row.key in scenes and row.source == self.name and _open(row)
        ]
        answers = self._ask(
            [back_check_request(scenes[row.key], row.text) for row in rows], _TOKENS
        )
        verdicts = {rows[place]: read_back_check(answer) for place, answer in answers.items()}
        self._tally.checked.update(verdicts.values())
        return self._written(file.checked(verdicts), file)

    def _ask(self, prompts: Sequence[Messages], tokens: int) -> dict[int, str]:
        """Return the answers by the places of their prompts. The budget may not cover all."""
        found: dict[int, object] = {}
        asked = 0
        while asked < len(prompts) and not self._interrupted:
            count = self._budget.grant(len(prompts) - asked)
            if not count:
                break
            self._budget.spend(count)
            answers = self._map(prompts[asked : asked + count], tokens)
            found |= {asked + place: answer for place, answer in answers.items()}
            asked += count
            self._budget.watch(self._client)
        errors = [error for error in found.values() if isinstance(error, TrackerError)]
        if self._budget.ended:
            given_up = [error for error in errors if isinstance(error, GivenUpError)]
            self._stopped = self._stopped or bool(given_up) or asked < len(prompts)
            errors = [error for error in errors if error not in given_up]
        texts = {place: text for place, text in sorted(found.items()) if isinstance(text, str)}
        self._tally.answered += len(texts)
        self._tally.failed += len(errors)
        self._tally.error = errors[-1] if errors else self._tally.error
        return texts

    def _map(self, prompts: Sequence[Messages], tokens: int) -> Mapping[int, object]:
        """Return the answers, or the errors in their places. After Ctrl-C, some are missing."""
        jobs = [partial(self._answer, prompt, tokens) for prompt in prompts]
        try:
            return dict(enumerate(self._client.transport.map(jobs)))
        except BatchInterrupt as stop:
            self._interrupted = True
            return stop.answers

    async def _answer(self, messages: Messages, tokens: int) -> str:
        """Return the answer to a prompt, which may be cut off.

        If a model spends the limit of tokens on thoughts, all limits end, and it is asked again.
        """
        client = self._client
        limit = {"max_tokens": tokens} if self._short else {}
        choice = await client.complete([*messages], seed=0, **limit)
        cut = limit and choice.get("finish_reason") == "length"
        if cut and not without_thoughts(choice["message"].get("content") or ""):
            self._short = False
            self._budget.spend(1)
            choice = await client.complete([*messages], seed=0)
        return client.text_of(choice, cut_off=True)

    def _written(self, file: FrozenFile, before: FrozenFile) -> FrozenFile:
        return file if file.rows == before.rows else file.write_onto(self._path, before)

    def _no_answer(self, file: FrozenFile) -> NoAnswerError:
        error = self._tally.error
        count = format_count(sum(row.source == self.name for row in file.rows), "candidate")
        return NoAnswerError(
            f"the model of --source does not answer: {error}. Check that the service runs, its "
            f"address, the name of the model and DSTFUZZ_TOKEN. {self._path} has {count} of the "
            "model, and the same command continues the file"
        )

    def print_table(self) -> None:
        """Print the refused texts by reason, the back-check, and the cost."""
        tally, page = self._tally, terminal_page()
        refused = +tally.refused
        total = tally.accepted + refused.total()
        page.table(
            [
                (f"texts of {self.name}", f"{total:,}"),
                ("accepted by the rules", f"{tally.accepted:,}"),
                *[(f"refused: {why}", f"{count:,}") for why, count in sorted(refused.items())],
            ]
        )
        page.gap()
        said = tally.checked
        page.line(
            f"back-check, by the same model and not by a person: {said['same']:,} same, "
            f"{said['different']:,} different, {said['unclear']:,} unclear"
        )
        if tally.failed:
            page.line(f"requests without an answer: {tally.failed:,}; the last: {tally.error}")
        page.line(
            f"{format_count(self._budget.calls, 'call')}, {time.monotonic() - self._since:.1f} s; "
            f"tokens: "
            f"{usage_text(self._client.usage)}"
        )
        if self._stopped:
            page.line(f"{self._budget.ended}; the same command continues the file", "warning")
        print_page(page)


def _open(row: FrozenRow) -> bool:
    """Return whether a candidate still needs a back-check."""
    return not (row.lock or row.back_check or row.verdict)


def _licence(name: str) -> str:
    return f"see the terms of the language model {name.partition(':')[2]}, which wrote the texts"


def connect(source: str, settings: Settings, path: Path) -> ModelWriter:
    """Return the writer for the model at an address, such as ``openai+http://HOST/v1?model=NAME``.

    Raises:
        UserError: the address has another form, or names no model and the service has several.
        MissingExtraError: httpx or jinja2 is not installed.
        NoAnswerError: the service cannot be reached.
    """
    found = _ADDRESS.match(source)
    if found is None:
        raise UserError(
            f"--source {str(Address(source))!r} is not the address of a language model: write "
            "openai+http://HOST:PORT/v1 or anthropic+https://HOST"
        )
    kind = found[1].lower()
    url, name = _split_model(source[len(kind) + 1 :])
    tracker = settings.tracker
    if name is not None and tracker.service_model not in (None, name):
        raise UserError(
            "the address in --source and --tracker service-model name different models: leave one "
            "out"
        )
    budget = Budget(settings.budget)
    how = replace(tracker, service_model=name or tracker.service_model)
    service = ServiceSettings.of(how, budget.deadline)
    budget.deadline.start()
    with needs_extra(f"--source {kind}+http://...", "chat", "httpx", "jinja2"):
        from pytest_dstfuzz.trackers.anthropic.client import AnthropicClient, service_of  # noqa: PLC0415 - httpx
        from pytest_dstfuzz.trackers.chat.client import ChatClient, client_at  # noqa: PLC0415 - httpx
    own = kind == "anthropic"
    client = client_at(
        url,
        service_of(url, service) if own else service,
        how,
        "--source ADDRESS?model=NAME",
        AnthropicClient if own else ChatClient,
    )
    return ModelWriter(client, f"{kind}:{client.model}", budget, path)


def _split_model(url: str) -> tuple[Address, str | None]:
    """Return an address without the model in its query, and the name of the model, if any."""
    try:
        parts = urlsplit(url)
    except ValueError:
        # The transport reports the error.
        return Address(url), None
    query = parse_qsl(parts.query, keep_blank_values=True)
    names = [value for key, value in query if key == "model" and value]
    rest = urlencode([(key, value) for key, value in query if key != "model"])
    return Address(urlunsplit(parts._replace(query=rest))), names[0] if names else None
