"""A user's code decides by all files that it uses, as they were when they were loaded."""

from __future__ import annotations

import json
import os
import py_compile
import subprocess
import sys
import zipfile
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from functools import partial
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import cache_from_source, find_spec
from logging import LoggerAdapter, getLogger
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_dstfuzz import Campaign, Settings, UserError, own_code
from pytest_dstfuzz.campaign.code import TRACKER, code_of_tracker
from pytest_dstfuzz.comparisons.registry import COMPARISONS, as_comparison
from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.own_code import code_of, import_own
from pytest_dstfuzz.registry import Registry
from pytest_dstfuzz.scale.results import ResultFolder
from pytest_dstfuzz.scale.runs import run_into
from pytest_dstfuzz.trackers.registry import TRACKERS, load_attribute
from pytest_dstfuzz.trackers.schemes import SCHEMES

IMPL = "def f(context):\n    return {'hotel-area': 'north'} if 'north' in context.user else {}\n"
USE = "def track(context):\n    return impl.f(context)\n"
#: Reads each file beside it once.
LOADER = (
    "import functools, json\nfrom pathlib import Path\n@functools.cache\ndef load(name):\n"
    "    return json.loads(Path(__file__).with_name(name).read_text())\n"
)
#: How a bot finds its code -> its files, and which of them change. The bot is the first file.
FOUND: dict[str, tuple[dict[str, str], str]] = {
    "a name in a call": (
        {"bot.py": f"from importlib import import_module as im\nimpl = im('im' + 'pl')\n{USE}"},
        "impl.py",
    ),
    "a name in a function": (
        {
            "bot.py": "import importlib\ndef track(context):\n"
            "    return importlib.import_module('impl').f(context)\n"
        },
        "impl.py",
    ),
    "a relative name in a call": (
        {
            "pack/bot.py": "import importlib\ndef track(context):\n"
            "    return importlib.import_module('.impl', __package__).f(context)\n"
        },
        "pack/impl.py",
    ),
    "the builtin": ({"bot.py": f"impl = __import__('IMPL'.lower())\n{USE}"}, "impl.py"),
    "exec": (
        {
            "bot.py": "from pathlib import Path\nnames = {}\n"
            "exec(Path(__file__).with_name('impl.py').read_text(), names)\ntrack = names['f']\n"
        },
        "impl.py",
    ),
    "runpy": (
        {
            "bot.py": "import runpy\nfrom pathlib import Path\n"
            "track = runpy.run_path(str(Path(__file__).with_name('impl.py')))['f']\n"
        },
        "impl.py",
    ),
    "a spec": (
        {
            "bot.py": "from importlib import util\nfrom pathlib import Path\n"
            "spec = util.spec_from_file_location('x', Path(__file__).with_name('impl.py'))\n"
            f"impl = util.module_from_spec(spec)\nspec.loader.exec_module(impl)\n{USE}"
        },
        "impl.py",
    ),
    "a table of a module that Python runs again": (
        {
            "bot.py": "import importlib, table\nimportlib.reload(table)\n"
            "def track(context):\n    return table.TABLE\n",
            "table.py": "import load\nTABLE = load.load('t.json')\n",
            "load.py": LOADER,
        },
        "t.json",
    ),
    "a lazy package": (
        {
            "bot.py": "from pack import impl\ntrack = impl.f\n",
            "pack/__init__.py": "import importlib\ndef __getattr__(name):\n"
            "    return importlib.import_module(f'other.{name}')\n",
            "other/__init__.py": "",
        },
        "other/impl.py",
    ),
    "a relative name in a namespace": (
        {"space/one/bot.py": "from ..two.impl import f\ntrack = f\n"},
        "space/two/impl.py",
    ),
    "equal names in a namespace": (
        {
            "space/one/bot.py": "from ..two.impl import f\nfrom ..three import impl\ntrack = f\n",
            "space/two/impl.py": IMPL,
        },
        "space/three/impl.py",
    ),
    "a name of Python": ({"bot.py": f"import colorsys as impl\n{USE}"}, "colorsys.py"),
    "a folder that was on the path": (
        {
            "bot.py": "import sys\nfrom pathlib import Path\n"
            "sys.path.insert(0, str(Path(__file__).with_name('source')))\n"
            f"import impl\nsys.path.pop(0)\n{USE}"
        },
        "source/impl.py",
    ),
    "an archive": (
        {
            "bot.py": "import sys\nfrom pathlib import Path\n"
            f"sys.path.insert(0, str(Path(__file__).with_name('impl.zip')))\nimport impl\n{USE}"
        },
        "impl.zip",
    ),
    "an archive, later": (
        {
            "bot.py": "import sys\nfrom pathlib import Path\n"
            "sys.path.insert(0, str(Path(__file__).with_name('impl.zip')))\n"
            "def track(context):\n    from impl import f\n    return f(context)\n"
        },
        "impl.zip",
    ),
    "a table": (
        {
            "bot.py": "import json\nfrom pathlib import Path\n"
            "RULES = json.loads(Path(__file__).with_name('rules.json').read_text())\n"
            "def track(context):\n    return RULES\n"
        },
        "rules.json",
    ),
    "a table that is opened to be updated": (
        {
            "bot.py": "import json\nfrom pathlib import Path\n"
            "with Path(__file__).with_name('rules.json').open('r+') as file:\n"
            "    RULES = json.load(file)\n"
            "def track(context):\n    return RULES\n"
        },
        "rules.json",
    ),
    "a table that a thread reads": (
        {
            "bot.py": "import json\nfrom concurrent.futures import ThreadPoolExecutor\n"
            "from pathlib import Path\n"
            "with ThreadPoolExecutor() as pool:\n"
            "    path = Path(__file__).with_name('rules.json')\n"
            "    RULES = json.loads(pool.submit(path.read_text).result())\n"
            "def track(context):\n    return RULES\n"
        },
        "rules.json",
    ),
    "a table that a helper reads": (
        {
            "bot.py": "from helper import RULES\ndef track(context):\n    return RULES\n",
            "helper.py": "import json\nfrom pathlib import Path\ndef read():\n"
            "    return json.loads(Path(__file__).with_name('rules.json').read_text())\n"
            "RULES = read()\n",
        },
        "rules.json",
    ),
}


@pytest.fixture(autouse=True)
def unloaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Forget, when called and at the end, what a test imported."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)

    def forget() -> None:
        for name in sys.modules.keys() - before | {"colorsys"}:
            sys.modules.pop(name, None)
        # A new process does not know where a link led to before, nor what other code has imported.
        own_code._own_file.cache_clear()
        own_code._LOADS.loose.clear()

    yield forget
    forget()


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("impl.py", text)
    else:
        path.write_text(text, encoding="utf-8")


def first_text(path: str) -> str:
    return '{"hotel-area": "north"}' if path.endswith("json") else IMPL


@pytest.mark.parametrize("how", FOUND)
def test_each_file_that_the_code_uses_decides(
    tmp_path: Path, unloaded: Callable[[], None], how: str
) -> None:
    files, changed = FOUND[how]
    for name, text in {**files, changed: first_text(changed), "other.txt": ""}.items():
        write(tmp_path / name, text)
    target = f"{next(iter(files)).removesuffix('.py').replace('/', '.')}:track"
    found = []
    for text in ("", "", first_text(changed).replace("north", "south")):
        unloaded()
        write(tmp_path / "other.txt", "unused")
        if text:
            write(tmp_path / changed, text)
        found.append(code_of(load_attribute(target, (str(tmp_path),), "tracker"), target))
    assert found[0]
    assert found[0] == found[1]
    assert found[1] != found[2]


#: How a bot uses two files -> its files, and the two. The bot is the first file.
PAIRS: dict[str, tuple[dict[str, str], tuple[str, str]]] = {
    "data of one name": (
        {
            "bot.py": "from pathlib import Path\n"
            "T = [Path(__file__).with_name(n).joinpath('t.json').read_text() for n in 'ab']\n"
            "def track(context): return {}\n",
        },
        ("a/t.json", "b/t.json"),
    ),
    "data of a package": (
        {
            "pack/bot.py": "from pathlib import Path\n"
            "T = [Path(__file__).parents[1].joinpath(n, 't.json').read_text() for n in 'ab']\n"
            "def track(context): return {}\n",
            "pack/__init__.py": "",
        },
        ("a/t.json", "b/t.json"),
    ),
    "modules of a computed name": (
        {
            "bot.py": "from importlib import import_module as im\n"
            "used = [im(f'{n}.rules') for n in 'ab']\ndef track(context): return {}\n",
        },
        ("a/rules.py", "b/rules.py"),
    ),
    "modules of a relative name": (
        {
            "bot.py": "import a.part, b.part\ndef track(context): return {}\n",
            "a/part.py": "from .rules import f\n",
            "b/part.py": "from .rules import f\n",
        },
        ("a/rules.py", "b/rules.py"),
    ),
    "a package and its module": (
        {"bot.py": "import a.rules\ndef track(context): return {}\n"},
        ("a/__init__.py", "a/rules.py"),
    ),
}


def swap(folder: Path, pair: tuple[str, str]) -> None:
    texts = [(folder / name).read_text(encoding="utf-8") for name in pair]
    for name, text in zip(pair, reversed(texts), strict=True):
        write(folder / name, text)


@pytest.mark.parametrize("how", PAIRS)
def test_the_place_of_each_file_decides_and_that_of_the_whole_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unloaded: Callable[[], None], how: str
) -> None:
    files, pair = PAIRS[how]
    texts = [first_text(pair[0]), first_text(pair[0]).replace("north", "south")]
    target = f"{next(iter(files)).removesuffix('.py').replace('/', '.')}:track"
    found = []
    for place in ("one", "one", "another/place", "swap"):
        folder = tmp_path / place
        for name, text in {**files, **dict(zip(pair, texts, strict=True))}.items():
            write(folder / name, text)
        if place == "swap":
            swap(folder, pair)
        unloaded()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "path", [*sys.path])
            found.append(code_of(load_attribute(target, (str(folder),), "tracker"), target))
    assert found[0] == found[1] == found[2] != found[3]


@pytest.mark.parametrize("named", ["import {0}.rules", "im('{0}' + '.rules')", "read('{0}')"])
def test_the_link_to_a_folder_of_files_decides(
    tmp_path: Path, unloaded: Callable[[], None], named: str
) -> None:
    lines = "\n".join(named.format(name) for name in ("live", "old"))
    write(
        tmp_path / "bot.py",
        "from importlib import import_module as im\nfrom pathlib import Path\n"
        "def read(name): Path(__file__).with_name(name).joinpath('rules.py').read_text()\n"
        f"{lines}\ndef track(context): return {{}}\n",
    )
    for name, word in (("v1", "north"), ("v2", "south")):
        write(tmp_path / name / "rules.py", IMPL.replace("north", word))
    found = []
    for live, old in (("v1", "v2"), ("v1", "v2"), ("v2", "v1")):
        for name, target in (("live", live), ("old", old)):
            (tmp_path / name).unlink(missing_ok=True)
            (tmp_path / name).symlink_to(tmp_path / target, target_is_directory=True)
        unloaded()
        found.append(code_of(load_attribute("bot:track", (str(tmp_path),), "tracker")))
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize("changed", ["impl.py", "rules.json"])
def test_files_of_a_module_count_that_puts_another_object_into_its_place(
    tmp_path: Path, unloaded: Callable[[], None], changed: str
) -> None:
    write(tmp_path / "bot.py", "import impl\ndef track(context): return impl.f(context)\n")
    write(tmp_path / "rules.json", "good")
    write(
        tmp_path / "impl.py",
        "import sys\nfrom pathlib import Path\nclass Impl:\n"
        "    text = Path(__file__).with_name('rules.json').read_text()\n"
        "    def f(self, context): return {}\nsys.modules[__name__] = Impl()\n",
    )

    def load() -> object:
        unloaded()
        return load_attribute("bot:track", (str(tmp_path),), "tracker")

    tracker = load()
    before = code_of(tracker)
    with (tmp_path / changed).open("a", encoding="utf-8") as file:
        file.write("# other\n")
    assert code_of(tracker) == before
    assert code_of(load()) != before


def test_another_bot_has_data_that_its_loader_kept(
    tmp_path: Path, unloaded: Callable[[], None]
) -> None:
    write(tmp_path / "load.py", LOADER)
    for name in ("bot", "twin"):
        text = "import load\nTABLE = load.load('t.json')\ndef track(context):\n    return TABLE\n"
        write(tmp_path / f"{name}.py", text)
    found = []
    for text in ("north", "south"):
        write(tmp_path / "t.json", json.dumps({"hotel-area": text}))
        unloaded()
        both = [load_attribute(f"{n}:track", (str(tmp_path),), "bot") for n in ("bot", "twin")]
        found.append([code_of_tracker("", one)[TRACKER] for one in both])
    assert len({*found[0], *found[1]}) == 4


@pytest.mark.parametrize("kind", ["data", "code"])
def test_a_file_counts_that_the_bot_removes(
    tmp_path: Path, unloaded: Callable[[], None], kind: str
) -> None:
    use = "import impl as file\nfile = Path(file.__file__)\n"
    read = "file = Path(__file__).with_name('impl.py')\nfile.read_text()\n"
    head, use = "from pathlib import Path\n", use if kind == "code" else read
    write(tmp_path / "bot.py", f"{head}{use}file.unlink()\ndef track(context): return {{}}\n")
    found = []
    for text in (IMPL, IMPL, f"{IMPL}# other\n"):
        write(tmp_path / "impl.py", text)
        unloaded()
        found.append(code_of(load_attribute("bot:track", (str(tmp_path),), "bot")))
    assert found[0] == found[1] != found[2]


def test_files_that_the_bot_writes_count_by_their_content(
    tmp_path: Path, unloaded: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their names may be random ones. The files are below the bot's folder and outside of it."""
    (tmp_path / "project").mkdir()
    (tmp_path / "other").mkdir()
    write(
        tmp_path / "project" / "bot.py",
        "import os\nfrom pathlib import Path\nfrom tempfile import mkdtemp\n"
        "for above in ('project', 'other', 'other'):\n"
        "    file = Path(mkdtemp(dir=Path(__file__).parents[1] / above), 'rules.txt')\n"
        "    file.write_text(os.environ['RULES'])\n    file.read_text()\n"
        "def track(context): return {}\n",
    )
    found = []
    for text in ("a", "a", "b"):
        monkeypatch.setenv("RULES", text)
        unloaded()
        bot = load_attribute("bot:track", (str(tmp_path / "project"),), "bot")
        found.append(code_of(bot))
    assert found[0] == found[1] != found[2]


def test_code_counts_of_a_module_that_is_not_registered(
    tmp_path: Path, unloaded: Callable[[], None]
) -> None:
    write(
        tmp_path / "bot.py",
        "from importlib import util\nfrom pathlib import Path\n"
        "spec = util.spec_from_file_location('nowhere', Path(__file__).with_name('impl.py'))\n"
        "impl = util.module_from_spec(spec)\nspec.loader.exec_module(impl)\n",
    )
    found = []
    for number in (1, 1, 2):
        text = f"class Rule:\n    def __call__(self, before, found): return {number}\n"
        write(tmp_path / "impl.py", text)
        unloaded()
        found.append(code_of(load_attribute("bot:impl", (str(tmp_path),), "module").Rule()))
    assert found[0] == found[1] != found[2]


def test_code_counts_that_an_object_of_a_package_holds(
    tmp_path: Path, unloaded: Callable[[], None]
) -> None:
    found = []
    for text in (IMPL, IMPL, f"{IMPL}# other\n"):
        write(tmp_path / "impl.py", text)
        unloaded()
        rule = load_attribute("impl:f", (str(tmp_path),), "rule")
        holder = ArgumentParser()
        holder.rules = {"a": [rule]}  # type: ignore[attr-defined]
        inner = type("Inner", (), {"rule": staticmethod(rule)})
        held = (holder, partial(print, [rule]), SimpleNamespace(inner=inner))
        found.append([code_of(one) for one in held])
    assert found[0] == found[1]
    assert all(one != other for one, other in zip(found[1], found[2], strict=True))


def compares_by(rule: object) -> Callable[[str, str], bool]:
    return lambda before, found: before == found or bool(rule)


@pytest.mark.parametrize("by", ["itself", "a logger", "a comparison of this package"])
def test_code_counts_that_a_comparison_holds(
    tmp_path: Path, unloaded: Callable[[], None], by: str
) -> None:
    write(
        tmp_path / "compare.py",
        "class Own:\n    name = 'own'\n    def __init__(self, rule): self.rule = rule\n"
        "    def compare(self, path, before, found, asked): return self.rule\n",
    )
    found = []
    for text in (IMPL, IMPL, f"{IMPL}# other\n"):
        write(tmp_path / "impl.py", text)
        unloaded()
        path = (str(tmp_path),)
        held: Any = load_attribute("impl:f", path, "rule")
        if by == "a logger":
            held = LoggerAdapter(getLogger("rules"), {"rule": held})
        elif by != "itself":
            held = as_comparison(compares_by(held), "here", ReplySettings())
        made = load_attribute("compare:Own", path, "comparison")(held)
        found.append(as_comparison(made, "here", ReplySettings()).identity)
    assert found[0] == found[1] != found[2]


def test_code_that_python_cannot_parse_counts_by_its_content(
    tmp_path: Path, unloaded: Callable[[], None]
) -> None:
    write(tmp_path / "bot.py", "def track(context):\n    import impl\n")
    found = []
    for number in (1, 1, 2):
        write(tmp_path / "impl.py", f"x = {'-' * 20_000}{number}\n")
        unloaded()
        found.append(code_of(load_attribute("bot:track", (str(tmp_path),), "bot")))
    assert found[0] == found[1] != found[2]


def test_a_module_counts_that_an_installed_package_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unloaded: Callable[[], None]
) -> None:
    """It counts for the package, and not for own code such as a comparison."""
    text = f"{LOAD}import_module('im' + 'pl')\n{CALL}"
    write(tmp_path / "site-packages" / "plug.py", text)
    write(tmp_path / "rules.py", "def same(before, found): return before == found\n")
    for folder in ("site-packages", ""):
        monkeypatch.syspath_prepend(str(tmp_path / folder))
    found, rules = [], set()
    for code in (IMPL, IMPL, f"{IMPL}# other\n"):
        write(tmp_path / "impl.py", code)
        unloaded()
        found.append(code_of(load_attribute("plug:track", (), "bot")))
        rules.add(code_of(load_attribute("rules:same", (), "rule")))
    assert found[0] == found[1] != found[2]
    assert len(rules) == 1


def test_another_bot_that_uses_loaded_code_has_it_too(
    tmp_path: Path, unloaded: Callable[[], None]
) -> None:
    for name in ("bot", "twin"):
        write(tmp_path / f"{name}.py", FOUND["a name in a call"][0]["bot.py"])
    found = []
    for text in (IMPL, IMPL.replace("north", "south")):
        write(tmp_path / "impl.py", text)
        unloaded()
        both = [load_attribute(f"{n}:track", (str(tmp_path),), "bot") for n in ("bot", "twin")]
        found.append([code_of(one) for one in both])
    assert len({*found[0], *found[1]}) == 4


def test_code_counts_as_it_was_loaded(tmp_path: Path, unloaded: Callable[[], None]) -> None:
    files = {"bot.py": "import impl\ntrack = impl.f\n", "impl.py": IMPL}
    for name, text in files.items():
        write(tmp_path / name, text)

    def loaded() -> str:
        return code_of(load_attribute("bot:track", (str(tmp_path),), "tracker"), "bot:track")

    first = load_attribute("bot:track", (str(tmp_path),), "tracker")
    write(tmp_path / "impl.py", IMPL.replace("north", "south"))
    before = code_of(first, "bot:track")
    (tmp_path / "impl.py").read_text()
    assert loaded() == before
    unloaded()
    assert loaded() != before
    write(tmp_path / "impl.py", IMPL)
    unloaded()
    assert loaded() == before


LATE = (
    "import importlib\nfrom pathlib import Path\ndef track(context):\n"
    "    path = Path(__file__).with_name('impl.py')\n    {edit}\n"
    "    return importlib.import_module({name}).f(context)\n"
)
EDIT = "if 'track' not in path.read_text(): path.write_text(path.read_text() + '# track\\\\n')"


@pytest.mark.parametrize(
    ("edit", "name", "continued"),
    [("", "'impl'", True), (EDIT, "'impl'", False), ("", "'im' + 'pl'", False)],
    ids=["known", "edited", "not known before"],
)
def test_results_of_code_that_is_known_only_later_are_not_continued(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    unloaded: Callable[[], None],
    edit: str,
    name: str,
    *,
    continued: bool,
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "bot.py", LATE.format(edit=edit or "del path", name=name))
    write(tmp_path / "impl.py", IMPL)
    settings = Settings.of(model="bot:track", turns=10, variants=2, search="random")

    def run() -> ResultFolder:
        unloaded()
        campaign = Campaign("bot:track", settings=settings)
        return run_into(campaign, tmp_path / "run", lambda *_: None)

    first = run()
    noted = [note for note in first.manifest.notes if "the code of the tracker" in note]
    assert bool(noted) is not continued
    if continued:
        again = run()
        assert list(again.results) == list(first.results)
    else:
        with pytest.raises(UserError, match="the code of the tracker differs"):
            run()


LOAD = "import sys\nfrom importlib import import_module\n"
LAZY = (
    "import sys\nfrom importlib import util\ndef lazy(name):\n"
    "    spec = util.find_spec(name)\n    spec.loader = loader = util.LazyLoader(spec.loader)\n"
    "    found = sys.modules[name] = util.module_from_spec(spec)\n"
    "    loader.exec_module(found)\n    return found\n"
)
JOIN = "thread.start()\nthread.join()\n"
CALL = "def track(context):\n    return sys.modules['im' + 'pl'].f(context)\n"
#: How a bot imports a module without its own name for it -> its code.
UNNAMED = {
    "a pool": f"{LOAD}from concurrent.futures import ThreadPoolExecutor\n"
    f"with ThreadPoolExecutor() as pool:\n    list(pool.map(import_module, ['im' + 'pl']))\n{CALL}",
    "a pool of processes": f"{LOAD}from multiprocessing.pool import ThreadPool\n"
    f"with ThreadPool(1) as pool:\n    pool.map(import_module, ['im' + 'pl'])\n{CALL}",
    "a coroutine": f"{LOAD}import asyncio\n"
    f"asyncio.run(asyncio.to_thread(import_module, 'im' + 'pl'))\n{CALL}",
    "a thread": f"{LOAD}from threading import Thread\n"
    f"thread = Thread(target=import_module, args=('im' + 'pl',))\n{JOIN}{CALL}",
    "a text in a thread": "import sys\nfrom threading import Thread\n"
    f"thread = Thread(target=exec, args=('import impl', {{}}))\n{JOIN}{CALL}",
    "a lazy module": f"{LAZY}USED = {{'k': lazy('im' + 'pl')}}\n"
    "def track(context):\n    return USED['k'].f(context)\n",
    "a lazy attribute": f"{LAZY}class Bot:\n    used = lazy('impl')\n"
    "    def __call__(self, context):\n        return self.used.f(context)\ntrack = Bot()\n",
    "a pool, later": f"{LOAD}from concurrent.futures import ThreadPoolExecutor\n"
    "def track(context):\n    with ThreadPoolExecutor() as pool:\n"
    "        return list(pool.map(import_module, ['im' + 'pl']))[0].f(context)\n",
    "a text, later": "exec('''from importlib import import_module\n"
    "def track(context):\n    return import_module('im' + 'pl').f(context)\n''')\n",
    "a text with other names, later": "names = {}\nexec('''from importlib import import_module\n"
    "def track(context):\n    return import_module('im' + 'pl').f(context)\n''', names)\n"
    "track = names['track']\n",
    "stored code, later": "from importlib import import_module\nfrom types import FunctionType\n"
    "def track(context):\n    return import_module('im' + 'pl').f(context)\n"
    "code = track.__code__.replace(co_filename='/build/agent.py')\n"
    "track = FunctionType(code, globals())\n",
}


@pytest.mark.parametrize("how", UNNAMED)
def test_no_run_continues_after_a_module_changed_that_the_bot_never_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unloaded: Callable[[], None], how: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "bot.py", UNNAMED[how])
    settings = Settings.of(model="bot:track", turns=10, variants=2, search="random")

    def run(code: str) -> None:
        unloaded()
        write(tmp_path / "impl.py", code)
        run_into(Campaign("bot:track", settings=settings), tmp_path / "run", lambda *_: None)

    run(IMPL)
    with pytest.raises(UserError, match="the code of the tracker differs"):
        run(f"{IMPL}# other\n")


def test_a_run_says_that_the_values_of_a_comparison_are_not_known(tmp_path: Path) -> None:
    write(
        tmp_path / "unknown.py",
        "import functools, sys\n"
        "def compare(stream, before, found): return before == found\n"
        "same = functools.partial(compare, sys.stderr)\n"
        "def reply(messages): return 'It is 5.'\n",
    )
    command = (
        "import sys; from pathlib import Path\n"
        "from pytest_dstfuzz import Campaign, Settings, UserError\n"
        "from pytest_dstfuzz.scale.runs import run_into\n"
        "settings = Settings.of(model='unknown:reply', outcome='reply', compare='unknown:same',"
        " turns=4, variants=2)\n"
        "campaign = Campaign('unknown:reply', settings=settings)\n"
        "try: print(*run_into(campaign, Path('run'), lambda *_: None).manifest.notes)\n"
        "except UserError as error: print(error)\n"
    )
    env = {name: text for name, text in os.environ.items() if "TESTRUNUID" not in name}
    env["PYTHONPATH"] = os.pathsep.join([str(tmp_path), *sys.path])
    told = [
        subprocess.run(
            [sys.executable, "-c", command],
            cwd=tmp_path, env=env, capture_output=True, check=True, text=True,
        ).stdout
        for _ in range(2)
    ]  # fmt: skip
    assert "later runs will not continue these results (it holds a" in told[0]
    assert "cannot be continued" in told[1]
    assert "attribute fingerprint" in told[1]


@pytest.mark.parametrize("how", ["a pool", "a thread", "a lazy module"])
def test_a_run_continues_while_a_module_that_the_bot_never_names_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unloaded: Callable[[], None], how: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "bot.py", UNNAMED[how])
    write(tmp_path / "impl.py", IMPL)
    settings = Settings.of(model="bot:track", turns=10, variants=2, search="random")
    found = []
    for _ in range(2):
        unloaded()
        campaign = Campaign("bot:track", settings=settings)
        found.append(run_into(campaign, tmp_path / "run", lambda *_: None))
    assert list(found[0].results) == list(found[1].results)


def test_a_compiled_module_counts_under_a_computed_name(
    tmp_path: Path, unloaded: Callable[[], None]
) -> None:
    given = find_spec("_lsprof")
    if given is None or not (given.origin or "").endswith(tuple(EXTENSION_SUFFIXES)):
        pytest.skip("this Python has the module built in")
    origin = Path(given.origin or "")
    write(tmp_path / "bot.py", f"{LOAD}used = [import_module('_ls' + 'prof')]\ntrack = print\n")
    found = []
    for more in (b"", b"", b"other"):
        unloaded()
        sys.modules.pop("_lsprof", None)
        (tmp_path / origin.name).unlink(missing_ok=True)
        (tmp_path / origin.name).write_bytes(origin.read_bytes() + more)
        found.append(code_of(load_attribute("bot:track", (str(tmp_path),), "tracker"), "bot:track"))
    assert found[0] == found[1] != found[2]


def test_code_counts_that_python_optimises(tmp_path: Path) -> None:
    write(tmp_path / "bot.py", "def track(context):\n    return {}\n")
    code = "from pytest_dstfuzz.own_code import code_of\nimport bot\nprint(code_of(bot.track))"
    found = []
    for options in ([], [], ["-O"], ["-OO"]):
        done = subprocess.run(
            [sys.executable, *options, "-c", code],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(
                    [str(Path(own_code.__file__).parents[1]), str(tmp_path)]
                ),
            },
            capture_output=True,
            text=True,
            check=True,
        )
        found.append(done.stdout)
    assert found[0] == found[1]
    assert len(set(found)) == 3


#: An installed package, whose code does not count.
LIBRARY = """
class Tabled:
    name = "tabled"
    def __init__(self, table):
        self.table = table
    def predict(self, contexts):
        return [self.table["state"] for _ in contexts]
    def same(self, before, found):
        return before == found or self.table["lenient"]
    def compare(self, path, before, found, asked):
        return self.same(before, found)

class Base:
    def call(self):
        return self.f()

def apply(function, context):
    return function(context)
"""
#: Objects of another module's function `f`, and an expression of each.
MADE = {
    "argument of a partial": "functools.partial(library.apply, impl.f)",
    "keyword of a partial": "functools.partial(library.apply, function=impl.f)",
    "partial of a partial": "functools.partial(functools.partial(library.apply, impl.f))",
    "object of a method": "type('Own', (library.Base,), {'f': impl.f})().call",
    "function of a class": "type('Own', (library.Base,), {'f': impl.f})",
    "static method": "type('Own', (library.Base,), {'f': staticmethod(impl.f)})()",
    "property": "type('Own', (library.Base,), {'f': property(impl.f)})()",
    "made dataclass": "dataclasses.make_dataclass('Own', [], namespace={'f': impl.f})",
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_code_counts_that_an_object_of_another_module_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unloaded: Callable[[], None], made: str
) -> None:
    write(tmp_path / "site-packages" / "library.py", LIBRARY)
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    monkeypatch.syspath_prepend(tmp_path)
    found = []
    for text in (IMPL, IMPL, IMPL.replace("north", "south")):
        write(tmp_path / "impl.py", text)
        unloaded()
        names = {name: import_own(name) for name in ("functools", "dataclasses", "library", "impl")}
        found.append(code_of(eval(made, names)))  # noqa: S307 - of the table above
    assert found[0] == found[1] != found[2]


#: How a module registers an object of an installed class -> the settings of a campaign with it.
REGISTERED: dict[str, tuple[str, str, dict[str, str]]] = {
    "tracker": (
        "register_tracker('tabled', thing)",
        "functools.partial(Tabled, TABLE)",
        {"model": "tabled"},
    ),
    "scheme": (
        "register_scheme('tabled', thing)",
        "functools.partial(Tabled, TABLE)",
        {"model": "tabled://localhost"},
    ),
    "comparison": (
        "register_comparison(thing)",
        "Tabled(TABLE)",
        {"model": "says:reply", "outcome": "reply", "compare": "tabled"},
    ),
}


@pytest.mark.parametrize("how", REGISTERED)
@pytest.mark.parametrize("by", ["call", "entry point"])
def test_the_module_that_an_object_comes_from_counts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    unloaded: Callable[[], None],
    how: str,
    by: str,
) -> None:
    call, thing, options = REGISTERED[how]
    registry: Registry[Any] = {"tracker": TRACKERS, "scheme": SCHEMES}.get(how, COMPARISONS)
    for name in ("_registered", "_callers"):
        monkeypatch.setattr(registry, name, {})
    write(tmp_path / "site-packages" / "library.py", LIBRARY)
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "says.py", "def reply(messages):\n    return 'It is north.'\n")
    if by == "entry point":
        info = tmp_path / "made-1.dist-info"
        write(info / "METADATA", "Metadata-Version: 2.1\nName: made\nVersion: 1\n")
        point = f"[pytest_dstfuzz.{how}s]\ntabled = made:thing\n"
        write(info / "entry_points.txt", point)
        call = ""
    found = []
    for state in ("{}", "{}", "{'hotel-area': 'north'}"):
        table = f"TABLE = {{'state': {state}, 'lenient': False}}"
        imports = "import functools\nfrom library import Tabled\nfrom pytest_dstfuzz import *\n"
        write(tmp_path / "made.py", f"{imports}{table}\nthing = {thing}\n{call}\n")
        unloaded()
        if by == "call":
            import_own("made")
        found.append(Campaign(options["model"], settings=Settings.of(**options)).identity["code"])
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize(
    ("parameters", "option", "counts"),
    [
        ("address, timeout: float = 10", "timeout=2", True),
        ("address, service", "timeout=2", True),
        ("address, service", "concurrency=3", True),
        ("settings", "retries=1", True),
        ("**given", "retries=1", True),
        ("address", "retries=1", False),
    ],
)
def test_options_count_that_reach_the_factory_of_an_address(
    monkeypatch: pytest.MonkeyPatch, parameters: str, option: str, *, counts: bool
) -> None:
    for name in ("_registered", "_callers"):
        monkeypatch.setattr(SCHEMES, name, {})
    names: dict[str, Any] = {}
    exec(f"def create({parameters}): return lambda context: {{}}", names)  # noqa: S102 - see above
    SCHEMES.register("lines", names["create"])
    plain, other = (
        Campaign("lines://localhost", settings=Settings.of(**more)).identity
        for more in ({}, {"tracker": [option]})
    )
    differ = {name for name in plain if plain[name] != other[name]}
    assert differ == ({"the options of the tracker's factory"} if counts else set())


#: How a module reads a file during its import.
READS = {
    "bytes": "with open(b'rules.txt') as file: TEXT = file.read()",
    "append and read": "with open('rules.txt', 'a+') as file:\n"
    "    file.seek(0)\n    TEXT = file.read()",
    "raw thread": "import _thread, time\nfrom pathlib import Path\ntexts = []\n"
    "_thread.start_new_thread(lambda: texts.append(Path('rules.txt').read_text()), ())\n"
    "while not texts: time.sleep(0.01)",
}


@pytest.mark.parametrize("how", READS)
def test_each_way_to_read_a_file_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unloaded: Callable[[], None], how: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "bot.py", f"{READS[how]}\ndef track(context): return {{}}\n")
    found = []
    for text in ("good", "good", "bad"):
        write(tmp_path / "rules.txt", text)
        unloaded()
        found.append(code_of(load_attribute("bot:track", (str(tmp_path),), "tracker")))
    assert found[0] == found[1] != found[2]


#: The place of a checkout, the target of the link to its table, and the folder of the command.
PLACES: dict[str, tuple[str, str, str]] = {
    "a mounted table": ("project", "..data/table.json", "."),
    "a store of tables": ("project", "../.cache/table/0123", "."),
    "a hidden checkout": (".worktrees/project", "", "."),
    "a hidden checkout, run elsewhere": (".worktrees/project", "", "../.."),
    "a hidden folder of the code itself": (".project", "", ".."),
    "a checkout among the files of the system": ("usr/project", "", "."),
    "a checkout beside the files of the system": ("usr", "", ".."),
}


@pytest.mark.parametrize("where", PLACES)
def test_data_count_wherever_the_checkout_and_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unloaded: Callable[[], None], where: str
) -> None:
    place, link, here = PLACES[where]
    monkeypatch.setattr(own_code, "_SYSTEM", (tmp_path / "usr",))
    project = tmp_path / place
    table = project / "data" / "table.json"
    write(
        project / "tests" / "bot.py",
        "from pathlib import Path\n"
        "TABLE = Path(__file__).parents[1].joinpath('data/table.json').read_text()\n"
        "def track(context): return {}\n",
    )
    write(project / "data" / "notes.txt", "")
    monkeypatch.chdir(project / "tests" / here)
    found = []
    for version, text in enumerate(("good", "good", "bad")):
        if link:
            target = project / "data" / link.replace("..data", f"..{version}/table")
            write(target, text)
            table.unlink(missing_ok=True)
            table.symlink_to(target)
        else:
            write(table, text)
        unloaded()
        tracker = load_attribute("bot:track", (str(project / "tests"),), "tracker")
        found.append(code_of(tracker))
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize("name", [".hidden.json", "usr/share/zones.json", "site-packages/a.json"])
def test_files_of_the_system_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unloaded: Callable[[], None], name: str
) -> None:
    monkeypatch.setattr(own_code, "_SYSTEM", (tmp_path / "usr",))
    write(
        tmp_path / "code" / "bot.py",
        f"from pathlib import Path\nTEXT = Path({str(tmp_path / name)!r}).read_text()\n"
        "def track(context): return {}\n",
    )
    monkeypatch.chdir(tmp_path / "code")
    found = []
    for text in ("good", "bad"):
        write(tmp_path / name, text)
        unloaded()
        found.append(code_of(load_attribute("bot:track", (str(tmp_path / "code"),), "tracker")))
    assert found[0] == found[1]


#: How cached code was compiled.
CACHES = {
    "by time": py_compile.PycInvalidationMode.TIMESTAMP,
    "by content": py_compile.PycInvalidationMode.CHECKED_HASH,
    "without a check": py_compile.PycInvalidationMode.UNCHECKED_HASH,
}


@pytest.mark.parametrize("mode", CACHES.values(), ids=CACHES)
@pytest.mark.parametrize("apart", [False, True], ids=["beside", "apart"])
def test_code_counts_that_python_runs_from_its_cache(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    unloaded: Callable[[], None],
    mode: py_compile.PycInvalidationMode,
    *,
    apart: bool,
) -> None:
    if apart:
        monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "caches"))
    code = tmp_path / "code"
    monkeypatch.chdir(tmp_path)
    write(code / "bot.py", "from impl import f\ndef track(context): return f(context)\n")
    source = code / "impl.py"

    def load() -> tuple[object, str]:
        unloaded()
        tracker = load_attribute("bot:track", (str(code),), "tracker")
        return sys.modules["impl"].__dict__["WORD"], code_of(tracker)

    found = {}
    for word in ("one", "two"):
        write(source, f"{IMPL}WORD = '{word}'\n")
        os.utime(source, (1_000, 1_000))
        found[word] = load()
        if word == "one":
            py_compile.compile(str(source), invalidation_mode=mode)
            assert load() == found[word] == ("one", found[word][1])
    # Python may run the cached code of the first source although there is another one.
    ran_cached = mode != py_compile.PycInvalidationMode.CHECKED_HASH
    assert found["two"][0] == ("one" if ran_cached else "two")
    Path(cache_from_source(str(source))).unlink()
    fresh = load()
    assert fresh[0] == "two"
    assert (fresh[1] == found["two"][1]) is not ran_cached
    assert fresh[1] != found["one"][1]


@pytest.mark.parametrize("name", ["sitecustomize", "usercustomize"])
@pytest.mark.parametrize("here", [True, False])
def test_code_that_python_imports_at_its_start_counts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    unloaded: Callable[[], None],
    name: str,
    *,
    here: bool,
) -> None:
    write(tmp_path / "bot.py", "def track(context): return {}\n")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path if here else tmp_path.with_name("editor")
    monkeypatch.syspath_prepend(folder)
    found = []
    for text in ("A = 1", "A = 2"):
        write(folder / f"{name}.py", text)
        unloaded()
        monkeypatch.delitem(sys.modules, name, raising=False)
        import_own(name)
        found.append(code_of(load_attribute("bot:track", (str(tmp_path),), "tracker")))
    assert (found[0] == found[1]) is not here


def test_another_object_of_the_module_that_registers_a_tracker_is_other_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "moved_bot.py").write_text("class Bot:\n    pass\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    bot = import_own("moved_bot").Bot()
    one, again, other = (code_of(bot, f"moved_bot:{name}") for name in ("create", "create", "make"))
    assert one == again != other
