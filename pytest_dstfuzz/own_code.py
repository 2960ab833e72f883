"""The identity of a user's own code: the files that an object consists of, as they were loaded."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import inspect
import logging
import marshal
import os
import sys
import threading
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.util import source_hash
from pathlib import Path
from types import (
    CodeType,
    FrameType,
    FunctionType,
    MemberDescriptorType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, Final
from zipimport import ZipImportError, zipimporter

from pytest_dstfuzz.files import content_of

__all__ = [
    "attributes_of",
    "closed_over",
    "code_of",
    "find_caller",
    "import_own",
    "is_of_python",
    "is_own",
    "is_own_module",
    "watch_loads",
]

_PACKAGE: Final = f"{__name__.partition('.')[0]}."
#: The folders of Python's own modules and of this package.
_PYTHON: Final = Path(os.__file__).resolve().parent
_PLACE: Final = Path(__file__).resolve().parent
#: Names of folders with installed packages. Debian has its own.
_PACKAGES: Final = frozenset({"dist-packages", "site-packages"})
#: Folders of the system. Their files are no data of a user, unless the user's code is beside them.
_SYSTEM: Final = tuple(
    Path(os.sep, *name.split())
    for name in (
        *("bin", "dev", "etc", "lib", "lib64", "Library", "proc", "run", "sbin", "sys", "System"),
        *("usr", "usr lib", "usr local", "usr local lib", "usr local share", "usr share"),
    )
)
#: The type of a function with `functools.cache` or `functools.lru_cache`.
CACHED: Final = type(functools.cache(str))
#: A class that is written in Python has one of these entries, or inherits it.
_OF_PYTHON: Final = frozenset({"__dict__", "__slots__", "__weakref__"})
#: The flag of classes that are made while a program runs (``Py_TPFLAGS_HEAPTYPE``).
_HEAP_TYPE: Final = 1 << 9
#: Number of bytes before the code in a file with cached code.
_HEAD: Final = 16
#: The packages that import a user's modules by their names.
_CALLERS: Final = (_PACKAGE, "_pytest.", "pluggy.")
#: Functions that import the module that their first argument names.
_IMPORTERS: Final = frozenset({"__import__", "import_module", "run_module"})


def code_of(thing: Any, *origins: str, loaders: bool = False) -> str:
    """Return a digest of a user's code: the files that define an object, and their imports.

    The digest uses the content that the files had when Python loaded them. It includes files that
    they read during their import, for example code for ``exec`` or a table of rules. If an object
    of this package wraps a user's object, the digest is about the wrapped object. The same holds
    for a function with a decorator. Other installed packages are left out. The result is ``""``
    for all other objects of this package, which its version identifies, and for objects without a
    file. ``sitecustomize.py`` and ``usercustomize.py`` of the working folder count for every bot.
    So do modules that Python imported for code that is not known, for example in a thread.

    Args:
        thing: a function, a class or an object.
        origins: the modules that made the object: ``package.module``,
            ``package.module:attribute``, or a file. The object may be of a class that another
            module defines, so these count, too.
        loaders: whether the functions of a file with `functools.cache` bring all data that they
            read for any import. They give it to other code without reading it again.
    """
    files = [_origin_file(origin) for origin in origins]
    held: list[Path | None] = []
    for part, is_held in _parts_of(thing):
        # A class that `exec` made may lack its module.
        with suppress(AttributeError, OSError, TypeError):
            (held if is_held else files).extend(_defined_in(part))
    own, more = ([file for file in each if file is not None] for each in (files, held))
    # A walk looks at all loaded modules, and nearly all objects are of this package.
    walk = _Walk(loaders=loaders) if own or more else None
    found = sorted(walk.over([*(own or more), *_at_start()], more)) if walk else []
    # An entry point may move to another object of its module.
    names = (origin.partition(":") for origin in origins)
    text = "\n".join([*found, *(name for module, _, name in names if module in sys.modules)])
    if sys.flags.optimize:  # Python leaves out assertions, and code below ``if __debug__``.
        text += f"\n-O {sys.flags.optimize}"
    return hashlib.sha256(text.encode(errors="replace")).hexdigest() if found else ""


def _at_start() -> Iterator[Path]:
    """Yield the user's files that Python itself imports when it starts.

    Editors bring their own ones, so only those in the working folder count.
    """
    for name in ("sitecustomize", "usercustomize"):
        file = _file_of(sys.modules.get(name))
        if file is not None and not _is_installed(file) and file.is_relative_to(Path.cwd()):
            yield file


def find_caller(package: Path) -> str:
    """Return the file of the code that called a package.

    The result is ``""`` if the package called itself when it was imported.
    """
    frame = inspect.currentframe()
    while frame is not None and Path(frame.f_code.co_filename).is_relative_to(package):
        frame = frame.f_back
    return "" if frame is None or _imports(frame) else frame.f_code.co_filename


def import_own(name: str) -> ModuleType:
    """Import a user's module, and note the content of all files that this loads."""
    watch_loads()
    return importlib.import_module(name)


def is_own(thing: Any) -> bool:
    """Return whether a user's module defines a function, a class, or the class of an object."""
    return _is_followed(_owner(thing))


def is_of_python(owner: type) -> bool:
    """Return whether a class is written in Python. Otherwise its objects may hide values.

    A class without attributes and slots of its own may count as one that is not.
    """
    return bool(owner.__flags__ & _HEAP_TYPE) and not _OF_PYTHON.isdisjoint(vars(owner))


def is_own_module(module: ModuleType | None) -> bool:
    """Return whether a module is one of a user."""
    file = _file_of(module)
    return file is not None and not _is_installed(file)


def _origin_file(origin: str) -> Path | None:
    module = sys.modules.get(origin.partition(":")[0])
    if module is not None:
        return _file_of(module)
    return _on_disk(origin) if origin.endswith(".py") else None


def _parts_of(thing: Any) -> Iterator[tuple[Any, bool]]:
    """Yield the functions and classes that an object of a user consists of.

    These include the parts of a wrapped object, of a partial function, of the object of a method,
    and the functions of a class. Each has a flag: whether it is only held by the object.
    """
    waiting, seen = [(thing, False)], set[int]()
    while waiting:
        one, is_held = waiting.pop()
        if id(one) in seen or one is None:
            continue
        seen.add(id(one))
        owner, inner = _owner(one), list[Any]()
        if isinstance(one, ModuleType):
            yield one, is_held
        elif issubclass(type(one), functools.partial):
            inner = [one.func, *held_by((one.args, one.keywords))]
        elif _is_ours(owner):
            inner = [_attribute(one, "wrapped")]
        else:
            classes = owner.__mro__ if isinstance(owner, type) else (owner,)
            yield from ((each, is_held) for each in classes)
            inner = [_attribute(one, name) for name in ("__self__", "__wrapped__")]
            inner += [each for owner in classes for each in _functions_of(owner)]
            waiting += [(each, True) for each in held_by(one)]
        waiting += [(each, is_held) for each in inner]


def _is_followed(value: Any) -> bool:
    """Return whether a value is a part of the object that holds it: some code of a user."""
    if issubclass(type(value), functools.partial):
        return True
    owner = _owner(value)
    return _is_own_class(owner) if isinstance(owner, type) else _is_own_code(owner)


@functools.lru_cache(maxsize=10_000)
def _is_own_class(owner: type) -> bool:
    return _is_own_code(owner)


def _is_own_code(owner: Any) -> bool:
    """Return whether a user's module defines a function or a class."""
    if _is_ours(owner):
        return False
    # Code may load a module by its file, and not register it, or register another one.
    if any(not _is_installed(file) for file in _files_of_globals(owner)):
        return True
    name = _attribute(owner, "__module__")
    if isinstance(name, str) and name in sys.modules:
        return is_own_module(sys.modules[name])
    # Modules of C may not be registered either.
    return isinstance(name, str) and (not isinstance(owner, type) or is_of_python(owner))


def _files_of_globals(owner: Any) -> Iterator[Path]:
    """Yield the files of the modules whose names a function, or the functions of a class, use."""
    functions = list(vars(owner).values()) if isinstance(owner, type) else [owner]
    module = _attribute(owner, "__module__")  # A class that `exec` made may lack it.
    for one in functions:
        if isinstance(one, FunctionType) and one.__module__ == module:
            named = one.__globals__.get("__file__")
            file = _on_disk(named) if isinstance(named, str) else None
            if file is not None:
                yield file


def held_by(thing: Any) -> list[Any]:
    """Return the user's functions and objects that an object holds, in the order of its content.

    The object may be of a package, and hold them in collections, closures and other objects.
    """
    waiting, seen, found = deque([thing]), {id(thing)}, []
    while waiting:
        for one in _content_of(waiting.popleft()):
            if id(one) in seen or type(one) in _ENDS or len(seen) >= _MOST_HELD:
                continue
            seen.add(id(one))
            if type(one) is functools.partial or is_own(one):
                found.append(one)
            elif type(one) is ModuleType:
                found += [one] if is_own_module(one) else []
            elif isinstance(one, _LEADING) or _package_of(one) in _RUNNERS:
                continue
            else:
                waiting.append(one)
    return found


#: Objects without functions of a user.
_ENDS: Final = frozenset({type(None), bool, str, bytes, int, float, complex})
#: Objects that lead to the whole program.
_LEADING: Final = (logging.Logger, logging.Handler, logging.Manager)
#: Packages whose objects lead to the whole run.
_RUNNERS: Final = frozenset({"_pytest", "pluggy"})
#: The number of objects in which functions of a user are looked for. Numbers and texts are free.
_MOST_HELD: Final = 100_000


def _package_of(thing: Any) -> str:
    return type(thing).__module__.partition(".")[0]


def _content_of(thing: Any) -> Iterator[Any]:
    """Yield the values in a collection, an object or a closure."""
    kind = type(thing)
    if issubclass(kind, type | ModuleType):
        return
    if issubclass(kind, dict):
        yield from list(dict.values(thing))
    elif issubclass(kind, list | tuple | set | frozenset):
        yield from _elements(thing)
    elif kind is FunctionType:
        yield from closed_over(thing)
    yield from attributes_of(thing).values()


def _elements(thing: Any) -> list[Any]:
    with suppress(Exception):  # A user's collection may raise anything.
        return list(thing)
    return []


def closed_over(function: FunctionType) -> Iterator[Any]:
    """Yield the values that a function uses from the functions around it."""
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # It is still empty.
            yield cell.cell_contents


def attributes_of(thing: Any) -> dict[str, Any]:
    """Return the attributes of an object, including those that its class has no dictionary for."""
    found: dict[str, Any] = {}
    classes = type(thing).__mro__
    # A class of Python may keep the attributes elsewhere, such as `threading.local`.
    readers = (vars(one).get("__getattribute__") for one in classes)
    read = next(one for one in readers if isinstance(one, WrapperDescriptorType))
    with suppress(Exception):  # A user's object may raise anything.
        found = dict(read(thing, "__dict__"))
    for owner in classes:
        for name, slot in list(vars(owner).items()) if "__slots__" in vars(owner) else ():
            if isinstance(slot, MemberDescriptorType):
                with suppress(AttributeError):
                    found[name] = slot.__get__(thing)
    return found


def _functions_of(owner: Any) -> Iterator[Any]:
    """Yield the functions of a user's class, which other modules may have defined."""
    for value in list(vars(owner).values()) if isinstance(owner, type) else ():
        inner = getattr(value, "fget", None) if isinstance(value, property) else value
        inner = _attribute(inner, "__func__") or inner
        if isinstance(inner, FunctionType | functools.partial) and _is_followed(inner):
            yield inner


def _owner(thing: Any) -> Any:
    """Return the function or the class whose module defines an object."""
    code = _attribute(thing, "__code__")
    return thing if isinstance(thing, type) or isinstance(code, CodeType) else type(thing)


def _attribute(thing: Any, name: str) -> Any:
    """Return an attribute of a user's object; ``None`` if it is missing or cannot be read."""
    try:
        return getattr(thing, name, None)
    except Exception:  # noqa: BLE001 - a user's `__getattr__` may raise anything
        return None


def _is_ours(owner: Any) -> bool:
    return f"{getattr(owner, '__module__', '')}.".startswith(_PACKAGE)


def _file_of(module: ModuleType | None) -> Path | None:
    """Return the file of a user's module, or the archive with it; ``None`` for other modules."""
    file = vars(module).get("__file__") if isinstance(module, ModuleType) else None
    return _on_disk(file) if isinstance(file, str) else None


def _defined_in(part: Any) -> Iterator[Path | None]:
    """Yield the files that define a function or a class."""
    if isinstance(part, ModuleType):
        yield _file_of(part)
        return
    files = list(_files_of_globals(part))
    yield from files
    if not files:
        module = sys.modules.get(part.__module__ or "")
        yield _on_disk(inspect.getsourcefile(part)) or _file_of(module)


def _on_disk(file: str | None) -> Path | None:
    """Return the user's file at a path, which may lead into an archive, or ``None``."""
    if not file or file.startswith("<"):
        return None
    return _own_file(os.path.abspath(file))  # noqa: PTH100 - not to follow links yet


@functools.lru_cache(maxsize=10_000)
def _own_file(file: str) -> Path | None:
    path = Path(file).resolve()
    if _is_given(path):
        return None
    return next((one for one in (path, *path.parents) if one.is_file()), None)


class _Loads:
    """The content of files when Python loaded them, and the files that each import read."""

    def __init__(self) -> None:
        self.content: dict[Path, str] = {}
        self.read: dict[Path, set[Path]] = {}
        #: File with code -> the data that its cached functions read while Python imported any code.
        self.loaded: dict[Path, set[Path]] = {}
        #: Files that Python imported for some code that is not known. Any code may use them.
        self.loose: set[Path] = set()
        #: Files that this process has written. Their names may be random ones.
        self.written: set[Path] = set()
        self._imported: set[Path] = set()
        self._busy = threading.local()

    def hear(self, event: str, given: tuple[Any, ...]) -> None:
        """Note a file that is opened to be read. Python calls this before it opens the file.

        Python opens a compiled module by itself, and tells its file with the event ``import``.
        """
        if event not in {"open", "import"} or getattr(self._busy, "now", False):
            return
        self._busy.now = True
        try:
            # An exception would reach the code that opens the file.
            with suppress(Exception):
                frame = inspect.currentframe()
                if event == "import":
                    if isinstance(path := given[1], str):
                        self._note_code(Path(path), Path(path), frame and frame.f_back)
                    return
                path, _, flags = given
                if isinstance(path, str | bytes | os.PathLike):
                    file = Path(os.fsdecode(path))
                    # Other modes, such as ``a+``, may read the file.
                    if not flags & (os.O_WRONLY | os.O_TRUNC):
                        self._note(file, frame and frame.f_back)
                    elif _importing(frame and frame.f_back) is not None:
                        self.written.add(file.resolve())
        finally:
            self._busy.now = False

    def _note(self, path: Path, frame: FrameType | None) -> None:
        source = _source_of(path)
        if source is not None or _imports(frame):
            self._note_code(path, source or path, frame)
        # Code opens many files that do not count, and a look at the frames takes less time than one
        # at the path.
        elif (reader := _importing(frame)) is not None:
            named = Path(os.path.abspath(path))  # noqa: PTH100 - not to follow links yet
            file = path.resolve()
            data = any(_is_data(one, reader) for one in (named, file))
            if not data or _is_installed(file) or not file.is_file():
                return
            # The code knows the file by this path, whatever the links on it lead to.
            self.content[named] = self.content[file] if self.is_code(file) else content_of(file)
            self._note_reader(reader, named)
            for loader in _loaders_of(frame):
                self.loaded.setdefault(loader, set()).add(named)

    def is_code(self, file: Path) -> bool:
        """Return whether Python has imported a file, even if its module is no longer there."""
        return file in self._imported

    def _note_code(self, path: Path, source: Path, frame: FrameType | None) -> None:
        """Note code that Python imports. ``path`` is its source or the cache of it."""
        file = source.resolve()
        if _is_installed(file) or not file.is_file():
            return
        self._imported.add(file)
        self.content[file] = content_of(path if source != path and _is_stale(path, file) else file)
        self._note_reader(_reader(frame, at_import=False), file)
        # A factory of a package may import a module that a key names.
        for package in _packages_of(frame):
            self._note_reader(package, file)
        if _is_traced(frame):
            self.loose.discard(file)
            return
        # A thread may import for a module that another thread imports.
        others = list(sys._current_frames().values())  # noqa: SLF001 - documented
        readers = {_reader(one, at_import=True) for one in others} - {None, file}
        for reader in readers:
            self._note_reader(reader, file)
        if not readers:
            self.loose.add(file)

    def _note_reader(self, reader: Path | None, file: Path) -> None:
        if reader is not None and reader != file:
            self.read.setdefault(reader, set()).add(file)


_LOADS: Final = _Loads()


@functools.cache
def watch_loads() -> None:
    """Note from now on which files Python opens. Python cannot remove an audit hook."""
    sys.addaudithook(_LOADS.hear)


def _imports(frame: FrameType | None) -> bool:
    """Return whether a frame belongs to the import of a module by Python or by pytest."""
    if frame is None:
        return False
    return frame.f_code.co_filename.startswith("<frozen importlib") or (
        frame.f_globals.get("__name__") == "_pytest.assertion.rewrite"
    )


def _source_of(path: Path) -> Path | None:
    """Return the source of a file with cached code, or ``None`` for other files."""
    if path.suffix != ".pyc":
        return None
    folder, prefix = path.parent, sys.pycache_prefix
    if prefix and folder.is_relative_to(prefix):
        folder = Path(folder.anchor) / folder.relative_to(prefix)
    elif folder.name == "__pycache__":
        folder = folder.parent
    else:
        return None
    return folder / f"{path.name.partition('.')[0]}.py"


def _is_stale(cached: Path, source: Path) -> bool:
    """Return whether Python runs cached code although its source is another one.

    Python compares the size of the source and the seconds of its time, which tools may set. Code
    that pytest has rewritten cannot be compared with its source.
    """
    code, about = cached.read_bytes(), source.stat()
    head, size = code[:_HEAD], about.st_size
    if flags := int.from_bytes(head[4:8], "little"):
        # With a second flag, Python reads the source and compares it itself.
        return flags == 1 and head[8:] != source_hash(source.read_bytes())
    known = [number & 0xFFFFFFFF for number in (int(about.st_mtime), size)]
    taken = [number.to_bytes(4, "little") for number in known] == [head[8:12], head[12:]]
    # To compile takes long. It is needed only if the source has changed after it was compiled.
    written_later = about.st_ctime_ns >= cached.stat().st_mtime_ns
    if not taken or not written_later or "-pytest-" in cached.name:
        return False
    with warnings.catch_warnings(action="ignore"):
        try:
            new = compile(source.read_bytes(), source, "exec", dont_inherit=True)
        except SyntaxError:
            return True
    return bool(marshal.loads(code[_HEAD:]) != new)  # noqa: S302 - Python runs it


def _importing(frame: FrameType | None) -> Path | None:
    """Return the user's file that Python imports while its code opens another file, or ``None``."""
    reader = _reader(frame, at_import=True)
    others = sys._current_frames().values()  # noqa: SLF001 - documented
    if reader is None and len(others) > 1:
        # A thread may read for a module that another thread imports. `threading` does not know all
        # threads.
        found = (_reader(one, at_import=True) for one in others)
        reader = next(filter(None, found), None)
    return reader


def _reader(frame: FrameType | None, *, at_import: bool) -> Path | None:
    """Return the user's file whose code opens another file, or ``None``.

    ``at_import``: the file counts only while Python imports it.
    """
    while frame is not None and frame.f_code is not import_own.__code__:
        code = frame.f_code
        if not at_import and _is_of(frame, _PACKAGE):
            return None  # A script has called this package.
        if not at_import or (code.co_name == "<module>" and _imports(frame.f_back)):
            file = _user_file(frame)
            if file is not None:
                return file
        frame = frame.f_back
    return None


def _loaders_of(frame: FrameType | None) -> Iterator[Path]:
    """Yield the user's files with the functions that run and keep their results."""
    while frame is not None:
        code = frame.f_code
        found = frame.f_globals.get(code.co_name)
        kept = isinstance(found, CACHED) and _attribute(found.__wrapped__, "__code__") is code
        file = _user_file(frame) if kept else None
        if file is not None:
            yield file
        frame = frame.f_back


def _packages_of(frame: FrameType | None) -> Iterator[Path]:
    """Yield the files of installed packages whose code imports a module, not for a user's file."""
    while frame is not None and not _is_of(frame, _CALLERS):
        file = _on_disk(frame.f_code.co_filename)
        if file is not None and not _is_installed(file):
            return
        if file is not None:
            yield file
        frame = frame.f_back


def _is_of(frame: FrameType, packages: str | tuple[str, ...]) -> bool:
    """Return whether a frame belongs to a module of these packages, such as ``_pytest.``."""
    return str(frame.f_globals.get("__name__") or "").startswith(packages)


def _user_file(frame: FrameType) -> Path | None:
    """Return the user's file that the code of a frame belongs to, or ``None``.

    Code of ``exec``, or code that was stored, belongs to the module whose names it uses.
    """
    path = frame.f_code.co_filename
    file = _on_disk(path)
    if file is None and not _is_file_of_python(path):
        named = frame.f_globals.get("__file__")
        file = _on_disk(named) if isinstance(named, str) else None
    return None if file is None or _is_installed(file) else file


def _is_file_of_python(path: str) -> bool:
    """Return whether the path of some code is a module's file, or a module frozen into Python."""
    return path.startswith("<frozen ") or os.path.isfile(path)  # noqa: PTH113 - for each frame


def _is_traced(frame: FrameType | None) -> bool:
    """Return whether the frames tell which code a module is imported for.

    They do not if a thread has only code of Python, if the code has no file, or if an object
    imports the module when any code looks at it.
    """
    traced, script = True, _attribute(sys.modules.get("__main__"), "__dict__")
    while frame is not None:
        path, name = frame.f_code.co_filename, frame.f_globals.get("__name__") or ""
        if _user_file(frame) is not None:
            return True
        if frame.f_globals is script or _is_of(frame, _CALLERS):
            return traced
        # `LazyLoader` is in this module.
        traced = traced and _is_file_of_python(path) and name != "importlib.util"
        frame = frame.f_back
    return False


def _is_data(path: Path, reader: Path) -> bool:
    """Return whether a file may be data of a user, and is not hidden or part of the system.

    A checkout may be in a hidden folder or in one of the system. So this looks only at the folders
    below those that the file shares with the code that reads it, or with the working folder.
    """
    for folder in (reader.parent, Path.cwd()):
        near = (folder, *folder.parents)
        shared = next((one for one in near if path.is_relative_to(one)), None)
        if shared is None:  # Another drive.
            continue
        hidden = any(part.startswith(".") for part in path.relative_to(shared).parts)
        beside = shared == folder != shared.parent
        if not hidden and (beside or not any(_is_below(path, shared, one) for one in _SYSTEM)):
            return True
    return False


def _is_below(path: Path, shared: Path, folder: Path) -> bool:
    """Return whether a file is in a folder, and shares no folder below it with other code."""
    return path.is_relative_to(folder) and folder not in shared.parents


class _Walk:
    """A walk over files of code, and over the files that they import."""

    def __init__(self, *, loaders: bool) -> None:
        self._loaded = _LOADS.loaded if loaders else {}
        roots = [Path(entry or ".").resolve() for entry in sys.path]
        self._roots = [root for root in dict.fromkeys(roots) if not _is_installed(root)]
        self._modules: dict[Path, ModuleType] = {}
        for module in list(sys.modules.values()):
            file = _file_of(module)
            if file is not None and not _is_installed(file):
                self._modules.setdefault(file, module)
        # A module may have put another object into its place, so all files with code count.
        self._read = {one for read in list(_LOADS.read.values()) for one in list(read)}

    def over(self, files: Iterable[Path], more: Iterable[Path]) -> set[str]:
        """Return a line for each file, with its place, and a line for each import, with its name.

        Each line also identifies the content. A place is relative to the folder of ``files``, so
        the lines are the same on each machine, whatever ``more`` files there are. A file that the
        process itself has written has no place.
        """
        first = {file.resolve() for file in files}
        waiting = [*first, *(file.resolve() for file in more), *list(_LOADS.loose)]
        seen, removed = set[Path](), set[str]()
        imports: list[tuple[Path, str, Path]] = []
        while waiting:
            file = waiting.pop()
            if file in seen or _is_given(file):
                continue
            if not file.is_file():
                # Code may remove a file that it has loaded, and its name may be a random one.
                removed |= {_LOADS.content[file]} if file in _LOADS.content else set()
                continue
            seen.add(file)
            for one, name in self._needed_by(file):
                waiting.append(one)
                if name and not _is_given(one):
                    imports.append((file, name, one))
        fixed = {file: self._named(file) for file in seen if file not in _LOADS.written}
        places = {**dict.fromkeys(_LOADS.written, "written"), **_places_of(fixed, first)}
        lines = {f"{places[file]} {name} {self._content(one)}" for file, name, one in imports}
        # A file that is found by its use alone may be one that an import names at another time.
        others = seen - ({one for _, _, one in imports} - first)
        lines |= {f"removed {content}" for content in removed}
        return lines | {f"{places[one]} {self._content(one)}" for one in others}

    def _named(self, file: Path) -> Path:
        """Return the path by which Python found a file with code. It may have links."""
        module = self._modules.get(file)
        named = file if module is None else Path(os.path.abspath(str(module.__file__)))  # noqa: PTH100 - as above
        return named if named.is_file() else file

    def _content(self, file: Path) -> str:
        """Return the digest of a file, as it was when it was loaded or read at an import."""
        known = _LOADS.content
        if file in self._modules and file not in known:
            known[file] = content_of(file)
        loaded = file in self._modules or file in self._read or _LOADS.is_code(file)
        return known[file] if loaded else content_of(file)

    def _needed_by(self, file: Path) -> Iterator[tuple[Path, str]]:
        """Yield the files that a file needs, each with the place that its import names, if any."""
        root = _root_of(file)
        for one in (place / "__init__.py" for place in _between(root, file)):
            yield one, one.relative_to(root).as_posix()
        # Of an installed package only the files of the same package count.
        installed = _is_installed(file)
        for read in (_LOADS.read, self._loaded):
            yield from ((one, "") for one in list(read.get(file, ())))
        if (module := self._modules.get(file)) is not None:
            yield from ((one, "") for one in _referred(module))
        top = f"{file.relative_to(root).parts[0]}."
        for name, folder in dict.fromkeys(_imported_by(file)):
            if folder is not None:
                yield from ((one, f"./{place}") for one, place in _places(folder, name))
            elif not installed or f"{name}.".startswith(top):
                folders = [root] if installed else dict.fromkeys((root, *self._roots))
                places = (list(_places(each, name)) for each in folders)
                yield from next(filter(None, places), ())
                if not installed:
                    yield from ((one, "") for one in _loaded_as(name))


def _root_of(file: Path) -> Path:
    """Return the folder that has the package of a file. Without one, return that of the file."""
    return next(folder for folder in file.parents if not (folder / "__init__.py").is_file())


def _between(root: Path, file: Path) -> Iterator[Path]:
    """Yield the folders below ``root`` that contain a file."""
    yield from (folder for folder in file.parents if folder.is_relative_to(root) and folder != root)


def _is_installed(path: Path) -> bool:
    """Return whether a path belongs to an installed package."""
    return not _PACKAGES.isdisjoint(path.parts) or _is_given(path)


def _is_given(path: Path) -> bool:
    """Return whether a path belongs to Python or to this package."""
    own = _PACKAGES.isdisjoint(path.parts) or path.is_relative_to(_PLACE)
    return own and any(path.is_relative_to(one) for one in (_PYTHON, _PLACE))


def _places(root: Path, name: str) -> Iterator[tuple[Path, str]]:
    """Yield the file of a module, and the ``__init__`` files of its packages, within a folder.

    Each has its place in the folder. ``root`` may be an archive. Then the archive is the file.
    """
    if root.is_file():
        with suppress(ZipImportError):
            if zipimporter(str(root)).find_spec(name.partition(".")[0]):
                yield root, name
        return
    place = root
    for part in filter(None, name.split(".")):
        place /= part
        for one in (place.with_suffix(".py"), place / "__init__.py"):
            if one.is_file():
                yield one.resolve(), one.relative_to(root).as_posix()


def _places_of(files: Mapping[Path, Path], first: Iterable[Path]) -> dict[Path, str]:
    """Return the places of files, which are different for each two of them.

    They are relative to the folder of the first files. Those of files that share no folder with it
    are relative to their own folder.

    Args:
        files: the files, each with the path by which the code knows it.
        first: the files of the object itself.
    """
    base = _shared(_root_of(file) for file in first if not _is_installed(file))
    own = {
        file: _without_links_above(named, base) if base else named
        for file, named in files.items()
        if not _is_installed(file)
    }
    near = {file for file, named in own.items() if base and _shared((base, named.parent))}
    far = _shared(named.parent for file, named in own.items() if file not in near)
    found = {}
    for file in files:
        if file not in own:
            packages = max(n for n, part in enumerate(file.parts) if part in _PACKAGES)
            found[file] = "/".join(file.parts[packages + 1 :])
        elif base and file in near:
            found[file] = Path(os.path.relpath(own[file], base)).as_posix()
        else:
            found[file] = f"//{os.path.relpath(own[file], far) if far else own[file].as_posix()}"
    return found


def _without_links_above(named: Path, folder: Path) -> Path:
    """Return a path without links in the part that leads to ``folder``. The others stay."""
    for parent in named.parents:
        real = parent.resolve()
        if folder.is_relative_to(real):
            return real / named.relative_to(parent)
    return named


def _shared(folders: Iterable[Path]) -> Path | None:
    """Return the deepest folder that contains all given ones, ``None`` if it is the root."""
    try:
        found = Path(os.path.commonpath([*folders]))
    except ValueError:  # None, or several drives.
        return None
    return found if found != found.parent else None


def _loaded_as(name: str) -> Iterator[Path]:
    """Yield the files of the user's modules that are loaded under a name, and of its packages."""
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        file = _file_of(sys.modules.get(".".join(parts[:end])))
        if file is not None and not _is_installed(file):
            yield file


def _referred(module: ModuleType) -> Iterator[Path]:
    """Yield the files of the user's modules that the names of a module refer to."""
    named = list(vars(module).values())
    # Other modules may have put their functions into a table.
    tables = [value for value in named if type(value) in {dict, list, tuple, set}]
    for value in [*named, *(one for table in tables for one in held_by(table))]:
        if isinstance(value, FunctionType | type):
            value = sys.modules.get(_attribute(value, "__module__") or "")  # noqa: PLW2901
        if isinstance(value, ModuleType) and is_own_module(value):
            yield from filter(None, [_file_of(value)])


def _imported_by(file: Path) -> Iterator[tuple[str, Path | None]]:
    """Yield the name of each module that a file may import, and the folder of the module.

    The folder is ``None`` if the module is on Python's path.
    """
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, MemoryError, RecursionError):
        return
    for node in ast.walk(tree):
        for name in _names_in(node):
            level = len(name) - len(name.lstrip("."))
            if level:
                yield name[level:], file.parents[level - 1] if level <= len(file.parents) else None
            elif not f"{name}.".startswith(_PACKAGE):
                yield name, None


def _names_in(node: ast.AST) -> Iterator[str]:
    """Yield the modules that some code names. A relative name has a dot for each level."""
    match node:
        case ast.Import():
            yield from (alias.name for alias in node.names)
        case ast.ImportFrom():
            base = "." * node.level + (node.module or "")
            dot = "." if node.module else ""
            yield from (f"{base}{dot}{alias.name}" for alias in node.names)
        case ast.Call(
            func=ast.Name(id=called) | ast.Attribute(attr=called),
            args=[ast.Constant(value=str(name)), *_],
        ) if called in _IMPORTERS and name.strip("."):
            yield name
