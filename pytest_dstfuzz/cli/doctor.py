"""``dstfuzz doctor``: describe an installation for an issue report, without secrets.

Users can paste the whole output into an issue. It has no tokens, no credentials in addresses, and
no values of headers or environment variables. The home directory is shown as ``~``.

The command does not use pytest, because a pytest run would import the user's ``conftest.py``.
Instead it finds and reads the configuration files itself, by pytest's rules.
"""

from __future__ import annotations

import configparser
import contextlib
import hashlib
import io
import json
import os
import platform
import re
import shlex
import sys
from argparse import Namespace
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from pytest_dstfuzz import __version__
from pytest_dstfuzz.cli.command import Command, print_page
from pytest_dstfuzz.config import MASK, OPTIONS, mask_command_line, mask_credentials
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.errors import DataError, UserError, nearest, passes_through
from pytest_dstfuzz.files import read_table, read_text
from pytest_dstfuzz.registry import Registry

EXIT_PROBLEMS = 1

_NAME = "pytest-dstfuzz"
#: Extras for developers of this package.
_NOT_FOR_USERS = ("test", "dev", "bench", "docs", "all")
#: Matches metadata such as ``torch>=2.4; extra == "trade"``. A dependency may have extras in
#: brackets.
_REQUIREMENT = re.compile(
    r"([\w.-]+)(\[[^]]*\])?\s*([^;]*?)\s*(?:;.*?extra == ['\"]([\w-]+)['\"])?"
)
#: Environment variables that affect a run. Only their names are shown.
_VARIABLES = re.compile(r"DSTFUZZ_.*|PYTEST_.*|PYTHON(DONTWRITEBYTECODE|PATH|HASHSEED)|CI|.*_PROXY")
#: Data files of wings and other packages. An entry point names a mapping from display names, such
#: as ``acme/words.json``, to paths.
_DATA_FILES: Registry[Mapping[str, Path]] = Registry(
    "set of files",
    "pytest_dstfuzz.data_files",
    expects="a mapping of names to paths",
    fits=lambda found: (
        isinstance(found, Mapping) and all(isinstance(path, Path) for path in found.values())
    ),
)
#: Required files of the core.
_SHIPPED = (
    "resources/dialogues/sample/test.json",
    "resources/dialogues/sample-tools/test.jsonl",
    "resources/lexicon/lexicon.json.gz",
    "resources/noise/casual.json",
    "resources/noise/speech.json",
    "resources/noise/typing.json",
)
#: Names of configuration files, in pytest's order. The first two exist since pytest 9.
_FILES = (
    *("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml"),
    *("tox.ini", "setup.cfg"),
)
_GUARDED = (
    r"header|(?<!max_)(?<!max-)token|secret|passw|credential|cookie|authorization|bearer"
    r"|(?:api|access|private)[-_ ]?key"
)
_GUARDED_NAME = re.compile(_GUARDED, re.IGNORECASE)
#: Matches the name of a secret within a text, and the rest of the line.
_GUARDED_TEXT = re.compile(rf"((?:{_GUARDED})[\w-]*[\"']?\s*[=:\s]\s*).+", re.IGNORECASE)


def _options(parser: Parser) -> None:
    parser.option("--json", action="store_true", help="print the result as JSON")


def _doctor(given: Namespace) -> int:
    found = examine(Path.cwd())
    if given.json:
        print(json.dumps(found, indent=2))
    else:
        from pytest_dstfuzz.report.page import TerminalPage  # noqa: PLC0415 - only to print

        # Do not wrap lines that users will paste.
        page = TerminalPage(sys.maxsize, sys.stdout.encoding or "utf-8")
        for head, text in _lines(found):
            page.field(head, text)
        print_page(page)
    return EXIT_PROBLEMS if found["problems"] else 0


def examine(folder: Path) -> dict[str, Any]:
    """Return plain JSON about the installation that pytest would use in a directory."""
    problems: list[str] = []
    package = Path(__file__).parents[1]
    cache: Path | None = None
    # If a package is missing, list it among the problems.
    with contextlib.suppress(ImportError):
        from pytest_dstfuzz.dialogue.load import cache_folder  # noqa: PLC0415 - keeps help fast

        cache = cache_folder()
    plugins = [point.dist for point in metadata.entry_points(group="pytest11")]
    return {
        "version": __version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "platform": platform.platform(),
        "paths": {
            "python": abbreviate_home(sys.executable),
            "package": abbreviate_home(str(package)),
            "data_sets": abbreviate_home(str(cache)) if cache else "unknown",
            "working_folder": abbreviate_home(str(folder)),
        },
        "data_sets": sorted(path.name for path in cache.iterdir())
        if cache and cache.is_dir()
        else [],
        "packages": _packages(problems),
        "plugins": sorted({_named(dist) for dist in plugins if dist and dist.name != _NAME}),
        "config": find_config(folder, problems),
        "environment": sorted(name for name in os.environ if _VARIABLES.fullmatch(name.upper())),
        "resources": _resources(package, problems),
        "registered": _registered(problems),
        "problems": problems,
    }


def _packages(problems: list[str]) -> list[dict[str, Any]]:
    """Return each dependency of this package and of its extras, with the installed version."""
    try:
        required = metadata.requires(_NAME) or []
    except metadata.PackageNotFoundError:
        problems.append(
            f"{_NAME} is not installed (only its source is on Python's path), so pytest does not "
            "find the plugin: pip install pytest-dstfuzz, or pip install -e . in a checkout"
        )
        return []
    wanted: dict[str, str] = {}
    extras: dict[str, list[str]] = {}
    for match in filter(None, map(_REQUIREMENT.fullmatch, required)):
        if match[1] != _NAME and match[4] not in _NOT_FOR_USERS:
            wanted.setdefault(match[1], match[3])
            extras.setdefault(match[1], []).append(match[4] or "")
    sizes = Counter(extra for names in extras.values() for extra in names)
    found = []
    for name, least in wanted.items():
        # Sort by size, because users should install the smallest extra that has the package.
        of = sorted(extras[name], key=lambda extra: (sizes[extra], extra))
        version = None
        with contextlib.suppress(metadata.PackageNotFoundError):
            version = metadata.version(name)
        if version is None and "" in of:
            problems.append(f"the package {name} is missing: pip install {_NAME} again")
        elif version is not None and _older(version, least):
            problems.append(f"{name} {version} is too old: install {name}{least}")
        install = "" if version or "" in of else f'pip install "{_NAME}[{of[0]}]"'
        item = {"name": name, "needs": least, "installed": version}
        found.append({**item, "extras": [] if "" in of else of, "install": install})
    return found


def _older(version: str, wanted: str) -> bool:
    """Return whether a version is lower than the one after ``>=``, by their leading numbers."""
    least, has = re.search(r">=\s*([\d.]+)", wanted), re.match(r"([\d.]+)", version)
    if least is None or has is None:
        return False
    # Pad with zeros, so that 2 equals 2.0.
    given, needed = ([int(n) for n in found[1].split(".") if n] for found in (has, least))
    longest = max(len(given), len(needed))
    return given + [0] * (longest - len(given)) < needed + [0] * (longest - len(needed))


def _named(dist: metadata.Distribution) -> str:
    return f"{dist.name} {dist.version}"


def _resources(package: Path, problems: list[str]) -> list[dict[str, Any]]:
    """Return name, size and fingerprint of each data file of the core and of other packages."""
    recorded = _recorded()
    files = {name: package / name for name in _SHIPPED}
    for path in (package / "resources").rglob("*"):
        if path.is_file() and path.suffix not in {".md", ".txt"}:
            files[path.relative_to(package).as_posix()] = path
    for name in _DATA_FILES.names:
        try:
            files |= _DATA_FILES.find(name)
        except UserError as error:
            problems.append(abbreviate_home(str(error)))
    found, missing = [], []
    for name, path in sorted(files.items()):
        if not path.is_file():
            missing.append(f"the shipped file {name} is missing: install {_NAME} again")
            continue
        digest = hashlib.sha256(path.read_bytes())
        known = recorded.get(path.resolve())
        if known not in (None, urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()):
            problems.append(
                f"the shipped file {name} is not as it was installed: install {_NAME} again"
            )
        fingerprint = digest.hexdigest()[:12]
        found.append({"name": name, "bytes": path.stat().st_size, "sha256": fingerprint})
    problems += missing
    return found


def _recorded() -> dict[Path, str]:
    """Return the SHA-256 of each file that the installer recorded."""
    try:
        files = metadata.files(_NAME) or []
    except metadata.PackageNotFoundError:
        return {}
    return {
        Path(str(file.locate())).resolve(): file.hash.value
        for file in files
        if file.hash is not None and file.hash.mode == "sha256"
    }


def _registered(problems: list[str]) -> list[dict[str, str]]:
    """Return the entry points of other packages, each with the error if it cannot be loaded."""
    from pytest_dstfuzz.trackers.validation import find_error_place  # noqa: PLC0415

    found = []
    points = metadata.entry_points()
    for group in sorted(group for group in points.groups if group.startswith("pytest_dstfuzz.")):
        kind = group.partition(".")[2]
        for point in sorted(points.select(group=group), key=lambda point: point.name):
            if point.dist and point.dist.name == _NAME:
                continue  # This wing ships with the core.
            problem = ""
            try:
                # Hide the output of the import.
                with contextlib.redirect_stdout(io.StringIO()):
                    point.load()
            except BaseException as error:
                if passes_through(error):
                    raise
                # Show messages of import errors only. Messages of other errors may contain secrets.
                said = f": {error}" if isinstance(error, ImportError | AttributeError) else ""
                problem = abbreviate_home(f"{type(error).__name__}{said}{find_error_place(error)}")
                problems.append(f"{kind}: {point.name} ({point.value}) cannot be loaded: {problem}")
            brought = _named(point.dist) if point.dist else ""
            item = {"group": kind, "name": point.name, "value": point.value, "from": brought}
            found.append({**item, "problem": problem})
    return found


def abbreviate_home(text: str) -> str:
    """Return a text with ``~`` in place of the home directory."""
    for home in {str(Path.home()), os.path.realpath(Path.home())} - {os.sep}:
        text = re.sub(rf"{re.escape(home)}(?![\w.-])", "~", text)
    return text


def find_config(folder: Path, problems: list[str]) -> dict[str, Any]:
    """Return pytest's configuration file for a directory, its settings, and ``[tool.dstfuzz]``.

    The file may be in a parent directory. Errors are added to ``problems``.
    """
    for place in (folder, *folder.parents):
        for name in _files_of_this_pytest():
            path = place / name
            if not path.is_file():
                continue
            try:
                keys = _keys(path)
            except DataError as error:
                problems.append(abbreviate_home(str(error)))
                continue
            except configparser.Error as error:
                # The message of this error may repeat a line of the file.
                problems.append(abbreviate_home(f"{path} cannot be read: {type(error).__name__}"))
                continue
            if keys is not None:
                settings = {
                    name: _shown(name, keys[name]) for name in keys if name.startswith("dst_")
                }
                problems += _unknown_keys(path, keys)
                if added := _of_ours(keys.get("addopts", "")):
                    settings["addopts"] = added
                table = _table(place / "pyproject.toml", problems)
                return {"file": abbreviate_home(str(path)), "settings": settings, "table": table}
    return {"file": None, "settings": {}, "table": _table(folder / "pyproject.toml", problems)}


def _unknown_keys(path: Path, keys: Iterable[str]) -> Iterator[str]:
    """Yield a problem for each key that looks like one of the plugin but does not exist."""
    known = {f"dst_{option.name}" for option in OPTIONS if option.has_ini}
    for key in keys:
        if key.lower().startswith(("dst_", "dst-")) and key not in known:
            near = nearest(key, sorted(known))
            hint = f"Did you mean {near}?" if near else "`pytest --help` lists the keys."
            yield abbreviate_home(f"{path}: unknown key {key!r}. {hint}")


def _files_of_this_pytest() -> tuple[str, ...]:
    try:
        major = int(metadata.version("pytest").partition(".")[0])
    except (metadata.PackageNotFoundError, ValueError):
        return _FILES
    return _FILES if major >= 9 else _FILES[2:]


def _keys(path: Path) -> Mapping[str, Any] | None:
    """Return pytest's settings in a file, or ``None`` if pytest would skip the file."""
    if path.suffix == ".toml":
        if path.name != "pyproject.toml":
            return dict(read_table(path, "[pytest]"))
        table = read_table(path, "[tool.pytest]")
        return {**table, **table.get("ini_options", {})} if table else None
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.read_string(read_text(path))
    section = "tool:pytest" if path.name == "setup.cfg" else "pytest"
    if parser.has_section(section):
        return dict(parser.items(section))
    return {} if path.suffix == ".ini" and path.name != "tox.ini" else None


def _table(path: Path, problems: list[str]) -> Any:
    """Return the masked ``[tool.dstfuzz]`` table of a ``pyproject.toml``."""
    try:
        return _shown("", read_table(path, "[tool.dstfuzz]") if path.exists() else {})
    except DataError as error:
        if (problem := abbreviate_home(str(error))) not in problems:
            problems.append(problem)
        return {}


def _of_ours(addopts: object) -> list[str]:
    """Return the masked words of ``addopts`` if they include an option of this plugin."""
    try:
        words = shlex.split(addopts) if isinstance(addopts, str) else list(map(str, addopts))  # type: ignore[call-overload]  # a list in TOML
    except (TypeError, ValueError):
        return [MASK]
    if not any("dst" in word for word in words):
        return []
    return [_masked(word) for word in mask_command_line(words)]


def _shown(name: str, value: Any) -> Any:
    """Return a setting without secrets and without the home directory."""
    if isinstance(value, Mapping):
        return {key: _shown(f"{name}.{key}", part) for key, part in value.items()}
    if isinstance(value, list):
        return [_shown(name, part) for part in value]
    if not isinstance(value, str):
        return value if isinstance(value, bool | int | float | None) else str(value)
    if name == "dst_tracker":
        # Show the key, and show the value only if it names an environment variable.
        return mask_command_line(["--dst-tracker", value])[1]
    table, _, key = name.rpartition(".")
    if table.rpartition(".")[2] == "tracker":
        value = mask_command_line(["--dst-tracker", f"{key}={value}"])[1].partition("=")[2]
    return MASK if _GUARDED_NAME.search(name) else _masked(value)


def _masked(text: str) -> str:
    text = re.sub(r"\S+", lambda word: mask_credentials(word[0]), text)
    return abbreviate_home(_GUARDED_TEXT.sub(rf"\1{MASK}", text))


def _lines(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the label and the text of each line."""
    yield f"{_NAME}  ", found["version"]
    yield "python          ", found["python"]
    yield "platform        ", found["platform"]
    for name, path in found["paths"].items():
        yield f"{name.replace('_', ' '):<16}", path
    yield "fetched data    ", ", ".join(found["data_sets"]) or "none"
    yield (
        "environment     ",
        f"{', '.join(found['environment']) or 'no relevant variables'} (names only)",
    )
    yield "other plugins   ", ", ".join(found["plugins"]) or "none"
    yield "", "packages"
    for item in found["packages"]:
        extras = f"  [{', '.join(item['extras'])}]" if item["extras"] else ""
        version = item["installed"] or f"absent: {item['install']}"
        yield f"  {item['name']:<14}", f"{version}  (needs {item['needs']}){extras}"
    config = found["config"]
    yield "settings        ", config["file"] or "no configuration file for pytest found"
    for name, value in config["settings"].items():
        yield f"  {name:<14}", f"= {json.dumps(value)}"
    if config["table"]:
        yield "  [tool.dstfuzz]", f" = {json.dumps(config['table'])}"
    yield "", "shipped files"
    for item in found["resources"]:
        yield f"  {item['sha256']}  ", f"{item['name']} ({item['bytes']:,} bytes)"
    yield "", "registered by packages" if found["registered"] else "no package registers anything"
    for item in found["registered"]:
        status = f"cannot be loaded: {item['problem']}" if item["problem"] else "loads"
        yield f"  {item['group']}  ", f"{item['name']} ({item['from']}): {status}"
    yield "", "problems" if found["problems"] else "no problem found"
    for problem in found["problems"]:
        yield "  - ", problem


COMMANDS = (
    Command(
        "doctor",
        "print versions, paths and registered objects for a bug report, without secrets",
        "nothing was saved",
        """\
  dstfuzz doctor                 text to paste into an issue
  dstfuzz doctor --json          the same as JSON
It exits with 0 if there is no problem, with 1 if there is one (named in the last lines), and
with 2 if the command line is wrong.""",
        _options,
        _doctor,
        about="Print versions, paths, settings of the configuration file and registered objects,\n"
        "to paste into an issue. Tokens, and values of headers and of the environment, are\n"
        "left out.",
    ),
)
