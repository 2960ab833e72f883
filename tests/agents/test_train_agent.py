"""Training runs on a toy tracker: cut in two, killed, damaged, and counted."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from planted import PlantedBot, write_folder

pytest.importorskip("torch")

from safetensors import safe_open
from safetensors.numpy import save_file

from pytest_dstfuzz.agents.policies import load_policy
from pytest_dstfuzz.agents.training import train_agent as module
from pytest_dstfuzz.agents.training.multi_pdqn import LearnerConfig
from pytest_dstfuzz.agents.training.train_agent import AgentRun, train_agent
from pytest_dstfuzz.agents.training.trainer import Round, TensorBoardLogger, TrainingConfig
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context
from pytest_dstfuzz.errors import MissingExtraError, TrackerError, UserError
from pytest_dstfuzz.files import lock_file
from pytest_dstfuzz.trackers.tracker import Prediction

STATE, POLICY = "training.safetensors", "agent.safetensors"
#: Rounds of at most 48 calls after those for the clean turns; the memory wraps around.
CONFIG = TrainingConfig(
    calls=300,
    attempts=3,
    dialogues=8,
    replay=100,
    batch=16,
    learning_starts=40,
    train_frequency=8,
    learner=LearnerConfig(hidden=16),
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("bakery"))


def run_of(data: Path, output: Path, **changes: Any) -> AgentRun:
    """Return a run of a few seconds; changes of its training go by their names too."""
    own = {item.name for item in dataclasses.fields(TrainingConfig)}
    training = {name: changes.pop(name) for name in list(changes) if name in own}
    config = dataclasses.replace(CONFIG, **training)
    return AgentRun("planted:PlantedBot", str(data), output, training=config, **changes)


def silent(_: str) -> None:
    """Take a line and drop it."""


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that was not cut."""
    output = tmp_path_factory.mktemp("whole")
    lines: list[str] = []
    result = train_agent(run_of(data, output), lines.append, PlantedBot())
    assert result.ended_by == "calls"
    assert result.policy == output / POLICY
    assert sum("ETA" in line for line in lines) == len(result.history) >= 5
    return output


def same(one: Path, other: Path) -> bool:
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in (STATE, POLICY))


def test_the_policy_tells_how_it_came_to_be(whole: Path) -> None:
    about = load_policy(whole).about
    assert about.tracker == "planted:PlantedBot"
    assert about.data.endswith(" val+test, right dialogues")
    assert (about.order, about.validity, about.attack) == ("distance", "strict", "hybrid")
    assert (about.reward, about.ks, about.attempts, about.seed) == (
        "broken",
        (1, 2, 3, 4, 5, 6),
        3,
        0,
    )
    assert 250 < about.calls <= 300
    assert len(about.held_out) == 4
    assert {name.rstrip("0123456789") for name in about.held_out} <= {"val", "test"}


def test_two_runs_are_the_same(data: Path, whole: Path, tmp_path: Path) -> None:
    train_agent(run_of(data, tmp_path), silent, PlantedBot())
    assert same(tmp_path, whole)
    train_agent(run_of(data, tmp_path / "other", seed=1), silent, PlantedBot())
    assert not same(tmp_path / "other", whole)


def test_a_run_cut_after_every_round_is_the_uninterrupted_one(
    data: Path, whole: Path, tmp_path: Path
) -> None:
    first = train_agent(run_of(data, tmp_path, max_minutes=1e-9), silent, PlantedBot())
    assert (first.ended_by, len(first.history)) == ("max_minutes", 1)
    for _ in range(20):
        more = run_of(data, tmp_path, max_minutes=1e-9, resume=True)
        result = train_agent(more, silent, PlantedBot())
        if result.ended_by == "calls":
            break
    assert same(tmp_path, whole)
    # There is nothing left to do, and nothing changes.
    lines: list[str] = []
    train_agent(run_of(data, tmp_path, resume=True), lines.append, PlantedBot())
    assert same(tmp_path, whole)
    assert not any("ETA" in line for line in lines)


@pytest.mark.nightly
@pytest.mark.parametrize("calls", [100, 200])
def test_a_killed_run_goes_on(data: Path, whole: Path, tmp_path: Path, calls: int) -> None:
    program = f"""
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
from planted import PlantedBot
from test_train_agent import run_of, train_agent

class Killed(PlantedBot):
    asked = 0

    def predict(self, contexts):
        self.asked += len(contexts)
        if self.asked > {calls}:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().predict(contexts)

train_agent(run_of(Path({str(data)!r}), Path({str(tmp_path)!r})), print, Killed())
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert run.returncode == -9, run.stderr
    assert (tmp_path / STATE).exists()
    assert not same_file(tmp_path, whole, STATE)
    train_agent(run_of(data, tmp_path, resume=True), silent, PlantedBot())
    assert same(tmp_path, whole)


def same_file(one: Path, other: Path, name: str) -> bool:
    return (one / name).read_bytes() == (other / name).read_bytes()


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["write_run", "save_policy"])
@pytest.mark.parametrize("number", [2, 4])
def test_an_interrupt_while_writing_costs_a_round_at_most(
    data: Path,
    whole: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    number: int,
) -> None:
    true, times = getattr(module, name), iter(range(100))

    def interrupted(*arguments: Any) -> None:
        if next(times) == number:
            raise KeyboardInterrupt
        true(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(module, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            train_agent(run_of(data, tmp_path), silent, PlantedBot())
    train_agent(run_of(data, tmp_path, resume=True), silent, PlantedBot())
    assert same(tmp_path, whole)


class Counting(PlantedBot):
    """Counts the contexts that it is asked for."""

    def __init__(self) -> None:
        self.asked: list[Context] = []

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        self.asked += contexts
        return super().predict(contexts)


def test_calls_are_what_the_tracker_was_asked(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bot = Counting()
    counted: list[int] = []
    true = module.TrainingPredictor

    def begun(*arguments: Any) -> object:
        # Before it come the preflight and the accuracy, which are no part of the training.
        counted.append(len(bot.asked))
        return true(*arguments)

    monkeypatch.setattr(module, "TrainingPredictor", begun)
    result = train_agent(run_of(data, tmp_path), silent, bot)
    last = result.history[-1]
    assert last.calls_so_far == len(bot.asked) - counted[0]
    rounds = sum(item.calls for item in result.history)
    clean = bot.asked[counted[0] : -rounds]
    assert last.calls_so_far == len(set(clean)) + rounds
    assert not set(clean) & set(bot.asked[-rounds:])


@pytest.mark.parametrize("calls", [90, 173, 256])
def test_the_budget_is_never_exceeded(data: Path, tmp_path: Path, calls: int) -> None:
    result = train_agent(run_of(data, tmp_path, calls=calls), silent, PlantedBot())
    used = result.history[-1].calls_so_far
    # Less than a dialogue is left: two turns, three attempts each.
    assert calls - 6 < used <= calls


def test_a_budget_that_pays_for_nothing_is_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"calls \(20\) must be more than"):
        train_agent(run_of(data, tmp_path, calls=20), silent, PlantedBot())
    assert not (tmp_path / STATE).exists()


def test_every_dialogue_comes_before_one_comes_again(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[list[str]] = []
    true = module.Environment.reset

    def reset(self: Any, group: Any, seed: int) -> Any:
        played.append([dialogue.id for dialogue in group])
        return true(self, group, seed)

    monkeypatch.setattr(module.Environment, "reset", reset)
    train_agent(run_of(data, tmp_path, dialogues=6), silent, PlantedBot())
    assert [len(group) for group in played[:4]] == [6, 6, 4, 6]
    first = [name for group in played[:3] for name in group]
    assert len(set(first)) == 16
    held_out = load_policy(tmp_path).about.held_out
    assert not set(held_out) & {name for group in played for name in group}


def test_exploration_falls_to_its_end(data: Path, tmp_path: Path) -> None:
    run = run_of(data, tmp_path, exploration_fraction=0.5, epsilon_end=0.1)
    history = train_agent(run, silent, PlantedBot()).history
    shares = [item.epsilon for item in history]
    assert shares == sorted(shares, reverse=True)
    # The calls for the clean turns are none of those over which it falls.
    clean = history[0].calls_so_far - history[0].calls
    assert clean > 0
    assert shares[0] == 1.0
    assert shares[1] == pytest.approx(1 - history[0].calls / (300 - clean) / 0.5 * 0.9)
    assert shares[-1] == 0.1
    fixed = run_of(data, tmp_path / "fixed", exploration_fraction=0.0, epsilon_end=0.3, calls=100)
    assert {item.epsilon for item in train_agent(fixed, silent, PlantedBot()).history} == {0.3}


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    """A copy of a run, to be damaged."""
    shutil.copytree(whole, tmp_path / "copy")
    return tmp_path / "copy"


def test_an_earlier_run_is_not_written_over(data: Path, copy: Path) -> None:
    with pytest.raises(UserError, match="already has a training run: continue it with --resume"):
        train_agent(run_of(data, copy), silent, PlantedBot())


def test_nothing_to_resume_from(data: Path, tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=f"has no {STATE}, so it is not the folder of a training run"
    ):
        train_agent(run_of(data, tmp_path, resume=True), silent, PlantedBot())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 1}, "seed was 0 and is now 1"),
        ({"reward": "gini"}, "reward was 'broken' and is now 'gini'"),
        ({"calls": 400}, "calls was 300 and is now 400"),
        ({"validity": "edit-rate"}, "validity was 'strict' and is now 'edit-rate'"),
        ({"order": "reading"}, "order was 'distance' and is now 'reading'"),
        ({"attack": "cumulative"}, "attack was 'hybrid' and is now 'cumulative'"),
        ({"learner": LearnerConfig(hidden=8)}, "learner was .*'hidden': 16.*'hidden': 8"),
        ({"batch_size": 8}, "batch_size was 64 and is now 8"),
        ({"splits": ("test",)}, r"the data lacks \d+ dialogues .*, such as 'val\d+'"),
    ],
)
def test_another_run_cannot_be_resumed(
    data: Path, copy: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=rf"cannot resume from .*: {message}"):
        train_agent(run_of(data, copy, resume=True, **change), silent, PlantedBot())


class OtherBot(PlantedBot):
    """Believes nothing."""

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        return [dataclasses.replace(item, state={}) for item in super().predict(contexts)]


def test_another_tracker_cannot_be_resumed_with(data: Path, copy: Path) -> None:
    with pytest.raises(
        UserError, match=r"changed since the earlier run: the tracker's clean answers"
    ):
        train_agent(run_of(data, copy, resume=True), silent, OtherBot())


class ChangedCode(PlantedBot):
    """Answers clean turns as before, from another file."""


def test_changed_code_of_the_tracker_cannot_be_resumed_with(data: Path, copy: Path) -> None:
    with pytest.raises(UserError, match=r"cannot resume from .* changed .* the tracker, its"):
        train_agent(run_of(data, copy, resume=True), silent, ChangedCode())


def test_changed_texts_cannot_be_resumed_with(data: Path, copy: Path, tmp_path: Path) -> None:
    def texts(change: str) -> Path:
        folder = shutil.copytree(data, tmp_path / f"data{change}")
        for file in filter(Path.is_file, folder.rglob("*")):
            text = file.read_text(encoding="utf-8")
            file.write_text(text.replace(" my ", f" {change} "), encoding="utf-8")
        return folder

    with pytest.raises(UserError, match=r"cannot resume from .* changed .* the texts or labels"):
        train_agent(run_of(texts("ur"), copy, resume=True), silent, PlantedBot())
    # The data may move.
    train_agent(run_of(texts("my"), copy, resume=True), silent, PlantedBot())


def damage(folder: Path, change: Callable[[dict[str, Any], dict[str, Any]], object]) -> None:
    """Change the tensors and the described metadata of a run's state."""
    with safe_open(folder / STATE, "np") as file:
        described = json.loads(file.metadata()["dstfuzz"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    change(tensors, described)
    save_file(tensors, folder / STATE, {"dstfuzz": json.dumps(described)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _, about: about.clear(), r"is damaged \(lacks 'counters'\)"),
        (lambda _, about: about["run"].pop("right"), r"is damaged \(run: lacks 'right'\)"),
        (lambda _, about: about["run"].pop("identity"), r"is damaged \(run: lacks 'identity'\)"),
        (
            lambda _, about: about["run"]["identity"].pop("seed"),
            "does not contain the setting seed",
        ),
        (lambda _, about: about.pop("history"), "is damaged .*history"),
        (lambda _, about: about["counters"].pop("steps"), "is damaged .*steps"),
        (lambda _, about: about.update(counters=1), "is damaged"),
        (lambda tensors, _: tensors.pop("actor.0.weight"), "lacks the tensor 'actor.0.weight'"),
        (
            lambda tensors, _: tensors.pop("critic_optimiser.0.exp_avg"),
            "lacks the tensor 'critic_optimiser.0.exp_avg'",
        ),
        (
            lambda tensors, _: tensors.update({"replay.k": tensors["replay.k"][:3]}),
            r"'replay.k' has the shape \[3\], not \[100\]",
        ),
    ],
)
def test_a_damaged_state_cannot_be_resumed(
    data: Path, copy: Path, change: Callable[[dict[str, Any], dict[str, Any]], object], message: str
) -> None:
    damage(copy, change)
    with pytest.raises(UserError, match=f"cannot resume from .*{message}"):
        train_agent(run_of(data, copy, resume=True), silent, PlantedBot())


@pytest.mark.parametrize("content", [b"", b"short", None])
def test_a_state_that_is_cut_off_cannot_be_resumed(
    data: Path, copy: Path, content: bytes | None
) -> None:
    whole = (copy / STATE).read_bytes()
    (copy / STATE).write_bytes(whole[:-50] if content is None else content)
    with pytest.raises(UserError, match=f"cannot resume from .*: {STATE} is damaged"):
        train_agent(run_of(data, copy, resume=True), silent, PlantedBot())


def test_metadata_that_is_no_object_cannot_be_resumed(data: Path, copy: Path) -> None:
    save_file({}, copy / STATE, {"dstfuzz": "[]"})
    with pytest.raises(UserError, match="does not describe its run"):
        train_agent(run_of(data, copy, resume=True), silent, PlantedBot())


class FailingBot(PlantedBot):
    """Fails on what is not clean and has a length that ``every`` divides."""

    def __init__(self, data: Path, every: int) -> None:
        tables = [(data / f"{split}.jsonl").read_text("utf-8") for split in ("val", "test")]
        lines = [json.loads(line) for table in tables for line in table.splitlines()]
        self.clean = {turn["user"] for line in lines for turn in line["turns"]}
        self.every = every

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        if any(len(c.user) % self.every == 0 and c.user not in self.clean for c in contexts):
            raise RuntimeError("out of bread")
        return super().predict(contexts)


def test_what_the_tracker_fails_on_is_no_break(data: Path, tmp_path: Path) -> None:
    history = train_agent(run_of(data, tmp_path), silent, FailingBot(data, 3)).history
    assert sum(item.attempts for item in history) > 100


def test_a_tracker_that_stops_answering_ends_the_run(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_dstfuzz.campaign.predictor.GIVE_UP_AFTER", 10)
    with pytest.raises(TrackerError, match=r"not called: the tracker failed on all .*out of br"):
        train_agent(run_of(data, tmp_path), silent, FailingBot(data, 1))


def test_training_that_diverges_is_told(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "pytest_dstfuzz.agents.training.multi_pdqn.MultiPDQN.update", lambda *_: (float("nan"), 0.0)
    )
    with pytest.raises(UserError, match=r"the training diverged in round \d: its loss is not"):
        train_agent(run_of(data, tmp_path), silent, PlantedBot())
    assert (tmp_path / STATE).exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"calls": 0}, "calls must be at least 1, not 0"),
        ({"train_frequency": 0}, "train_frequency must be at least 1"),
        ({"ks": ()}, r"ks must be numbers from 1 to 6, not \(\)"),
        ({"ks": (1, 7)}, r"ks must be numbers from 1 to 6, not \(1, 7\)"),
        ({"reward": "ginni"}, "unknown reward 'ginni'. Did you mean 'gini'"),
    ],
)
def test_settings_that_cannot_work_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        TrainingConfig(**change)


def test_fewer_dialogues_of_each_split(data: Path, tmp_path: Path) -> None:
    lines: list[str] = []
    run = run_of(data, tmp_path, max_dialogues=5, calls=60)
    train_agent(run, lines.append, PlantedBot())
    assert "training dialogues: 8 (16 turns), held out: 2" in lines


@pytest.mark.parametrize("labelled", [0, 3])
def test_without_labels_the_clean_answers_stand_for_them(tmp_path: Path, labelled: int) -> None:
    folder = write_folder(tmp_path / "few")
    for split in ("val", "test"):
        path = folder / f"{split}.jsonl"
        talks = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for talk in talks[labelled:]:
            for turn in talk["turns"]:
                del turn["state"]
        path.write_text("\n".join(map(json.dumps, talks)), encoding="utf-8")
    lines: list[str] = []
    run = run_of(folder, tmp_path / "out", calls=150)
    train_agent(run, lines.append, PlantedBot())
    assert "training dialogues: 16 (32 turns), held out: 4" in lines
    count = 20 - 2 * labelled
    assert any(line.startswith(f"{count} dialogues have no labels") for line in lines)
    told = (
        f"right dialogues ({count} of 20 without labels, compared with the tracker's own clean "
        "answers)"
    )
    assert load_policy(tmp_path / "out").about.data.endswith(told)
    if labelled:
        assert (
            "few val: joint goal accuracy 100.00 %, 3 of 3 dialogues right at every turn of the"
            in ("".join(lines))
        )
    train_agent(dataclasses.replace(run, resume=True), silent, PlantedBot())


def test_all_dialogues_but_those_held_out(data: Path, tmp_path: Path) -> None:
    """With a bot that gets some dialogues wrong there is more to train on, and no more held out."""

    class Forgetful(PlantedBot):
        def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
            found = super().predict(contexts)
            wrong = Prediction(BeliefState({}), None)
            first = [context.exchanges[0][1] for context in contexts]
            return [
                wrong if len(text) % 3 == 0 else answer
                for text, answer in zip(first, found, strict=True)
            ]

    said: dict[str, str] = {}
    for dialogues in ("right", "all"):
        lines: list[str] = []
        run = run_of(data, tmp_path / dialogues, calls=200)
        run = dataclasses.replace(run, dialogues=dialogues)
        train_agent(run, lines.append, Forgetful())
        said[dialogues] = next(line for line in lines if "training dialogues" in line)
        resumed = dataclasses.replace(run, resume=True)
        train_agent(resumed, lines.append, Forgetful())
    counts = {name: re.findall(r"dialogues: (\d+).*held out: (\d+)", said[name]) for name in said}
    few, many = (int(counts[name][0][0]) for name in ("right", "all"))
    kept_back = [int(counts[name][0][1]) for name in ("right", "all")]
    assert few < many
    assert kept_back[0] == kept_back[1] > 0
    policies = [load_policy(tmp_path / name).about for name in ("right", "all")]
    assert policies[0].held_out == policies[1].held_out
    assert [policy.data.split(", ")[-1] for policy in policies] == [
        "right dialogues",
        "all dialogues",
    ]


class Events:
    """Stands for TensorBoard's writer."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        if folder.endswith("denied"):
            raise PermissionError(13, "Permission denied")
        self.folder.mkdir(parents=True)

    def add_scalar(self, name: str, value: float, step: int) -> None:
        with (self.folder / "events").open("a", encoding="utf-8") as file:
            file.write(f"{step} {name} {value}\n")

    def flush(self) -> None:
        """Nothing is buffered."""

    def close(self) -> None:
        (self.folder / "closed").touch()


def test_figures_go_to_tensorboard(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = type(sys)("torch.utils.tensorboard")
    fake.SummaryWriter = Events  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", fake)
    run = run_of(data, tmp_path / "run", calls=100, tensorboard=tmp_path / "board")
    history = train_agent(run, silent, PlantedBot()).history
    events = (tmp_path / "board" / "events").read_text(encoding="utf-8").splitlines()
    assert len(events) == 6 * len(history)
    assert f"{history[0].calls_so_far} turns broken {history[0].broken}" in events
    assert (tmp_path / "board" / "closed").exists()
    with pytest.raises(UserError, match=r"cannot write events to .*denied: Permission denied"):
        TensorBoardLogger(tmp_path / "denied")


def test_without_tensorboard_the_extra_is_named(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    run = run_of(data, tmp_path / "run", tensorboard=tmp_path / "board")
    with pytest.raises(MissingExtraError, match=r'pip install "pytest-dstfuzz\[tensorboard\]"'):
        train_agent(run, silent, PlantedBot())
    assert not (tmp_path / "run").exists()


def test_the_real_tensorboard_reads_the_events(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    board = TensorBoardLogger(tmp_path)
    item = Round(1, 50, 90, 1.0, 60, 4, 0.5, -0.25)
    board.add(item, 80.0)
    board.close()
    events = accumulator.EventAccumulator(str(tmp_path)).Reload()
    assert [(e.step, e.value) for e in events.Scalars("turns broken per 1,000 calls")] == [
        (90, 80.0)
    ]


def test_a_tracker_that_fails_on_most_edits_is_not_trained_on(data: Path, tmp_path: Path) -> None:
    message = r"failed on \d+ of \d+ contexts, so the agent would learn .*: RuntimeError: out of"
    with pytest.raises(TrackerError, match=message):
        train_agent(run_of(data, tmp_path, calls=300), silent, FailingBot(data, 1))


def test_two_trainings_into_one_folder_are_refused(data: Path, tmp_path: Path) -> None:
    with (
        lock_file(tmp_path / "out" / STATE),
        pytest.raises(UserError, match="another process is changing"),
    ):
        train_agent(run_of(data, tmp_path / "out"), silent, PlantedBot())
