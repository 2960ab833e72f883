"""Writes the page of the extension modules, from their docstrings.

Run ``python -m tools.docs.extension_modules``. The page names each module once, in the first column
of its table. To document another module, add a row with its name alone and run this command: the
rest of the table follows from the code.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

from tools.docs.pages import DOCS, ROOT

PAGE: Final = DOCS / "reference" / "extension-modules.md"
_HEAD: Final = "| module | holds |\n| --- | --- |\n"
_ROW: Final = re.compile(r"^\| `(pytest_dstfuzz(?:\.\w+)+)` \|.*\n", re.MULTILINE)


def documented() -> list[str]:
    """Return the dotted names of the modules on the page, sorted."""
    return sorted(set(_ROW.findall(PAGE.read_text(encoding="utf-8"))))


def source_of(module: str) -> Path:
    """Return the file of a module of the package."""
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def exported(module: str) -> list[str] | None:
    """Return the names in ``__all__`` of a module, or ``None`` if it has no ``__all__``."""
    for node in ast.parse(source_of(module).read_text(encoding="utf-8")).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Name) and target.id == "__all__":
            return list(ast.literal_eval(node.value))  # type: ignore[attr-defined]  # an assignment
    return None


def page_text() -> str:
    """Return the text of the page, with the table made from the docstrings."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(_HEAD)
    after = _ROW.sub("", rest)
    rows = (f"| `{module}` | {_about(module)} |\n" for module in documented())
    return f"{before}{_HEAD}{''.join(rows)}{after}"


def _about(module: str) -> str:
    """Return the first sentence of the docstring of a module, without its full stop."""
    tree = ast.parse(source_of(module).read_text(encoding="utf-8"))
    text = (ast.get_docstring(tree) or "").partition("\n\n")[0]
    return " ".join(text.removeprefix("Internal: ").split()).rstrip(".").replace("|", r"\|")


if __name__ == "__main__":
    PAGE.write_text(page_text(), encoding="utf-8")
