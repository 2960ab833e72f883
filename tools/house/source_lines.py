"""Counts lines, files and imports of the package, for the core and the wings."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: Wing -> paths of its code before the move, to measure earlier commits; since then its folder.
WINGS: Final[Mapping[str, Sequence[str]]] = {
    "models": (
        *("trackers/trade", "trackers/simpletod", "trackers/neural.py", "trackers/runs.py"),
        "assistant",
    ),
    "agents": ("training", "search/policy.py", "search/bandit.py"),
    "papers": ("research",),
    "games": ("plugin/games.py", "cli/games.py"),
    "scale": ("results", "cluster", "cli/campaign.py", "cli/sweep.py", "cli/ray.py"),
    "audit": (),
}


@dataclass(frozen=True)
class Lines:
    """Sums over some files."""

    files: int
    lines: int
    code: int
    """Lines that are neither blank nor a comment nor a docstring."""
    imports: int
    """Lines of import statements, wherever they stand in a file."""

    @property
    def imports_per_100(self) -> float:
        """Lines of import in 100 lines of code."""
        return 100 * self.imports / self.code if self.code else 0.0


def python_files(folder: Path) -> list[Path]:
    """Return all Python files below a folder, in the order of their paths."""
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def wing_of(path: Path, package: Path) -> str | None:
    """Return the wing to which a file of the package belongs, or ``None`` for the core."""
    name = path.relative_to(package).as_posix()
    for wing, earlier in WINGS.items():
        if any(name == place or name.startswith(f"{place}/") for place in (wing, *earlier)):
            return wing
    return None


def unmoved(package: Path) -> list[str]:
    """Return the places outside the folders of the wings that still hold code of a wing."""
    places = (package / place for earlier in WINGS.values() for place in earlier)
    held = (place for place in places if place.is_file() or python_files(place))
    return [place.relative_to(package).as_posix() for place in held]


def count(paths: Iterable[Path]) -> Lines:
    """Return the sums over some files."""
    files = lines = code = imports = 0
    for path in paths:
        text = path.read_text(encoding="utf-8")
        rows = text.splitlines()
        tree = ast.parse(text)
        documented = _docstring_lines(tree)
        files += 1
        lines += len(rows)
        code += sum(
            bool(row.strip()) and not row.lstrip().startswith("#") and number not in documented
            for number, row in enumerate(rows, start=1)
        )
        imports += len(_import_lines(tree))
    return Lines(files, lines, code, imports)


def _docstring_lines(tree: ast.Module) -> set[int]:
    found: set[int] = set()
    for node in ast.walk(tree):
        documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            found.update(_rows(node.body[0]))
    return found


def _import_lines(tree: ast.Module) -> set[int]:
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.update(_rows(node))
    return found


def _rows(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)
