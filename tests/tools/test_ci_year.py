"""The year of CI: each build does to recorded turns what its label says."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz import Context
from pytest_dstfuzz.dialogue.dialogues import Exchange
from tools.ci_year import clinic, museum, parcels
from tools.ci_year.__main__ import new_violations
from tools.ci_year.builds import VARIABLE, Build

DATA = Path(clinic.__file__).parent / "data"
BUILDS = {"clinic": clinic.BUILDS, "parcels": parcels.BUILDS, "museum": museum.BUILDS}
EVERY: list[tuple[str, Build[Any]]] = [(bot, build) for bot in BUILDS for build in BUILDS[bot]]


def lines(bot: str) -> Iterator[dict[str, Any]]:
    with (DATA / f"{bot}.jsonl").open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def clinic_answers() -> Iterator[object]:
    for line in lines("clinic"):
        turns = [Exchange(turn["system"], turn["user"]) for turn in line["turns"]]
        for n in range(len(turns)):
            yield dict(clinic.track(Context(tuple(turns[: n + 1]))))


def parcels_answers() -> Iterator[object]:
    for line in lines("parcels"):
        for n, message in enumerate(line["messages"]):
            if message["role"] == "user":
                yield calls(parcels.answer(line["messages"][: n + 1], []))


def calls(message: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    functions = [call["function"] for call in message.get("tool_calls", [])]
    return [(one["name"], json.loads(one["arguments"])) for one in functions]


def museum_answers() -> Iterator[object]:
    for line in lines("museum"):
        for text in line["users"]:
            reply = museum.reply([{"role": "user", "content": text}])
            yield " ".join(reply.replace("’", "'").split())


ANSWERS: dict[str, Callable[[], Iterator[object]]] = {
    "clinic": clinic_answers,
    "parcels": parcels_answers,
    "museum": museum_answers,
}


@functools.cache
def trusted_answers(bot: str) -> list[object]:
    return list(ANSWERS[bot]())


def test_the_year_has_28_builds_of_each_bot() -> None:
    assert [len(builds) for builds in BUILDS.values()] == [28, 28, 28]
    labels = [build.label for _, build in EVERY]
    assert [labels.count(label) for label in ("harmless", "changed", "brittle")] == [33, 41, 10]


@pytest.mark.parametrize(("bot", "build"), EVERY, ids=lambda part: getattr(part, "name", part))
def test_only_changed_builds_answer_recorded_turns_otherwise(
    bot: str, build: Build[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    trusted = trusted_answers(bot)
    monkeypatch.setenv(VARIABLE, build.name)
    assert (list(ANSWERS[bot]()) != trusted) is (build.label == "changed")


def test_new_violations_are_those_of_variants_that_held() -> None:
    def report(*outcomes: str) -> dict[str, Any]:
        variants = [
            {"index": n, "text": f"text {n}", "context": [], "outcome": outcome}
            for n, outcome in enumerate(outcomes)
        ]
        return {"turns": [{"id": "turn", "variants": variants}]}

    trusted = report("held", "violation", "held")
    assert new_violations(trusted, report("violation", "violation", "held")) == 1
    assert new_violations(trusted, trusted) == 0
