"""Several noise models as one."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.files import write_json
from pytest_dstfuzz.noise.model import NoiseModel, load_models, mix_models
from pytest_dstfuzz.noise.tables import plain

TEXT = "I am looking for a dentist, please."


def share_of(model: NoiseModel, kinds: set[str]) -> float:
    return math.fsum(kind.share for kind in model.file.kinds if kind.name in kinds)


def test_one_model_is_itself() -> None:
    assert load_models(("typing",)).fingerprint == NoiseModel.load("typing").fingerprint


def test_slips_of_all_of_them_share_the_rate() -> None:
    both = load_models(("typing", "casual"))
    assert both.name == "typing,casual"
    assert math.isclose(math.fsum(kind.share for kind in both.file.kinds), 1.0, abs_tol=1e-3)
    assert both.slip_rate == NoiseModel.load("typing").slip_rate
    kinds = {slip.kind for site in both.slips(TEXT) for slip in site}
    assert {"missing", "swap", "full_stop", "texting", "contraction"} <= kinds


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "slips.json"
    texts = [NoiseModel.load(name).file for name in ("typing", "casual")]
    found = []
    for file in texts:
        write_json(path, plain(file))
        found.append(load_models((str(path),)).fingerprint)
    assert found == [load_models((name,)).fingerprint for name in ("typing", "casual")]


def test_weights_say_how_they_share() -> None:
    missing = share_of(NoiseModel.load("typing"), {"missing"})
    for names, weight in ((("typing", "casual"), 0.5), (("typing:3", "casual"), 0.75)):
        assert math.isclose(share_of(load_models(names), {"missing"}), missing * weight)


def test_a_kind_that_two_have_is_made_as_the_first_does() -> None:
    typing, casual = NoiseModel.load("typing").file, NoiseModel.load("casual").file
    blank = mix_models([typing, casual], [1.0, 1.0])
    assert blank.tables.factors["blank"] == typing.tables.factors["blank"]
    expected = [next(k.share for k in file.kinds if k.name == "blank") for file in (typing, casual)]
    found = next(kind for kind in blank.kinds if kind.name == "blank")
    assert math.isclose(found.share, sum(expected) / 2)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("typing", "typing:2"), "'typing' is named twice"),
        (("typing", "casal"), "Did you mean 'casual'"),
    ],
)
def test_names_that_cannot_be(names: tuple[str, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_models(names)


def test_a_file_with_the_name_of_a_shipped_model_is_ambiguous(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = load_models(("typing",))
    write_json(tmp_path / "typing", plain(NoiseModel.load("speech").file))
    with pytest.raises(UserError, match=r"\./typing"):
        load_models(("typing", "casual"))
    assert load_models(("./typing",)).fingerprint != shipped.fingerprint
