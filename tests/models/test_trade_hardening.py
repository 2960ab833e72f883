"""Adversarial training on ten hand-made dialogues: what it learns, keeps and refuses."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from safetensors.torch import load_file  # noqa: E402
from trade_data import silent, small_config  # noqa: E402

from pytest_dstfuzz import Context, Exchange, UserError, load_dialogues  # noqa: E402
from pytest_dstfuzz.models.trade.files import (  # noqa: E402
    HardeningRound,
    TradeHardeningConfig,
)
from pytest_dstfuzz.models.trade.hardening import (  # noqa: E402
    HardeningTurn,
    TradeHardener,
    harden_trade,
    margin_loss,
)
from pytest_dstfuzz.models.trade.network import GATE_NONE, GATE_POINTER  # noqa: E402
from pytest_dstfuzz.models.trade.tracker import load_trade  # noqa: E402
from pytest_dstfuzz.models.trade.training import train_trade  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def start(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tracker that knows the clean dialogues by heart."""
    output = tmp_path_factory.mktemp("start")
    config = small_config(data, output, epochs=20, patience=20, dropout=0.0, word_mask=0.0)
    train_trade(config, silent)
    return output


def settings(data: Path, start: Path, output: Path, **changes: object) -> TradeHardeningConfig:
    given: dict[str, object] = {
        "epochs": 2,
        "batch_size": 4,
        "learning_rate": 0.01,
        "average_decay": 0.9,
        "measured": "no",
        "relations": "metamorphic,turn-back,random-input",
        "rewrites": 6,
        "dialogues": 10,
        "checked": 8,
        "loss_limit": 0.1,
        "start": start,
    }
    return TradeHardeningConfig(data, output, **(given | changes))  # type: ignore[arg-type]


def trainer(config: TradeHardeningConfig) -> TradeHardener:
    train, valid = (load_dialogues(config.data, name, layout="trade") for name in ("train", "val"))
    return TradeHardener(config, load_trade(config.start), train, valid, silent)


@pytest.fixture(scope="module")
def whole(data: Path, start: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an uninterrupted run of six rounds."""
    output = tmp_path_factory.mktemp("whole")
    run = harden_trade(settings(data, start, output, epochs=6, patience=6), silent)
    best = run.history[run.best_epoch - 1]
    assert best.rewritten_accuracy > best.first_rewritten_accuracy + 0.1
    assert best.joint_goal_accuracy >= best.first_accuracy - 0.1
    return output


def test_a_killed_run_continues_to_the_same_weights(
    data: Path, start: Path, whole: Path, tmp_path: Path
) -> None:
    more = {"epochs": 6, "patience": 6}
    cut = settings(data, start, tmp_path, max_minutes=1e-9, **more)
    assert harden_trade(cut, silent).ended_by == "max_minutes"
    run = harden_trade(settings(data, start, tmp_path, resume=True, **more), silent)
    assert len(run.history) == 6
    for name in ("training.safetensors", "model.safetensors"):
        one, other = load_file(whole / name), load_file(tmp_path / name)
        assert all(torch.equal(one[key], other[key]) for key in one)


def test_a_run_from_other_weights_is_not_resumed(data: Path, whole: Path) -> None:
    with pytest.raises(UserError, match="changed since the earlier run: first weights"):
        harden_trade(settings(data, whole, whole, epochs=7, resume=True), silent)


@pytest.mark.parametrize(("name", "words"), [("train", "training"), ("dev", "validation")])
def test_a_run_with_other_labels_is_not_resumed(
    data: Path, start: Path, tmp_path: Path, name: str, words: str
) -> None:
    copied = tmp_path / "data"
    copied.mkdir()
    for one in ("train.tsv", "dev.tsv"):
        (copied / one).write_bytes((data / one).read_bytes())
    harden_trade(settings(copied, start, tmp_path / "output", epochs=1), silent)
    moved = copied.rename(tmp_path / "moved")
    again = settings(moved, start, tmp_path / "output", epochs=1, resume=True)
    assert len(harden_trade(again, silent).history) == 1
    path = moved / f"{name}.tsv"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("\tnorth\t", "\tsouth\t", 1), encoding="utf-8")
    with pytest.raises(UserError, match=f"changed since the earlier run: {words} dialogues"):
        harden_trade(again, silent)


def with_test_split(data: Path, folder: Path, old: str, new: str) -> Path:
    """Copy the data, with three of its dialogues as the test split, under other ids."""
    folder.mkdir()
    for name in ("train.tsv", "dev.tsv"):
        (folder / name).write_bytes((data / name).read_bytes())
    head, *lines = (data / "train.tsv").read_text(encoding="utf-8").splitlines()
    kept = [line.replace(old, new, 1) for line in lines if line.startswith(("D1", "D2", "D3"))]
    (folder / "test.tsv").write_text("\n".join([head, *kept]) + "\n", encoding="utf-8")
    return folder


def test_a_dialogue_of_the_test_split_is_refused_by_id(
    data: Path, start: Path, tmp_path: Path
) -> None:
    shared = with_test_split(data, tmp_path / "data", "D", "D")
    config = settings(shared, start, tmp_path / "output", measured=None)
    with pytest.raises(UserError, match=r"dialogue 'D1' of the split train is also .* --measured"):
        harden_trade(config, silent)


def test_a_dialogue_with_the_texts_of_the_test_split_is_left_out(
    data: Path, start: Path, tmp_path: Path
) -> None:
    shared = with_test_split(data, tmp_path / "data", "D", "T")
    lines: list[str] = []
    config = settings(shared, start, tmp_path / "output", measured=None, epochs=1)
    harden_trade(config, lines.append)
    left_out = [line for line in lines if "left out" in line]
    assert [line[:32] for line in left_out] == [
        "split train: 3 dialogues left ou",
        "split val: 3 dialogues left out,",
    ]
    elsewhere = settings(data, start, tmp_path / "output", measured=str(shared), resume=True)
    assert len(harden_trade(elsewhere, silent).history) == 2


def test_the_answers_to_changed_turns_are_those_of_the_setting(
    data: Path, start: Path, tmp_path: Path
) -> None:
    made = {
        answers: trainer(
            settings(data, start, tmp_path, relations="random-input", draws=1, answers=answers)
        )
        for answers in ("repaired", "old", "margin")
    }
    drawn = made["old"]._rewrites()
    assert drawn
    for one in drawn:
        slots = made["old"].vocabulary.slots
        places = tuple(slots.index(delta.slot) for delta in one.expected.deltas)
        repaired, old, margin = (made[name]._row(one) for name in made)
        assert places
        assert all(old.gates[place] == GATE_POINTER for place in places)
        assert all(repaired.gates[place] == GATE_NONE for place in places)
        assert isinstance(margin, HardeningTurn)
        assert margin.slots == places
        assert margin.gates.tolist() == margin.clean.gates.tolist() == old.gates.tolist()
        assert margin.words.tolist() == old.words.tolist() != margin.clean.words.tolist()


def test_the_margin_is_zero_if_the_old_values_are_less_likely(
    data: Path, start: Path, tmp_path: Path
) -> None:
    made = trainer(
        settings(data, start, tmp_path, relations="random-input", draws=1, answers="margin")
    )
    network = made.network.eval()
    turns = [made._row(one) for one in made._rewrites()]
    same = [
        HardeningTurn(**vars(row.clean), clean=row.clean, slots=row.slots)
        for row in turns
        if isinstance(row, HardeningTurn)
    ]
    words = sum(len(of) for row in same for slot, of, _ in row.targets if slot in row.slots)
    with torch.no_grad():
        loss = margin_loss(network, same, 0.0)
        swapped = [replace(row, clean=other) for row, other in zip(same, turns, strict=True)]
        worse = margin_loss(network, swapped, 0.0)
        better = margin_loss(network, turns, 0.0)  # type: ignore[arg-type]
    gates = sum(len(row.slots) for row in same)
    assert loss == pytest.approx(0.1 * (gates + words), abs=1e-4)
    assert better < loss < worse


def test_the_margin_makes_the_old_values_less_likely(
    data: Path, start: Path, tmp_path: Path
) -> None:
    made = trainer(settings(data, start, tmp_path, relations="random-input", answers="margin"))
    turns = [row for row in map(made._row, made._rewrites()) if isinstance(row, HardeningTurn)]
    made.network.eval()
    descent = torch.optim.SGD(made.network.parameters(), lr=0.01)
    losses = []
    for _ in range(4):
        loss = margin_loss(made.network, turns, 0.0)
        losses.append(float(loss.detach()))
        descent.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        descent.step()
    assert losses == sorted(losses, reverse=True)
    assert losses[0] > losses[-1]


def test_rewrites_that_break_the_tracker_come_first(
    data: Path, start: Path, tmp_path: Path
) -> None:
    made = trainer(settings(data, start, tmp_path, draws=3, rewrites=4))
    drawn = made._source.draw(12, "round", 0)
    clean, seen = (
        made._states([getattr(one, of) for one in drawn], made.vocabulary)
        for of in ("clean", "seen")
    )
    broken = [
        one.seen
        for one, now, then in zip(drawn, clean, seen, strict=True)
        if now == one.before and not one.holds(then)
    ]
    of = Counter(one.relation for one in drawn if one.seen in broken)
    assert 0 < len(broken) < len(drawn)
    used = made._rewrites()
    assert Counter(one.relation for one in used) == dict.fromkeys(
        ("metamorphic", "turn-back", "random-input"), 4
    )
    for name, count in of.items():
        taken = sum(one.relation == name and one.seen in broken for one in used)
        assert taken == min(4, count)


def test_with_all_of_the_first_weights_the_model_stays(
    data: Path, start: Path, tmp_path: Path
) -> None:
    run = harden_trade(settings(data, start, tmp_path, first_weights=1.0, epochs=1), silent)
    (one,) = run.history
    assert one.joint_goal_accuracy == one.first_accuracy
    assert one.rewritten_accuracy == one.first_rewritten_accuracy
    before, after = (load_file(folder / "model.safetensors") for folder in (start, tmp_path))
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_an_unknown_word_is_read_as_the_nearest_one(
    data: Path, start: Path, tmp_path: Path
) -> None:
    def area(folder: Path, user: str, system: str = "") -> str | None:
        (found,) = load_trade(folder).predict([Context((Exchange(system, user),))])
        return found.state.get("hotel-area")

    harden_trade(settings(data, start, tmp_path, correct_spelling=True, epochs=1), silent)
    clean, typed = "a hotel in the north , please .", "a hotel in the nroth , plese ."
    assert area(start, clean) == area(tmp_path, clean) == "north"
    assert area(start, typed) != "north"
    assert area(tmp_path, typed) == "north"
    vocabulary = load_trade(tmp_path).vocabulary
    # A word that the system has said is no slip.
    seen = vocabulary.history(Context((Exchange("the nroth ?", "nroth"),)), 50)
    assert seen[-1] == "nroth"


def test_before_the_training_the_tracker_reads_words_as_they_are(
    data: Path, start: Path, tmp_path: Path
) -> None:
    spoilt = tmp_path / "spoilt"
    spoilt.mkdir()
    text = (data / "train.tsv").read_text(encoding="utf-8")
    (spoilt / "train.tsv").write_text(text, encoding="utf-8")
    lines = text.replace("a hotel in the north", "a hotel in the nroth")
    (spoilt / "dev.tsv").write_text(lines, encoding="utf-8")
    more = {"correct_spelling": True, "first_weights": 1.0, "epochs": 1}
    config = settings(spoilt, start, tmp_path / "output", **more)
    (one,) = harden_trade(config, silent).history
    assert one.first_accuracy < one.joint_goal_accuracy


def test_pieces_of_words_are_not_corrected(data: Path, tmp_path: Path) -> None:
    pieces = tmp_path / "pieces"
    train_trade(small_config(data, pieces, subwords=20), silent)
    config = settings(data, pieces, tmp_path / "output", correct_spelling=True)
    with pytest.raises(UserError, match="needs a tracker that reads whole words"):
        harden_trade(config, silent)


def test_the_best_round_loses_little_on_clean_turns(
    data: Path, start: Path, tmp_path: Path
) -> None:
    made = trainer(settings(data, start, tmp_path, loss_limit=0.02))

    def run(*pairs: tuple[float, float]) -> int:
        made.history = [
            HardeningRound(
                epoch=number,
                joint_goal_accuracy=clean,
                seconds=1.0,
                gate_loss=1.0,
                value_loss=1.0,
                margin_loss=0.0,
                rewritten_accuracy=rewritten,
                first_accuracy=0.5,
                first_rewritten_accuracy=0.2,
            )
            for number, (clean, rewritten) in enumerate(pairs, start=1)
        ]
        return made.best().epoch

    assert run((0.5, 0.3), (0.49, 0.4), (0.45, 0.9)) == 2
    assert run((0.4, 0.3), (0.45, 0.2), (0.3, 0.9)) == 2
    assert run((0.6, 0.3), (0.48, 0.3)) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answers": "new"}, "unknown kind of answers 'new'"),
        ({"first_weights": 1.5}, "first_weights must be from 0 to 1"),
        ({"replay": 0}, "replay must be at least 1"),
        ({"relations": "drop"}, "'drop' edits whole dialogues"),
        ({"relations": "negatoin"}, "unknown relation 'negatoin'"),
    ],
)
def test_settings_that_cannot_work_are_refused(
    data: Path, start: Path, tmp_path: Path, change: dict[str, object], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        harden_trade(settings(data, start, tmp_path, **change), silent)
