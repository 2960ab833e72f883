"""Entry points of other packages that do not load, or name the wrong thing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz import UserError, load_dialogues
from pytest_dstfuzz.cli import main
from pytest_dstfuzz.plugin.stored import find_stored_run
from pytest_dstfuzz.registry import Registry
from pytest_dstfuzz.relations.contexts import CONTEXT_CHECKS, PERTURBATIONS
from pytest_dstfuzz.search.registry import search_by_name
from pytest_dstfuzz.trackers.registry import resolve_tracker
from pytest_dstfuzz.trackers.schemes import SCHEMES

GROUPS = ("commands", "results", "readers", "data_files", "searches", "trackers")
OTHERS = ("relations", "context_checks", "perturbations", "schemes")
BROKEN = {"gone": "no_such_module:it", "odd": "acme_odd:ODD", "lost": "acme_odd:NOT_THERE"}


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let an installed package bring one broken entry point in each group."""

    def install(name: str) -> None:
        info = tmp_path / "acme_bots-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-bots\nVersion: 1.2\n")
        points = [f"[pytest_dstfuzz.{one}]\n{name} = {BROKEN[name]}" for one in (*GROUPS, *OTHERS)]
        (info / "entry_points.txt").write_text("\n".join(points))
        (tmp_path / "acme_odd.py").write_text("ODD = 3\n")
        monkeypatch.syspath_prepend(tmp_path)

    return install


@pytest.mark.parametrize("name", BROKEN)
def test_one_line_names_the_package(
    broken: Callable[[str], None],
    name: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    broken(name)
    uses: dict[str, Callable[[], object]] = {
        "results": lambda: find_stored_run(tmp_path / "none"),
        "readers": lambda: load_dialogues("sample", "test", layout=name),
        "searches": lambda: search_by_name(name, seed=0, k=1),
        "trackers": lambda: resolve_tracker(name),
    }
    for use in uses.values():
        with pytest.raises(UserError) as caught:
            use()
        said = str(caught.value)
        assert name in said
        assert "acme-bots" in said
        assert "\n" not in said
    registries: tuple[Registry[Any], ...] = (CONTEXT_CHECKS, PERTURBATIONS, SCHEMES)
    for registry in registries:
        with pytest.raises(UserError, match="acme-bots"):
            registry.find(name)
    assert main([name]) == 2
    error = capsys.readouterr().err
    assert "acme-bots 1.2" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("name", BROKEN)
def test_other_commands_still_work(
    broken: Callable[[str], None],
    name: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken(name)
    monkeypatch.chdir(tmp_path)
    assert load_dialogues("sample", "test").dialogues
    for words in (["--help"], ["check-data", "--help"], ["relations"], ["check-data", "sample"]):
        with pytest.raises(SystemExit) if "--help" in words else pytest.MonkeyPatch.context():
            assert main(words) == 0
        assert "Traceback" not in capsys.readouterr().err
    main(["doctor"])
    found = capsys.readouterr()
    assert BROKEN[name] in found.out
    assert "Traceback" not in found.err
