"""Checks that final states of whole conversations are compared rightly, with a planted fault.

``python -m tools.calls.rollouts --data ../shared/data/sgd --dialogues 200``: the assistant holds
each dialogue itself, once with clean utterances and once with all utterances as people would type
them. Then the final states are compared. The planted fault: if an utterance ends without a
punctuation mark, the assistant does not call a tool that changes something, but asks whether it
should.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from pytest_dstfuzz import Campaign, Settings, TurnResult
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.dialogue.messages import calls_of
from pytest_dstfuzz.trackers.adapters import as_tracker
from pytest_dstfuzz.trackers.registry import resolve_tracker
from pytest_dstfuzz.trackers.rolling import RollingCalls
from pytest_dstfuzz.trackers.tracker import Tracker, fingerprint_of
from tools.calls.sgd_x import drawn, parser_of

Messages = Sequence[Mapping[str, Any]]


class Hesitant:
    """An assistant with the planted fault."""

    repeatable = True

    def __init__(self, wrapped: Tracker, changing: frozenset[str]) -> None:
        answer = getattr(wrapped, "wrapped", wrapped)
        self._answer = cast("Callable[[Messages, Messages], object]", answer)
        self._changing = changing

    def __call__(self, messages: Messages, tools: Messages) -> object:
        """Return the message of the sound assistant, or a question instead of a call."""
        message = self._answer(messages, tools)
        said = str(messages[-1].get("content") or "").rstrip()
        if messages[-1]["role"] != "user" or said.endswith((".", "!", "?")):
            return message
        called = {call.name for call in calls_of(message)}
        return "Shall I?" if called & self._changing else message


def rolled(assistant: object, data: DialogueSet, seed: int, variants: int) -> list[TurnResult]:
    """Return the results of a campaign of whole conversations, turn by turn."""
    settings = Settings.of(
        outcome="tool-calls",
        history="own",
        attack="cumulative",
        turns="all",
        variants=variants,
        shrink=False,
        repeatable=True,
        seed=seed,
    )
    return list(Campaign(assistant, data, settings))


def row(name: str, results: Sequence[TurnResult], requests: int, seconds: float) -> str:
    """Return a row of the table."""
    ends = {one.dialogue_id: one for one in results}
    right = sum(one.is_right is True for one in ends.values())
    violations = [variant for one in results for variant in one.violations]
    broken = {one.dialogue_id for one in results if one.violations}
    cells = [
        f"{len(ends):,}",
        f"{len(results):,}",
        f"{requests:,}",
        f"{100 * right / len(ends):.1f} %",
        f"{len(violations):,}",
        f"{len(broken):,}",
        f"{seconds:.0f} s",
    ]
    return f"| {name} | {' | '.join(cells)} |"


def found_alone(sound: Sequence[TurnResult], faulty: Sequence[TurnResult]) -> tuple[int, int]:
    """Return how many variants and dialogues are violations of the faulty assistant alone."""
    known = {(one.id, v.index) for one in sound for v in one.violations}
    new = [one for one in faulty for v in one.violations if (one.id, v.index) not in known]
    return len(new), len({one.dialogue_id for one in new})


def main() -> None:
    """Print the table."""
    parser = parser_of(__doc__)
    parser.add_argument("--variants", type=int, default=2)
    given = parser.parse_args()
    whole = load_dialogues(given.data, given.split, outcome="tool-calls")
    data = drawn(whole, given.dialogues, given.seed)
    changing = frozenset(
        tool.name for one in data.dialogues for tool in one.tools if not tool.read_only
    )
    made = resolve_tracker(given.model, outcome="tool-calls")
    print(f"{given.model}: {fingerprint_of(made)}\n")
    print("| assistant | dialogues | turns | requests | right | violations | of dialogues | took |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    kept = []
    for name in ("sound", "with the planted fault"):
        assistant = made if name == "sound" else Hesitant(made, changing)
        rolling = resolve_rolling(assistant)
        start = time.monotonic()
        kept.append(rolled(rolling, data, given.seed, given.variants))
        print(row(name, kept[-1], rolling.requests, time.monotonic() - start), flush=True)
    variants, dialogues = found_alone(*kept)
    print(f"\nviolations of the faulty one alone: {variants:,}, in {dialogues:,} dialogues")


def resolve_rolling(assistant: object) -> RollingCalls:
    """Return an assistant that goes through dialogues by itself."""
    made = as_tracker(assistant, outcome="tool-calls", history="own")
    assert isinstance(made, RollingCalls)  # noqa: S101 - that is what this history asks for
    return made


if __name__ == "__main__":
    main()
