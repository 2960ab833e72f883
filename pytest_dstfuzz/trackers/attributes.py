"""What ``package.module:attribute`` names: an object of the user's own."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from pytest_dstfuzz.errors import UserError, nearest
from pytest_dstfuzz.trackers.validation import cause_of, passes_through


def load_attribute(name: str, search_path: tuple[str, ...], kind: str) -> object:
    """Return the attribute of a module, looked for in some folders and on Python's path.

    Args:
        name: ``package.module:attribute``, the attribute with dots where it is one of an object.
        search_path: folders, which stay on Python's path; empty = the working folder.
        kind: what messages call what is named: ``tracker``.

    Raises:
        UserError: there is no such module or attribute, or the module cannot be imported.
    """
    search_path = search_path or (str(Path.cwd()),)
    module_name, _, path = name.partition(":")
    if not module_name or not path or module_name.startswith("."):
        raise UserError(f"{name!r} is no {kind} name: write package.module:attribute")
    # Kept on the path: it may import more of its package when it is first used.
    sys.path[:0] = [folder for folder in search_path if folder not in sys.path]
    target: object = _import_module(module_name, name, search_path, kind)
    for part in path.split("."):
        if not hasattr(target, part):
            guess = nearest(part, (name for name in dir(target) if not name.startswith("_")))
            hint = f" Did you mean {guess!r}?" if guess else ""
            raise UserError(f"{module_name!r} has no attribute {path!r}.{hint}")
        target = getattr(target, part)
    return target


def _import_module(module_name: str, whole: str, search_path: tuple[str, ...], kind: str) -> object:
    try:
        return importlib.import_module(module_name)
    except BaseException as error:
        if passes_through(error):
            raise
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing is None or not f"{module_name}.".startswith(f"{missing}."):
            what = f"the module {module_name!r} cannot be imported: {cause_of(error)}"
            raise UserError(what) from error
    file, _, attribute = whole.partition(":")
    if file.endswith(".py"):
        meant = f"{file.removesuffix('.py').replace('/', '.')}:{attribute}"
        why = f"a module, without .py: write {meant!r}"
    else:
        why = f"looked in {', '.join(search_path)} and on Python's path"
    raise UserError(f"there is no module {missing!r} for the {kind} {whole!r} ({why})")
