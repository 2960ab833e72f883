"""A language model as the judge of two replies, by a stated protocol.

Such judges prefer what stands first, what is longer, and what they wrote themselves (Zheng et al.,
"Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena", NeurIPS 2023). So each pair is asked in
both orders, and where the two answers disagree nothing is decided.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING, Final

from pytest_dstfuzz.comparisons.comparison import Compared, Comparison, TextPair
from pytest_dstfuzz.config import JUDGE, Address, ReplySettings, TrackerSettings
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.errors import GivenUpError, NoAnswerError, TrackerError, UserError, needs_extra
from pytest_dstfuzz.trackers.schemes import ServiceSettings
from pytest_dstfuzz.trackers.tracker import Usage

if TYPE_CHECKING:
    from pytest_dstfuzz.trackers.chat.client import ChatClient

#: The token of the judge, where it has another one than the tested system.
TOKEN_VARIABLE: Final = "DSTFUZZ_JUDGE_TOKEN"  # noqa: S105 - a name
_VERDICT: Final = re.compile(r'\{\s*"same"\s*:\s*(true|false)\s*\}')
#: A pair takes one call in each order.
_ORDERS: Final = 2
#: Question and both texts, these in the order of their characters.
_Pair = tuple[str, str, str]


@cache
def protocol() -> str:
    """Return what the judge is told before each pair."""
    file = resources.files("pytest_dstfuzz") / "resources" / "replies" / "judge.txt"
    return file.read_text(encoding="utf-8")


def protocol_digest() -> str:
    """Return the SHA-256 of the protocol, 64 hexadecimal digits."""
    return hashlib.sha256(protocol().encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class JudgeFacts:
    """Who judged replies and what that took; those of several processes are added up."""

    #: As the service knows it; several, with blanks between.
    model: str
    #: Without credentials.
    address: str
    #: Pairs of replies that it was asked about, each in both orders.
    pairs: int = 0
    #: Pairs that it decided nothing about, and those that it was not asked for lack of budget.
    unsure: int = 0
    past_budget: int = 0
    #: Questions, those included to which no answer came.
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


class Judge(Comparison):
    """Asks a chat model at temperature 0, once for each pair; what it is not sure of is the same.

    Nothing is asked before the model or a judgment is needed.
    """

    def __init__(self, settings: ReplySettings) -> None:
        """Take whom to ask and how often.

        Raises:
            UserError: no judge is named.
        """
        if settings.judge is None:
            raise UserError(
                f"the comparison {JUDGE!r} asks a chat model, and none is named: add "
                "--dst-compare=judge:openai+http://..., the address of one"
            )
        self._settings = settings
        self._address = Address(settings.judge.full.partition("+")[2])
        self._made: ChatClient | None = None
        #: ``None`` = it decided nothing.
        self._judged: dict[_Pair, bool | None] = {}
        self._past_budget: set[_Pair] = set()
        self._calls = 0
        self._for_pairs = 0

    @property
    def name(self) -> str:
        """Reports name the model beside it."""
        return JUDGE

    @property
    def identity(self) -> str:
        """Address, model and digest of the protocol."""
        return f"{JUDGE}:{self._address}#{self._client.model}#{protocol_digest()[:12]}"

    @property
    def facts(self) -> JudgeFacts | None:
        """Who judged, and what it took; ``None`` where nobody was asked."""
        if self._made is None:
            return None
        return JudgeFacts(
            model=self._made.model,
            address=str(self._address),
            pairs=len(self._judged),
            unsure=sum(same is None for same in self._judged.values()),
            past_budget=len(self._past_budget),
            calls=self._calls,
            usage=self._made.usage,
        )

    def reach(self) -> None:
        """Ask once whether a text says the same as itself, whatever the answer.

        Raises:
            UserError: no answer comes.
        """
        client = self._client
        self._calls += 1
        try:
            client.transport.wait(self._asked(client, "Are you open?", "Yes.", "Yes."))
        except GivenUpError:
            raise
        except TrackerError as error:
            raise NoAnswerError(
                f"the judge of --dst-compare does not answer: {error}. It takes the address of an "
                "OpenAI-compatible chat model that is up, such as openai+http://localhost:8000/v1"
            ) from None

    def prepare(self, pairs: Sequence[TextPair]) -> None:
        """Judge at once what each found text is held against first."""
        first: dict[tuple[str, str, Context], _Pair] = {}
        for one in pairs:
            pair = _pair(one.before, one.found, one.asked)
            first.setdefault((one.path, one.found, one.asked), pair)
        self._judge(list(first.values()))

    def compare(self, path: str, before: str, found: str, asked: Context) -> Compared:
        """Return what the judge said in both orders."""
        del path
        if before == found:
            return Compared(same=True)
        pair = _pair(before, found, asked)
        self._judge([pair])
        same = self._judged.get(pair)
        if same is None:
            return Compared(same=True, unsure=True)
        return Compared(same, why="" if same else "the judge, in both orders: not the same")

    def _judge(self, pairs: Sequence[_Pair]) -> None:
        """Ask for pairs that are not known, as far as the budget goes."""
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

    async def _asked(self, client: ChatClient, question: str, one: str, other: str) -> bool | None:
        """Return what the judge says of two texts in this order; ``None`` = it cannot be read."""
        data = {"question": question, "reply A": one, "reply B": other}
        content = f"{protocol()}\n{json.dumps(data, ensure_ascii=False, indent=1)}"
        choice = await client.complete([{"role": "user", "content": content}])
        said = set(_VERDICT.findall(client.text_of(choice)))
        return said == {"true"} if len(said) == 1 else None

    @property
    def _client(self) -> ChatClient:
        if self._made is None:
            with needs_extra(f"--dst-compare={JUDGE}", "http", "httpx"):
                from pytest_dstfuzz.trackers.chat.client import client_at  # noqa: PLC0415 - httpx
            settings = self._settings
            # Neither headers nor token of the tested system are for the service of the judge.
            how = TrackerSettings(service_model=settings.judge_model, prices=settings.judge_prices)
            try:
                self._made = client_at(
                    self._address,
                    ServiceSettings(token=TOKEN_VARIABLE),
                    how,
                    "--dst-compare=judge:ADDRESS:model=NAME",
                )
            except UserError as error:
                raise type(error)(f"the judge of --dst-compare: {error}") from None
        return self._made


class Judges:
    """The judges of a process, one for all comparisons with the same settings of it.

    Of the calls that the settings allow each of so many workers has its part.
    """

    def __init__(self, workers: int = 0) -> None:
        self._workers = max(1, workers)
        self._made: dict[object, Judge] = {}

    def of(self, settings: ReplySettings) -> Judge:
        """Return the judge that settings name; none is a `UserError`."""
        address = None if settings.judge is None else settings.judge.full
        key = address, settings.judge_model, settings.judge_prices, settings.judge_calls
        if key not in self._made:
            calls = settings.judge_calls
            share = None if calls is None else max(_ORDERS, calls // self._workers)
            self._made[key] = Judge(replace(settings, judge_calls=share))
        return self._made[key]

    def reach(self) -> None:
        """Refuse a judge that does not answer."""
        for judge in self._made.values():
            judge.reach()

    @property
    def facts(self) -> JudgeFacts | None:
        """What all of them took; ``None`` where nobody was asked."""
        found = [facts for judge in self._made.values() if (facts := judge.facts) is not None]
        return sum(found[1:], found[0]) if found else None


def is_tested_model(settings: ReplySettings, tested: TrackerSettings) -> bool:
    """Whether the judge is the tested model: the same address, and no other model there.

    A service of which nobody names a model has only one.
    """
    names = {settings.judge_model, tested.service_model} - {None}
    model = tested.model if isinstance(tested.model, Address) else None
    if model is None or settings.judge is None:
        return False
    return _plain_address(model) == _plain_address(settings.judge) and len(names) < 2


def _plain_address(address: Address) -> str:
    return address.full.lower().rstrip("/").removesuffix("/v1")


def _pair(before: str, found: str, asked: Context) -> _Pair:
    first, second = sorted((before, found))
    return asked.user, first, second
