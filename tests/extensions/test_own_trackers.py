"""Trackers and kinds of address of others: by name, with keys of their own, and no secret shown."""

from __future__ import annotations

import json
import shutil
import socketserver
import threading
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from keyword_tracker import Keywords

from pytest_dstfuzz import register_scheme, register_tracker
from pytest_dstfuzz.cli import main
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet, Exchange
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.registry import entry_points
from pytest_dstfuzz.trackers.registry import TRACKERS, call_factory, resolve_tracker, tracker_for
from pytest_dstfuzz.trackers.schemes import SCHEMES

HERE = Path(__file__).parents[2] / "examples" / "extension"
PASSWORD = "s3cret-of-lines"  # noqa: S105 - of a service that a test runs itself
SAID = Context((Exchange("", "zebras would feel fine up north"),))
DATA = DialogueSet("talks", "test", ())


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TRACKERS, "_registered", {})
    monkeypatch.setattr(SCHEMES, "_registered", {})


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an installed package bring both examples by entry points."""
    points = [
        metadata.EntryPoint("keywords", "keyword_tracker:Keywords", "pytest_dstfuzz.trackers"),
        metadata.EntryPoint("lines", "lines_scheme:create", "pytest_dstfuzz.schemes"),
    ]
    monkeypatch.setattr(
        "pytest_dstfuzz.registry.entry_points",
        lambda group: [*entry_points(group), *(one for one in points if one.group == group)],
    )


class _Lines(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        first, *said = json.loads(self.rfile.readline())
        areas = [area for area in ("north", "south") if area in " ".join([first or "", *said])]
        answer = {"hotel-area": areas[-1]} if areas else {}
        self.wfile.write(json.dumps(answer).encode() + b"\n")


@pytest.fixture
def address() -> Iterator[str]:
    """Of a service that answers one line of JSON with another."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Lines) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"lines://bot:{PASSWORD}@127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def states(tracker: object) -> list[object]:
    return [answer.state for answer in tracker.predict([SAID])]  # type: ignore[attr-defined]


@pytest.mark.usefixtures("installed")
def test_packages_bring_trackers_and_kinds_of_address(address: str) -> None:
    assert resolve_tracker("keywords").predict([SAID]) == [{"hotel-area": "north"}]
    assert states(tracker_for(Settings.of(model=address), DATA)) == [{"hotel-area": "north"}]
    with pytest.raises(UserError, match=r"'keyword'. Did you mean 'keywords'\? Valid: .*'?trade"):
        resolve_tracker("keyword")
    with pytest.raises(UserError, match=r"unknown kind of address 'line://'. Did you mean 'lines:"):
        tracker_for(Settings.of(model="line://h"), DATA)


@pytest.mark.parametrize("keys", [{}, {"slot": "taxi-area"}], ids=["none", "one"])
def test_a_factory_declares_its_keys(keys: dict[str, str]) -> None:
    register_tracker("keywords", Keywords)
    tracker = resolve_tracker("keywords", keys=keys)
    assert tracker.predict([SAID]) == [{keys.get("slot", "hotel-area"): "north"}]


def test_weights_and_device_reach_a_factory_that_takes_them() -> None:
    given: dict[str, object] = {}

    def load(checkpoint: str | None, device: str, batch_size: int, beams: int = 1) -> Keywords:
        given.update(checkpoint=checkpoint, device=device, batch_size=batch_size, beams=beams)
        return Keywords()

    register_tracker("weighed", load)
    settings = Settings.of(
        model="weighed", tracker=("checkpoint=mine", "device=cuda:1", "beams=4"), batch_size=8
    )
    tracker_for(settings, DATA)
    assert given == {"checkpoint": "mine", "device": "cuda:1", "batch_size": 8, "beams": 4}


def test_mistakes_in_keys_are_named() -> None:
    register_tracker("keywords", Keywords)
    register_tracker("bare", lambda context: {})  # noqa: ARG005 - no factory at all
    with pytest.raises(UserError, match=r"'keywords': unknown key 'slots'. Did you mean 'slot'\?"):
        resolve_tracker("keywords", keys={"slots": "x"})
    with pytest.raises(
        UserError, match=r"'bare' needs a value for 'context': add --dst-tracker cont"
    ):
        resolve_tracker("bare")
    with pytest.raises(UserError, match="'keywords' does not accept a checkpoint"):
        resolve_tracker("keywords", checkpoint="x")
    with pytest.raises(UserError, match=r"Keywords' accepts no keys \(slot\)"):
        resolve_tracker("keyword_tracker:Keywords", keys={"slot": "x"})
    with pytest.raises(UserError, match=r"unknown key 'retrys'. Did you mean 'retries'\?"):
        tracker_for(Settings.of(model="http://h", tracker={"retrys": "1"}), DATA)


@pytest.mark.parametrize(
    ("text", "value"), [("n=3", 3), ("x=0.5", 0.5), ("on=no", False), ("p=a/b", Path("a/b"))]
)
def test_values_of_keys_have_the_type_of_their_parameter(text: str, value: object) -> None:
    def factory(
        n: int = 0,
        *,
        x: float | None = None,
        on: bool = True,
        p: Path = Path(),
        s: str = "",
    ) -> dict[str, object]:
        return {"n": n, "x": x, "on": on, "p": p, "s": s}

    key, _, given = text.partition("=")
    assert call_factory(factory, "it", {"device": "cpu"}, {key: given})[key] == value  # type: ignore[index]


@pytest.mark.parametrize(("key", "expected"), [("n", "a whole number"), ("on", "yes or no")])
def test_a_value_of_another_type_is_refused(key: str, expected: str) -> None:
    def factory(*, n: int = 0, on: bool = True) -> None: ...

    with pytest.raises(UserError, match=f"^it: {key}=perhaps must be {expected}$"):
        call_factory(factory, "it", {}, {key: "perhaps"})


def test_a_name_that_ships_is_taken() -> None:
    with pytest.raises(UserError, match="the tracker 'trade' ships with pytest-dstfuzz"):
        register_tracker("trade", Keywords)
    with pytest.raises(UserError, match=r"the kind of address 'rasa\+http' ships"):
        register_scheme("rasa+http", Keywords)
    with pytest.raises(UserError, match="'lines://' cannot be the name of a kind of address"):
        register_scheme("lines://", Keywords)


def test_what_goes_wrong_at_an_address_shows_no_credential() -> None:
    def create(address: str) -> object:
        raise RuntimeError(f"cannot log in at {address.full}")  # type: ignore[attr-defined]

    register_scheme("lines", create)
    with pytest.raises(UserError) as caught:
        tracker_for(Settings.of(model=f"lines://u:{PASSWORD}@h"), DATA)
    assert str(caught.value).startswith(
        "the tracker at lines://***@h cannot be created: RuntimeError: cannot log in at lines://***@h"
    )
    assert PASSWORD not in str(caught.value)


def test_an_address_that_is_none_is_for_its_factory_to_refuse() -> None:
    def create(address: str) -> object:
        raise ValueError(f"no address: {address.full}")  # type: ignore[attr-defined]

    register_scheme("lines", create)
    with pytest.raises(
        UserError, match=r"cannot be created: ValueError: no address: lines://\*\*\*@\["
    ):
        tracker_for(Settings.of(model=f"lines://u:{PASSWORD}@[h"), DATA)


@pytest.fixture
def bots(pytester: pytest.Pytester) -> pytest.Pytester:
    """A suite whose conftest.py registers both examples."""
    for name in ("keyword_tracker.py", "lines_scheme.py"):
        shutil.copy(HERE / name, pytester.path)
    pytester.syspathinsert()
    pytester.makeconftest(
        "from keyword_tracker import Keywords\n"
        "from lines_scheme import create\n"
        "from pytest_dstfuzz import register_scheme, register_tracker\n"
        "register_tracker('keywords', Keywords)\n"
        "register_scheme('lines', create)\n"
    )
    return pytester


def test_a_suite_registers_a_tracker(bots: pytest.Pytester) -> None:
    ran = bots.runpytest_inprocess("--dst-model=keywords", "--dst-turns=4", "--dst-variants=2")
    ran.stdout.fnmatch_lines(["dstfuzz: keywords on sample (test,*", "verdict *0 of 4 tested *"])
    ran = bots.runpytest_inprocess("--dst-model=keyword", "--dst-turns=4")
    ran.stderr.fnmatch_lines(["ERROR: unknown tracker 'keyword'. Did you mean 'keywords'?*"])


def test_a_suite_registers_a_kind_of_address(bots: pytest.Pytester, address: str) -> None:
    options = ("--dst-turns=4", "--dst-variants=2", "--dst-report=report.json", "-rA")
    ran = bots.runpytest_inprocess(f"--dst-model={address}", *options)
    ran.stdout.fnmatch_lines(["verdict *0 of 4 tested turns break*"])
    report = (bots.path / "report.json").read_text()
    assert '"model": "lines://***@127.0.0.1' in report
    assert PASSWORD not in ran.stdout.str() + ran.stderr.str() + report


@pytest.mark.usefixtures("installed")
def test_commands_know_what_packages_bring(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for model in ("keywords", address):
        assert main(["check-tracker", "--model", model, "--turns", "6", "--json"]) in (0, 1)
        said = capsys.readouterr()
        assert PASSWORD not in said.out + said.err
        assert json.loads(said.out)["turns"] >= 6
