"""A language model that judges pairs of replies, by a published protocol.

Language models that judge texts prefer the first text, the longer text, and their own texts (Zheng
et al., "Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena", NeurIPS 2023). Therefore the judge
gets each pair in both orders. If its two answers differ, the pair is undecided.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING, Final

from pytest_dstfuzz.comparisons.comparison import Comparison, ComparisonResult, TextPair
from pytest_dstfuzz.config import (
    JUDGE,
    Address,
    ReplySettings,
    TrackerSettings,
    identity_of_address,
)
from pytest_dstfuzz.config.secret import JUDGE_TOKEN_VARIABLE
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.errors import GivenUpError, NoAnswerError, TrackerError, UserError, needs_extra
from pytest_dstfuzz.trackers.schemes import ServiceSettings
from pytest_dstfuzz.trackers.tracker import Usage

if TYPE_CHECKING:
    from pytest_dstfuzz.trackers.chat.client import ChatClient

__all__ = ["Judge", "JudgeFacts", "Judges"]

_VERDICT: Final = re.compile(r'\{\s*"(?:same|equivalent)"\s*:\s*(true|false)\s*\}')
#: Number of calls for a pair, one in each order.
_ORDERS: Final = 2
#: The run ends after this number of successive calls without a verdict.
_MOST_SILENT: Final = 20
#: The question and the two texts in alphabetical order.
_Pair = tuple[str, str, str]


@cache
def protocol(name: str = "judge") -> str:
    """Return the instructions that the judge gets before each pair.

    ``judge-context`` is the name of those before each pair of conversations.
    """
    file = resources.files("pytest_dstfuzz") / "resources" / "replies" / f"{name}.txt"
    return file.read_text(encoding="utf-8")


def protocol_digest() -> str:
    """Return the SHA-256 of the protocol, 64 hexadecimal digits."""
    return hashlib.sha256(protocol().encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class JudgeFacts:
    """The judge and its usage. Usage of several processes can be added up."""

    #: The model's name at the service; several names are separated by blanks.
    model: str
    #: The address without credentials.
    address: str
    #: The number of pairs that were judged: replies in both orders, and conversations once.
    pairs: int = 0
    #: The number of undecided pairs, and the number of pairs that the budget did not cover.
    unsure: int = 0
    past_budget: int = 0
    #: The number of calls, including those without an answer.
    calls: int = 0
    usage: Usage = field(default_factory=Usage)

    def __add__(self, other: JudgeFacts) -> JudgeFacts:
        return JudgeFacts(
            model=" ".join(sorted({*self.model.split(), *other.model.split()})),
            address=self.address or other.address,
            pairs=self.pairs + other.pairs,
            unsure=self.unsure + other.unsure,
            past_budget=self.past_budget + other.past_budget,
            calls=self.calls + other.calls,
            usage=self.usage + other.usage,
        )

    def __sub__(self, before: JudgeFacts) -> JudgeFacts:
        return replace(
            self,
            pairs=self.pairs - before.pairs,
            unsure=self.unsure - before.unsure,
            past_budget=self.past_budget - before.past_budget,
            calls=self.calls - before.calls,
            usage=self.usage - before.usage,
        )


class Judge(Comparison):
    """Asks a chat model at temperature 0 about each pair. Undecided pairs count as the same.

    The client is created when it is first needed.
    """

    def __init__(self, settings: ReplySettings) -> None:
        """Store the address of the judge and the budget.

        Raises:
            UserError: the settings name no judge.
        """
        if settings.judge is None:
            raise UserError(
                f"the comparison {JUDGE!r} needs a chat model: give its address, as in "
                "--dst-compare=judge:openai+http://..."
            )
        self._settings = settings
        self._address = Address(settings.judge.full.partition("+")[2])
        self._made: ChatClient | None = None
        #: Pair -> verdict; ``None`` = undecided.
        self._judged: dict[_Pair, bool | None] = {}
        #: Clean and changed conversation -> verdict; ``None`` = undecided.
        self._contexts: dict[tuple[Context, Context], bool | None] = {}
        self._past_budget: set[_Pair | tuple[Context, Context]] = set()
        self._calls = 0
        self._for_pairs = 0
        #: Number of calls since the last verdict.
        self._silent = 0

    @property
    def name(self) -> str:
        """The name; reports show the model separately."""
        return JUDGE

    @property
    def identity(self) -> str:
        """The address, the model and a digest of the protocol.

        If the address has credentials, or a token is set, keyed digests of them follow the address.
        """
        address = identity_of_address(JUDGE, self._address)
        return f"{JUDGE}:{address} {self._client.model} {protocol_digest()[:12]}"

    @property
    def facts(self) -> JudgeFacts | None:
        """The judge and its usage, or ``None`` if the run never asked it."""
        if self._made is None:
            return None
        return JudgeFacts(
            model=self._made.model,
            address=str(self._address),
            pairs=len(self._judged) + len(self._contexts),
            unsure=sum(same is None for same in (*self._judged.values(), *self._contexts.values())),
            past_budget=len(self._past_budget),
            calls=self._calls,
            usage=self._made.usage,
        )

    def reach(self) -> None:
        """Send one request to check that the judge answers. The verdict does not matter.

        Raises:
            UserError: the judge does not answer.
        """
        client = self._client
        self._calls += 1
        try:
            client.transport.wait(self._asked(client, "Are you open?", "Yes.", "Yes."))
        except GivenUpError:
            raise
        except TrackerError as error:
            raise NoAnswerError(
                f"the judge of --dst-compare does not answer: {error}. Give the address of a "
                "running OpenAI-compatible chat model, such as openai+http://localhost:8000/v1"
            ) from None

    def prepare(self, pairs: Sequence[TextPair]) -> None:
        """Request verdicts for all given pairs in one batch, but for each found text only once."""
        first: dict[tuple[str, str, Context], _Pair] = {}
        for one in pairs:
            pair = _pair(one.before, one.found, one.asked)
            first.setdefault((one.path, one.found, one.asked), pair)
        self._judge(list(first.values()))

    def compare(self, path: str, before: str, found: str, asked: Context) -> ComparisonResult:
        """Return the verdict of the judge from both orders of the texts."""
        del path
        if before == found:
            return ComparisonResult(same=True)
        pair = _pair(before, found, asked)
        self._judge([pair])
        same = self._judged.get(pair)
        if same is None:
            return ComparisonResult(same=True, unsure=True)
        return ComparisonResult(
            same, why="" if same else "the judge calls them different, in both orders"
        )

    @property
    def context_judge(self) -> Judge:
        """The judge itself."""
        return self

    def keeps_context(self, clean: Context, changed: Context) -> bool | None:
        """Ask once whether the last question is as clear in a changed conversation.

        The call counts for the budget. Without a budget left, there is no verdict.
        """
        key = clean, changed
        left = self._settings.judge_calls
        if key in self._contexts:
            return self._contexts[key]
        if left is not None and self._for_pairs >= left:
            self._past_budget.add(key)
        else:
            self._for_pairs += 1
            self._calls += 1
            client = self._client
            data = {"first": _rounds(clean), "second": _rounds(changed), "question": clean.user}
            asked = partial(self._verdict, client, protocol("judge-context"), data)
            (answer,) = client.transport.map([asked])
            self._contexts[key] = None if isinstance(answer, TrackerError) else answer
            self._refuse_silence([answer])
        return self._contexts.get(key)

    def _judge(self, pairs: Sequence[_Pair]) -> None:
        """Judge the pairs without a verdict, within the budget."""
        left = self._settings.judge_calls
        wanted: list[_Pair] = []
        for pair in dict.fromkeys(pairs):
            if pair in self._judged or pair in self._past_budget:
                continue
            if left is not None and self._for_pairs + _ORDERS > left:
                self._past_budget.add(pair)
                continue
            self._for_pairs += _ORDERS
            wanted.append(pair)
        if not wanted:
            return
        client = self._client
        self._calls += _ORDERS * len(wanted)
        answers = client.transport.map(
            [
                partial(self._asked, client, question, *texts)
                for question, one, other in wanted
                for texts in ((one, other), (other, one))
            ]
        )
        for place, pair in enumerate(wanted):
            both = {
                None if isinstance(answer, TrackerError) else answer
                for answer in answers[_ORDERS * place : _ORDERS * (place + 1)]
            }
            self._judged[pair] = both.pop() if len(both) == 1 else None
        self._refuse_silence(answers)

    def _refuse_silence(self, answers: Sequence[bool | TrackerError | None]) -> None:
        """Raise an error if the judge stops giving verdicts, because all pairs would then agree.

        Raises:
            NoAnswerError: the last calls had no verdict.
        """
        for answer in answers:
            self._silent = 0 if isinstance(answer, bool) else self._silent + 1
        if self._silent < _MOST_SILENT:
            return
        last = answers[-1]
        why = f"the last error was: {last}" if isinstance(last, TrackerError) else "not readable"
        raise NoAnswerError(
            f"the judge of --dst-compare gave no verdict to its last {self._silent:,} calls "
            f"({why}). Without a judge every pair of replies would count as the same, so the run "
            "ends: check the service and its credentials, and run again"
        )

    async def _asked(self, client: ChatClient, question: str, one: str, other: str) -> bool | None:
        """Return the verdict on two texts in this order, or ``None`` if it cannot be parsed."""
        data = {"question": question, "reply A": one, "reply B": other}
        return await self._verdict(client, protocol(), data)

    async def _verdict(
        self, client: ChatClient, instructions: str, data: Mapping[str, object]
    ) -> bool | None:
        """Return the verdict on some data, or ``None`` if it cannot be parsed."""
        content = f"{instructions}\n{json.dumps(data, ensure_ascii=False, indent=1)}"
        choice = await client.complete([{"role": "user", "content": content}])
        said = set(_VERDICT.findall(client.text_of(choice)))
        return said == {"true"} if len(said) == 1 else None

    @property
    def _client(self) -> ChatClient:
        if self._made is None:
            with needs_extra(f"--dst-compare={JUDGE}", "http", "httpx"):
                from pytest_dstfuzz.trackers.chat.client import client_at  # noqa: PLC0415 - httpx
            settings = self._settings
            # The headers and the token of the tested system must not go to the judge's service.
            how = TrackerSettings(service_model=settings.judge_model, prices=settings.judge_prices)
            try:
                self._made = client_at(
                    self._address,
                    ServiceSettings(token=JUDGE_TOKEN_VARIABLE),
                    how,
                    "--dst-compare=judge:ADDRESS:model=NAME",
                )
            except UserError as error:
                raise type(error)(f"the judge of --dst-compare: {error}") from None
        return self._made


class Judges:
    """The judges of a process, one for each combination of judge settings.

    If the number of calls is limited, each worker gets an equal share of the calls.
    """

    def __init__(self, workers: int = 0) -> None:
        self._workers = max(1, workers)
        self._made: dict[object, Judge] = {}
        self._reported: JudgeFacts | None = None

    def of(self, settings: ReplySettings) -> Judge:
        """Return the judge for the settings, or raise a `UserError` if they name none."""
        address = None if settings.judge is None else settings.judge.full
        key = address, settings.judge_model, settings.judge_prices, settings.judge_calls
        if key not in self._made:
            calls = settings.judge_calls
            share = None if calls is None else max(_ORDERS, calls // self._workers)
            self._made[key] = Judge(replace(settings, judge_calls=share))
        return self._made[key]

    def reach(self) -> None:
        """Raise an error if a judge does not answer."""
        for judge in self._made.values():
            judge.reach()

    @property
    def facts(self) -> JudgeFacts | None:
        """The sum over all judges, or ``None`` if none was asked."""
        found = [facts for judge in self._made.values() if (facts := judge.facts) is not None]
        return sum(found[1:], found[0]) if found else None

    def new_facts(self) -> JudgeFacts | None:
        """Return the usage since the last call of this method, or ``None`` if nothing was used."""
        before, self._reported = self._reported, self.facts
        if self._reported is None or before == self._reported:
            return None
        return self._reported if before is None else self._reported - before


def is_tested_model(settings: ReplySettings, tested: TrackerSettings) -> bool:
    """Return whether the judge is the tested model, with the same address and model name.

    If the settings give at most one model name, the service is assumed to have only one model.
    """
    names = {settings.judge_model, tested.service_model} - {None}
    model = tested.model if isinstance(tested.model, Address) else None
    if model is None or settings.judge is None:
        return False
    return _plain_address(model) == _plain_address(settings.judge) and len(names) < 2


def _plain_address(address: Address) -> str:
    return address.full.lower().rstrip("/").removesuffix("/v1")


def _rounds(context: Context) -> list[dict[str, str]]:
    return [{"system": one.system, "user": one.user} for one in context.exchanges]


def _pair(before: str, found: str, asked: Context) -> _Pair:
    first, second = sorted((before, found))
    return asked.user, first, second
