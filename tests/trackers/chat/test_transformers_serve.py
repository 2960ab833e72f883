"""A real server (the one that ships with transformers) and a small real model, end to end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from served_model import NEEDS_SERVER, serving_model

pytest.importorskip("transformers", reason="the extra models is not installed")
pytestmark = NEEDS_SERVER
TALKS = [
    ["Hi, I want a large pizza with olives", "Thin crust, please"],
    ["We would like one small pizza", "A thick crust and olives, please"],
    ["I want pizza", "The medium one, please, with olives", "Thin"],
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Train the model, serve it in a process of its own; its address and folder."""
    from tiny_model import save_tiny_model  # noqa: PLC0415 - needs what may be missing

    folder = tmp_path_factory.mktemp("tiny")
    save_tiny_model(folder)
    with serving_model(folder) as address:
        yield address, folder


@pytest.fixture
def shop(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder with conversations about pizzas, their ontology and the model's prompt."""
    from tiny_model import CRUSTS, PROMPT, SIZES  # noqa: PLC0415 - likewise

    lines = [
        json.dumps({"dialogue_id": f"p{number}", "turns": [{"user": user} for user in users]})
        for number, users in enumerate(TALKS)
    ]
    files = {
        "talks.jsonl": "\n".join(lines),
        "talks.ontology.json": json.dumps({"pizza-size": SIZES, "pizza-crust": CRUSTS}),
        "prompt.jinja": PROMPT,
    }
    for name, text in files.items():
        (pytester.path / name).write_text(text, encoding="utf-8")
    return pytester


@pytest.mark.nightly
def test_a_chat_model_is_tested_end_to_end(shop: pytest.Pytester, server: tuple[str, Path]) -> None:
    address, folder = server
    options = (
        *(
            f"--dst-model={address}",
            f"--dst-tracker=service-model={folder}",
            "--dst-data=talks.jsonl",
        ),
        *(
            "--dst-tracker=prompt=prompt.jinja",
            "--dst-tracker=prices=1,2",
            "--dst-validity=edit-rate",
        ),
        *("--dst-edits=char_drop,char_replace", "--dst-max-failure-rate=100%"),
    )
    reports = []
    for number in range(2):
        run = shop.runpytest(*options, f"--dst-report={number}.json")
        run.assert_outcomes(passed=7)
        report = json.loads((shop.path / f"{number}.json").read_text(encoding="utf-8"))
        reports.append(report)
    report = reports[0]
    # It understood: the states of the clean turns are right.
    assert [turn["clean_state"] for turn in report["turns"]] == [
        {"pizza-size": "large"},
        {"pizza-size": "large", "pizza-crust": "thin"},
        {"pizza-size": "small"},
        {"pizza-size": "small", "pizza-crust": "thick"},
        {},
        {"pizza-size": "medium"},
        {"pizza-size": "medium", "pizza-crust": "thin"},
    ]
    # And a misspelt size is lost: a real weakness of a real model.
    summary, usage = report["summary"], report["run"]["usage"]
    assert summary["errors"] == 0
    assert summary["violations"] > 0
    changes = [c for t in report["turns"] for v in t["variants"] for c in v["changed_slots"]]
    assert ("pizza-size", None) in {(change["slot"], change["after"]) for change in changes}
    assert report["run"]["disagreement"] == {"contexts": 7, "answers": 3, "differed": 0}
    assert usage["answers"] == report["run"]["contexts"]["asked"] + 3 * 7
    assert usage["uncounted"] == 0
    assert usage["prompt_tokens"] > usage["completion_tokens"] > usage["answers"]
    assert usage["cost"] == pytest.approx(
        (usage["prompt_tokens"] + 2 * usage["completion_tokens"]) / 1e6, abs=1e-4
    )
    # The same bytes once more, but for `run`.
    assert [{**r, "run": None} for r in reports] == [{**report, "run": None}] * 2
