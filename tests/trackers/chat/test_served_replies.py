"""A model that was trained to reply, behind a real server, tested for its replies end to end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from served_model import NEEDS_SERVER, serving_model

pytest.importorskip("transformers", reason="the extra models is not installed")
pytestmark = NEEDS_SERVER

#: What the user says -> what the system is recorded to have said.
TALKS = [
    [
        ("What are your open hours please", "We open at nine."),
        ("When is my parcel", "It comes on Friday."),
    ],
    [("What does a tea cost", "A cup of tea is two pounds.")],
    [
        ("Hi can I book a table please", "Sure, tell us how many you are."),
        ("Can I rent a bike", "You can have one for ten pounds a day."),
    ],
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Train the model and serve it; its address and folder."""
    from tiny_talker import save_tiny_talker  # noqa: PLC0415 - needs what may be missing

    folder = tmp_path_factory.mktemp("talker")
    save_tiny_talker(folder)
    with serving_model(folder) as address:
        yield address, folder


@pytest.fixture
def shop(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder with the dialogues."""
    lines = [
        {
            "dialogue_id": f"d{number}",
            "utterances": [text for pair in talk for text in pair],
        }
        for number, talk in enumerate(TALKS)
    ]
    (pytester.path / "shop.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return pytester


def test_a_wrong_model_name_is_one_clear_message(
    shop: pytest.Pytester, server: tuple[str, Path]
) -> None:
    named = (f"--dst-model={server[0]}", "--dst-tracker=service-model=gpt")
    run = shop.runpytest(*named, "--dst-data=shop.jsonl", "--dst-outcome=reply")
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines(["ERROR: the bot cannot be tested: *answered 400*requested 'gpt'*"])


def test_a_served_model_is_tested_for_its_replies(
    shop: pytest.Pytester, server: tuple[str, Path]
) -> None:
    from tiny_talker import BRITTLE, OTHERWISE  # noqa: PLC0415 - likewise

    address, folder = server
    how = (
        *(f"--dst-model={address}", f"--dst-tracker=service-model={folder}"),
        *("--dst-data=shop.jsonl", "--dst-outcome=reply", "--dst-compare=exact"),
        *("--dst-validity=edit-rate", "--dst-edits=char_drop,char_replace"),
        *("--dst-transformations=1", "--dst-variants=12", "--dst-report=report.json"),
        "--dst-max-failure-rate=100%",
    )
    run = shop.runpytest(*how)
    run.assert_outcomes(passed=5)
    report = json.loads((shop.path / "report.json").read_text(encoding="utf-8"))
    turns = report["turns"]
    # It replies as it was taught, also after another question.
    recorded = [reply for talk in TALKS for _, reply in talk]
    assert [turn["clean_state"]["reply"] for turn in turns] == recorded
    assert report["summary"]["errors"] == 0
    broken = [
        (turn["user"], variant)
        for turn in turns
        for variant in turn["variants"]
        if variant["outcome"] == "violation"
    ]
    # The word that a reply hangs on is found, and what it says without it.
    assert broken
    assert {user for user, _ in broken} == {"When is my parcel"}
    for _, variant in broken:
        assert BRITTLE not in variant["text"].lower().split()
        (change,) = variant["changed_slots"]
        assert (change["before"], change["after"]) == ("It comes on Friday.", OTHERWISE)
    assert report["run"]["usage"]["uncounted"] == 0
