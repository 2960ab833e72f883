"""Lists names that a reader has to guess: ``python -m tools.house.names [--list] [PATH ...]``.

Functions are verbs and values are nouns (CONTRIBUTING, "How we write"). The check looks at the
names of modules, classes and parameters of the package, and counts five kinds:

- ``value``: a constant, a class or an attribute is a bare participle, such as ``kept``. Booleans
  are apart, since ``closed: bool`` is clear.
- ``parameter``: likewise a parameter.
- ``function``: the name of a function begins with a participle, such as ``trained(name)``.
  Functions with a boolean result are apart.
- ``dialect``: a word that only this project uses in this sense.
- ``double``: two modules give one name to classes, to different public constants or to different
  numbers.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = ROOT / "pytest_dstfuzz"
KINDS: Final = ("value", "parameter", "function", "dialect", "double")
#: Participles without the ending *-ed*, apart from those that are verbs or nouns as well.
_IRREGULAR: Final = re.compile(
    "begun|born|bought|broken|brought|built|caught|chosen|done|drawn|driven|eaten|fallen|felt"
    "|forbidden|foreseen|forgotten|found|frozen|given|gone|got|grown|heard|held|hidden|kept|known"
    "|laid|lent|lost|made|meant|met|paid|proven|redone|rewritten|said|seen|sent|shaken|shown|spent"
    "|spoken|stolen|struck|sworn|taken|taught|thought|thrown|told|torn|undone|unseen|woken|won|worn"
    "|written"
)
_REGULAR: Final = re.compile(r"(?!(?:succ|proc|exc|(?:un)?n|sp|emb|br|bl|gr)eed)\w{3,}ed")
#: Words of no field, or of another one.
_DIALECT: Final = re.compile(
    r"wobbl|hopeless|plainest|(?:^|_)(?:adds_up|unsaid|told_of|dear|lest|bidden)(?:_|$)"
    r"|^_*(?:Seats?|Apart)$",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
#: Names that each module of a kind has, since it is looked up by name.
_BY_NAME: Final = frozenset(("COLUMNS", "COMMANDS", "ENTRY_POINT_GROUP", "FORMAT_VERSION"))
_CAPITALS: Final = re.compile(r"_*[A-Z][A-Z0-9_]*")


class Name(NamedTuple):
    """A name, and why it is listed."""

    file: Path
    line: int
    kind: str
    name: str


def is_participle(word: str) -> bool:
    """Return whether a word can only be read as a participle."""
    return bool(_IRREGULAR.fullmatch(word) or _REGULAR.fullmatch(word))


def find_names(file: Path, tree: ast.Module) -> Iterator[Name]:
    """Yield the names of a module that are participles or belong to the dialect."""
    for line, name, kind, is_boolean in _defined_names(tree):
        words = [word.lower() for word in _WORD.findall(name)]
        if _DIALECT.search(name):
            yield Name(file, line, "dialect", name)
        elif is_boolean or not words or not is_participle(words[0]):
            continue
        elif kind == "function" or len(words) == 1:
            yield Name(file, line, kind, name)


def find_doubles(trees: dict[Path, ast.Module]) -> Iterator[Name]:
    """Yield classes and constants whose names have another meaning in another module."""
    places: dict[str, list[tuple[Path, int, str]]] = defaultdict(list)
    for file, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append((file, node.lineno, f"{file}:{node.lineno}"))
            for target in _targets(node):
                value = getattr(node, "value", None)
                if not _CAPITALS.fullmatch(target.id) or target.id in _BY_NAME:
                    continue
                if isinstance(value, ast.Constant) or (value and target.id[0] != "_"):
                    places[target.id].append((file, node.lineno, ast.dump(value)))
    for name, found in places.items():
        if len({meaning for _, _, meaning in found}) > 1:
            yield from (Name(file, line, "double", name) for file, line, _ in found)


def _defined_names(tree: ast.Module) -> Iterator[tuple[int, str, str, bool]]:
    """Yield the line, name and kind of each name in a module, and whether it is a boolean."""
    for scope in ast.walk(tree):
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = scope.args
            for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                yield one.lineno, one.arg, "parameter", _is_bool(one.annotation)
        if not isinstance(scope, ast.Module | ast.ClassDef):
            continue
        for node in scope.body:
            if isinstance(node, ast.ClassDef):
                yield node.lineno, node.name, "value", False
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                is_value = any("property" in ast.unparse(one) for one in node.decorator_list)
                kind = "value" if is_value else "function"
                yield node.lineno, node.name, kind, _is_bool(node.returns)
            for target in _targets(node):
                is_boolean = isinstance(node, ast.AnnAssign) and _is_bool(node.annotation)
                yield node.lineno, target.id, "value", is_boolean


def _targets(node: ast.stmt) -> Iterator[ast.Name]:
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    yield from (target for target in targets if isinstance(target, ast.Name))


def _is_bool(annotation: ast.expr | None) -> bool:
    """Return whether an annotation has ``bool`` in it, such as ``bool | None``."""
    return annotation is not None and re.search(r"\bbool\b", ast.unparse(annotation)) is not None


def find_all(package: Path = PACKAGE) -> list[Name]:
    """Return all names of a package that the check lists, by file and line."""
    trees = {
        path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(package.rglob("*.py"))
    }
    found = [name for file, tree in trees.items() for name in find_names(file, tree)]
    return sorted({*found, *find_doubles(trees)})


def main(words: Sequence[str] | None = None) -> int:
    """Print how many names of each kind there are, or list the names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="print each name with its place")
    parser.add_argument("paths", nargs="*", type=Path, help="files and folders, default: all")
    given = parser.parse_args(words)
    within = [path.resolve() for path in given.paths] or [PACKAGE]
    found = [one for one in find_all() if any(one.file.is_relative_to(path) for path in within)]
    if given.list:
        for one in found:
            print(f"{one.file.relative_to(ROOT)}:{one.line}: {one.kind}: {one.name}")
    counts = Counter(one.kind for one in found)
    print(", ".join(f"{kind} {counts[kind]}" for kind in KINDS), f"= {len(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
