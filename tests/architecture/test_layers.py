"""The rooms of the package and the direction of their imports, read from the source."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tools.house.wings import NEEDS
from tools.options import TABLE, table_text

PACKAGE = Path(__file__).parents[2] / "pytest_dstfuzz"
BASE = {
    "errors",
    "registry",
    "transformations",
    "selection",
    "config",
    "files",
    "json_data",
    "seeding",
    "garbage",
    "own_code",
    "own_values",
    "printable",
}

#: Modules that know nothing else of their room: a room below it in the house may take them.
LEAVES = {"perturb.words", "perturb.lexicon"}

#: Room -> rooms it may import. A name with a dot is one module of a room.
ALLOWED: dict[str, set[str]] = {
    "printable": set(),
    "errors": {"printable"},
    "registry": {"errors", "own_code"},
    "transformations": {"errors", "registry"},
    "selection": {"errors", "transformations"},
    "config": {"errors", "files", "selection", "transformations"},
    "files": {"errors", "json_data"},
    "own_code": {"files"},
    "own_values": {"own_code"},
    "json_data": {"errors"},
    "seeding": set(),
    "garbage": set(),
    "dialogue": BASE,
    "kinds": BASE | {"dialogue"},
    "noise": BASE | {"dialogue"} | LEAVES,
    "perturb": BASE | {"dialogue", "noise"},
    "trackers": BASE | {"dialogue", "kinds"},
    # The judge alone takes the transport of services.
    "comparisons": BASE | {"dialogue", "kinds", "perturb", "trackers"},
    "relations": BASE
    | {"dialogue", "kinds", "noise", "perturb"}
    | {"comparisons.embedding", "comparisons.polarity"},
    "search": BASE | {"dialogue", "noise", "perturb", "trackers.tracker", "relations.relation"},
    "campaign": BASE
    | {"dialogue", "kinds", "perturb", "trackers", "comparisons", "relations", "search"},
    "weaknesses": BASE
    | {"dialogue", "kinds", "perturb.words", "perturb.edits", "perturb.lexicon"}
    | {"perturb.values", "perturb.spelling", "campaign", "comparisons"},
    "totals": BASE
    | {"dialogue", "kinds", "campaign", "weaknesses", "relations.relation"}
    | {"comparisons.polarity", "perturb.spelling"},
    "report": BASE
    | {"dialogue", "kinds", "perturb.words", "perturb.edits", "campaign", "weaknesses"}
    | {"perturb.spelling"}
    | {"totals", "trackers.tracker", "relations.relation"}
    | {"comparisons.judge", "comparisons.polarity"},
    "regressions": BASE
    | {
        "dialogue",
        "kinds",
        "comparisons",
        "relations",
        "campaign",
        "weaknesses",
        "trackers.tracker",
    }
    | {"report.answers"},
    "gate": BASE
    | {"dialogue.dialogues", "dialogue.calls"}
    | {"kinds", "comparisons", "campaign", "weaknesses", "totals"},
    "testing": BASE | {"dialogue", "kinds", "trackers", "perturb", "comparisons", "relations"},
    "strategies": BASE | {"dialogue", "perturb", "relations", "trackers.tracker", "campaign"},
    "plugin": BASE
    | {"dialogue", "kinds", "perturb", "trackers", "relations", "search", "campaign", "report"}
    | {"weaknesses", "totals", "gate", "regressions", "testing", "comparisons"},
    "cli": BASE
    | {"dialogue", "kinds", "perturb", "trackers", "relations", "search", "campaign", "report"}
    | {"regressions", "noise", "weaknesses", "comparisons"},
}

#: Networks, and what they share.
NEURAL = tuple(f"models/{name}" for name in ("trade", "simpletod", "runs", "neural"))

#: Third-party package -> where it may be imported (prefixes of module paths).
FENCES: dict[str, tuple[str, ...]] = {
    "pytest": ("plugin", "games/plugin", "games/fixture", "agents/plugin"),
    "_pytest": (),
    "xdist": (),
    "torch": (
        *(*NEURAL, "agents/training", "games/negotiation"),
        *("perturb/lexicon/word_sources", "relations/generative"),
    ),
    "safetensors": (*NEURAL, "models/weights"),
    "transformers": (
        *("perturb/lexicon/word_sources", "models/simpletod", "relations/generative"),
    ),
    "tokenizers": ("models/simpletod",),
    "sentence_transformers": ("comparisons/foreign",),
    "nltk": ("perturb/lexicon/word_sources",),
    "gensim": ("perturb/lexicon/word_sources", "models/trade"),
    "rapidfuzz": (
        *(
            "perturb/reader",
            "perturb/validity",
            "perturb/spelling",
            "perturb/operators",
            "models/trade/nearest",
            "noise/evidence",
            "trackers/conformance",
        ),
    ),
    "httpx": ("trackers/web/",),
    "starlette": ("trackers/web/server",),
    "uvicorn": ("trackers/web/server",),
    "numpy": (
        *("seeding", "dialogue", "perturb", "agents", "search", "campaign", "papers", "models"),
        *("trackers", "gate", "noise", "relations", "comparisons", "games", "repair"),
        "scale/sweeps",
    ),
    "scipy": ("campaign/figures", "gate/pairing"),
    "jsonschema_rs": ("report/packing",),
    "pyarrow": ("scale/parquet",),
    "ray": ("scale/ray", "scale/actors"),
    "jinja2": ("report/html", "trackers/chat"),
    "markupsafe": ("report/html",),
    "hypothesis": ("strategies",),
    "mcp": ("dialogue/mcp_server",),
    "ruamel": ("dialogue/readers/rasa",),
    "matplotlib": (),
    "msgspec": (
        *(
            "json_data",
            "dialogue/readers",
            "dialogue/anthropic",
            "dialogue/sampling",
            "relations/sources",
        ),
        "trackers/web/contract",
    ),
}

MODULES = sorted(PACKAGE.rglob("*.py"))


@cache
def imports(path: Path) -> list[tuple[int, str]]:
    """Return line and dotted name of every import in a file, nested ones too."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            module = node.module or ""
            found += [(node.lineno, f"{module}.{alias.name}") for alias in node.names]
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_room_imports_only_what_it_may(path: Path) -> None:
    place = path.relative_to(PACKAGE).with_suffix("")
    room = place.parts[0]
    if room == "__init__":
        assert imports(path) == [(line, "importlib") for line, _ in imports(path)]
        return
    if room == "lexicon":  # the public module
        room = "perturb"
    rooms = ALLOWED.get(room, set())
    wrong = []
    for line, name in imports(path):
        parts = name.split(".")
        if parts[0] == "pytest_dstfuzz":
            target = ".".join(parts[1:])
            if room in NEEDS or target.split(".")[0] == room:
                continue  # What wings import is looked at in `test_wings`.
            if (
                not any(target == allowed or target.startswith(allowed + ".") for allowed in rooms)
                and target != "__version__"
            ):
                wrong.append(f"line {line}: {room} may not import {name}")
        elif parts[0] in FENCES:
            if not any(place.as_posix().startswith(prefix) for prefix in FENCES[parts[0]]):
                wrong.append(f"line {line}: {parts[0]} is fenced off from {place}")
        elif parts[0] not in sys.stdlib_module_names:
            wrong.append(f"line {line}: {parts[0]} is no dependency this package knows")
    assert wrong == []


@pytest.mark.parametrize("leaf", sorted(LEAVES))
def test_a_leaf_knows_nothing_of_its_room(leaf: str) -> None:
    place = PACKAGE.joinpath(*leaf.split("."))
    paths = sorted(place.rglob("*.py")) or [place.with_suffix(".py")]
    room = f"pytest_dstfuzz.{leaf.partition('.')[0]}."
    names = [name for path in paths for _, name in imports(path) if name.startswith(room)]
    assert [name for name in names if not name.startswith(f"pytest_dstfuzz.{leaf}.")] == []


def test_a_policy_chooses_without_torch() -> None:
    code = (
        "import sys\n"
        "sys.modules['torch'] = None\n"
        "import pytest_dstfuzz.agents.searches\n"
        "from pytest_dstfuzz.search.registry import search_by_name\n"
        "assert search_by_name('near-value', seed=0, k=1).name == 'near-value'\n"
        "assert not any(name.startswith('torch.') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_the_core_names_no_module_of_a_wing() -> None:
    module = re.compile(rf"pytest_dstfuzz[./](?:{'|'.join(NEEDS)})\b")
    core = (path for path in PACKAGE.rglob("*.py*") if path.suffix in (".py", ".pyi"))
    named = {
        place.as_posix(): found
        for path in core
        if (place := path.relative_to(PACKAGE)).parts[0] not in NEEDS
        and (found := module.findall(path.read_text(encoding="utf-8")))
    }
    assert named == {}


def test_every_room_is_in_the_table() -> None:
    rooms = {path.relative_to(PACKAGE).with_suffix("").parts[0] for path in MODULES}
    assert rooms - {"__init__", "lexicon"} == {*ALLOWED, *NEEDS}


def test_the_options_that_every_run_reads_are_those_of_the_table() -> None:
    assert TABLE.read_text(encoding="utf-8") == table_text(), (
        "the option table was changed: python -m tools.options"
    )
