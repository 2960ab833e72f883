"""Every code block of the README and of the documentation is run, checked, or excepted here."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import subprocess
import sys
import threading
import tomllib
import types
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import ClassVar

import pytest
from pages_of_docs import ROOT, all_blocks, case, of, texts, title
from processes import run_python

from pytest_dstfuzz.cli import COMMANDS
from pytest_dstfuzz.config import ADAPTER, OPTIONS
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.gate.verdict import read_gates
from tools.docs.pages import Block
from tools.docs.reference import GENERATED

CHECKED = ("python", "shell", "json", "toml", "ini", "yaml", "jinja", "text")
FLAGS = {item.flag: item for item in OPTIONS}
#: Output that no test makes again: beginning of the block -> why.
NOT_MADE_AGAIN = {
    "dstfuzz: about 614 calls,": "it depends on the clock; plugin/test_budget_runs.py makes one",
    "dstfuzz: after 260 calls: about": "the same; plugin/test_plugin_parts.py makes such a line",
    "dstfuzz: the budget of 60 seconds is": "the same; plugin/test_budget_runs.py makes one",
    "estimate      29.8 of 1,000 user turns": "of TRADE; report/test_chances.py makes such lines",
    "failed: clean answers changed at 31 of": "of a bot that lost a rule; the tutorial "
    "into-ci makes such a line",
    "failed: 2 variants that held": "gate/test_new_violations.py makes such a line",
    "failed: the failure rate changed by +11.47 pp": "the other model takes an hour to train",
    "estimated failures of 1,000 user turns: 8.6": "two runs of 366 turns; a test of "
    "gate/test_expected_comparison.py makes such a line",
    "1 new weakness, 0 fixed": "two runs of 366 turns; a test of "
    "gate/test_new_weaknesses.py makes such lines",
    ".dstfuzz/regressions/*.jsonl": "a line of .gitattributes, read by git alone",
    "1 of 5 valid variants changes the belief state at turn 1 of dialogue DSF0009": "of TRADE, "
    "which docs/test_readme.py runs at night",
    "1 of 2 rewrites is not followed": "report/test_relation_sections.py makes it of a result",
    "bot           trade, asked for": "of TRADE, which takes minutes; "
    "repair/test_mend_command.py makes such a page",
    "conversations, split test, layout 'messages'": "docs/test_data_guide.py makes it",
    "i want a hotel in the north | How": "a file that the example reads",
    "        readers ──> Dialogue": "a drawing of how data flows",
}
#: Whether a block runs shows in a few.
FEW_EXAMPLES = """
from hypothesis import settings
settings.register_profile("few", max_examples=10, deadline=None)
settings.load_profile("few")
"""
#: Commands beside pytest and dstfuzz that shell blocks may hold.
OTHERS = {"pip", "git", "python", "cd", "export", "make", "for", "do", "done", "dstfuzz", "pytest"}
OTHERS |= {"./release_gate.sh", ".venv/bin/pre-commit", ".venv/bin/pytest", "rasa", "transformers"}


def test_every_block_says_what_it_is() -> None:
    unknown = [(page, block.line) for page, block in all_blocks() if block.language not in CHECKED]
    assert unknown == []
    assert len(all_blocks()) > 100


def test_no_block_hides_in_an_indentation() -> None:
    # Indented blocks have no language, and no test would see them.
    fenced = re.compile(r"```.*?```", re.DOTALL)
    hidden = [
        (page, line)
        for page, text in texts().items()
        for line in re.findall(r"(?<=\n\n)    \S.*", fenced.sub("", text))
        if not line.lstrip().startswith(("-", "|", "1."))
    ]
    assert hidden == []


@pytest.fixture
def my_bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that holds the tracker of the README, on the path of imports."""
    readme = next(block for page, block in of("python") if page == "README.md")
    (tmp_path / "my_bot.py").write_text(readme.text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("my_bot", "pizza", "help_desk"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


@pytest.mark.parametrize(("page", "block"), of("python"), ids=case)
def test_python_runs(page: str, block: Block, my_bot: Path) -> None:
    if "hypothesis" in block.text:
        pytest.importorskip("hypothesis")
    if "langgraph" in block.text:
        pytest.importorskip("langgraph", reason="langgraph is not installed")
    if page == "guides/extending.md":
        return  # test_extending.py runs them, in a process of their own: they register things
    for where, other in of("python"):
        if where == page and title(other) == "help_desk.py":  # as it is in the end
            (my_bot / title(other)).write_text(other.text, encoding="utf-8")
    module = types.ModuleType("shown")
    exec(compile(block.text, f"{page}:{block.line}", "exec"), module.__dict__)  # noqa: S102 - ours
    assert set(vars(module)) - {"__builtins__"}
    assert my_bot.is_dir()


@pytest.mark.nightly
def test_python_is_typed(tmp_path: Path) -> None:
    """By the rules for the package, so that what `make types` found out of it serves here too."""
    pytest.importorskip("mypy")
    shown = tmp_path / "shown"
    shown.mkdir()
    readme = next(block for page, block in of("python") if page == "README.md")
    (tmp_path / "my_bot.py").write_text(readme.text, encoding="utf-8")
    texts = {f"block_{place}": block.text for place, (_, block) in enumerate(of("python"))}
    for name, text in {**texts, "__init__": ""}.items():
        (shown / f"{name}.py").write_text(text, encoding="utf-8")
    # What a block imports of a reader's own files.
    imported = {*re.findall(r"^ *(?:from|import) (\w+)", "\n".join(texts.values()), re.MULTILINE)}
    known = {"my_bot", "pytest_dstfuzz", *sys.stdlib_module_names, *packages_distributions()}
    absent = [name for one in sorted(imported - known) for name in (one, f"{one}.*")]
    rules = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    lenient = "disallow_untyped_defs = false\ndisallow_incomplete_defs = false\n"
    lenient += "warn_return_any = false\ndisallow_untyped_calls = false\n"
    (tmp_path / "rules.toml").write_text(
        "[tool.mypy]"
        + rules.partition("[tool.mypy]")[2].partition("[tool.pytest")[0]
        # Readers need not annotate what they copy.
        + f'[[tool.mypy.overrides]]\nmodule = ["shown.*", "my_bot"]\n{lenient}'
        + f"[[tool.mypy.overrides]]\nmodule = {absent}\nignore_missing_imports = true\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "mypy", f"--config-file={tmp_path / 'rules.toml'}"]
    done = subprocess.run(
        [*command, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("page", "options"),
    [
        ("guides/suite.md", "test_robustness.py --dst-fail-on=gate"),
        ("guides/suite.md", "test_area.py --dst-fail-on=gate --dst-model=my_bot:track"),
        ("guides/suite.md", "test_modes.py --dst-fail-on=gate"),
        ("guides/check-tracker.md", "test_contract.py test_1.py --dst-model=my_bot:track"),
        ("guides/python.md", "--dst-model=my_bot:track --dst-fail-on=gate"),
        ("guides/python.md", "--dst-model=batched:Tracker"),
        ("guides/python.md", "--dst-model=stateful:Tracker --dst-fail-on=gate"),
        ("guides/games.md", "test_refunds.py test_voice.py test_remembered.py test_model.py"),
        ("guides/hypothesis.md", "test_with_hypothesis.py"),
        ("guides/hypothesis.md", "test_relations_with_hypothesis.py"),
    ],
)
def test_what_a_guide_shows_runs_in_pytest(page: str, options: str, my_bot: Path) -> None:
    if "hypothesis" in page:
        pytest.importorskip("hypothesis")
        (my_bot / "conftest.py").write_text(FEW_EXAMPLES, encoding="utf-8")
    for place, (_, block) in enumerate(entry for entry in of("python") if entry[0] == page):
        (my_bot / (title(block) or f"test_{place}.py")).write_text(block.text, encoding="utf-8")
    words = [*shlex.split(options), "-p", "no:cacheprovider", "-q"]
    if "hypothesis" not in page:
        words += ["--dst-turns=10", "--dst-variants=2", "-odst_preflight_seconds=60"]
    done = run_python("-m", "pytest", *words, cwd=my_bot)
    # A tracker of one answer fails the rule that such runs never pass, and the ten-line one
    # breaks under hypothesis: what counts is that the block is found, loaded and run.
    assert done.returncode in (0, 1), done.stdout + done.stderr
    # A bound that does not hold is an AssertionError of the test.
    said = done.stdout.lower().replace("errors", "").replace("assertionerror", "")
    assert "error" not in said, done.stdout


class SessionBot(BaseHTTPRequestHandler):
    """A bot that takes one message and a session id, and tells the slots of a session."""

    areas: ClassVar[dict[str, str]] = {}

    def do_POST(self) -> None:
        """Take a message, or answer with the slots."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = {"reply": "I see."}
        if self.path == "/slots":
            area = self.areas.get(asked["session"])
            answer = {"hotel-area": area} if area else {}
        elif found := re.findall("north|south|east|west|centre", asked["text"].lower()):
            self.areas[asked["session"]] = found[-1]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Log nothing."""


def test_a_bot_of_single_messages_is_tested(my_bot: Path) -> None:
    page = "guides/python.md"
    (block,) = (b for at, b in of("python") if at == page and title(b) == "one_message.py")
    (command,) = (b.text for at, b in of("shell") if at == page and "one_message" in b.text)
    data = {"dialogue_id": "a", "users": ["A room in the north", "Rather the south, please"]}
    (my_bot / "conversations.jsonl").write_text(json.dumps(data), encoding="utf-8")
    with ThreadingHTTPServer(("127.0.0.1", 0), SessionBot) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        text = block.text.replace("localhost:5000", f"127.0.0.1:{server.server_address[1]}")
        (my_bot / "one_message.py").write_text(text, encoding="utf-8")
        words = [*shlex.split(command)[1:], "-q", "-p", "no:cacheprovider", "--dst-report=r.json"]
        done = run_python("-m", "pytest", *words, cwd=my_bot)
        server.shutdown()
    assert done.returncode in (0, 1), done.stdout + done.stderr
    states = [
        turn["clean_state"] for turn in json.loads((my_bot / "r.json").read_text("utf-8"))["turns"]
    ]
    assert states == [{"hotel-area": "north"}, {"hotel-area": "south"}]


@pytest.mark.parametrize(("page", "block"), of("json"), ids=case)
def test_json_is_json(page: str, block: Block, tmp_path: Path) -> None:
    name = title(block) or "block.json"
    if not name.endswith(".jsonl"):
        assert isinstance(json.loads(block.text), dict | list), page
        return
    (tmp_path / name).write_text(block.text, encoding="utf-8")
    data = load_dialogues(str(tmp_path / name), "test")
    assert len(data.dialogues) == len(block.text.splitlines())


@pytest.mark.parametrize(("page", "block"), of("toml"), ids=case)
def test_toml_is_read(page: str, block: Block, tmp_path: Path) -> None:
    table = tomllib.loads(block.text)
    assert table, page
    for key in table.get("tool", {}).get("dstfuzz", {}).get("tracker", {}):
        assert key.replace("-", "_") in ADAPTER
    if "gates" in table.get("tool", {}).get("dstfuzz", {}):
        (tmp_path / "pyproject.toml").write_text(block.text, encoding="utf-8")
        assert read_gates(tmp_path / "pyproject.toml") is not None


@pytest.mark.parametrize(("page", "block"), of("ini"), ids=case)
def test_ini_keys_exist(page: str, block: Block) -> None:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(block.text)
    keys = [key for key in parser["pytest"] if key.startswith("dst_")]
    assert keys or "filterwarnings" in parser["pytest"], page
    for key in keys:
        option = FLAGS[key.removeprefix("dst_").replace("_", "-")]
        option.value.parse(parser["pytest"][key])


@pytest.mark.parametrize(("page", "block"), of("yaml"), ids=case)
def test_yaml_is_read(page: str, block: Block) -> None:
    steps = pytest.importorskip("yaml").safe_load(block.text)
    for step in steps:
        check_shell(step["run"], page)


@pytest.mark.parametrize(("page", "block"), of("jinja"), ids=case)
def test_a_template_makes_a_prompt(page: str, block: Block) -> None:
    jinja2 = pytest.importorskip("jinja2")
    template = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False).from_string(
        block.text
    )
    slot = types.SimpleNamespace(name="hotel-area", values=["north"], complete=False)
    exchange = types.SimpleNamespace(system="", user="a room")
    assert "- hotel-area, such as north" in template.render(exchanges=[exchange], slots=[slot])
    assert page


@pytest.mark.nightly
@pytest.mark.parametrize(("page", "block"), of("shell"), ids=case)
def test_shell_commands_exist(page: str, block: Block) -> None:
    check_shell(block.text, page)


@cache
def help_of_all() -> str:
    """Help of all commands of ``dstfuzz``."""
    return GENERATED["commands"]()


@cache
def help_of(command: str) -> str:
    """Help of a command of ``dstfuzz``."""
    return help_of_all().split(f"## dstfuzz {command}\n")[1].split("\n## dstfuzz ")[0]


def check_shell(text: str, page: str) -> None:
    """Check the commands of a shell block: programs, options and what can be read of values."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        while words and re.fullmatch(r"[A-Z_]+=.*|do", words[0]):
            words.pop(0)
        if not words:
            continue
        assert words[0] in OTHERS, f"{page}: {line}"
        if words[0] == "pytest":
            check_pytest(words[1:], page)
        elif words[0] == "dstfuzz":
            check_dstfuzz(words[1:], page)


def check_pytest(words: list[str], page: str) -> None:
    """Check the options of this plugin in a command line."""
    for word, following in zip(words, [*words, ""][1:], strict=True):
        if word == "--dst-tracker":
            FLAGS["tracker"].value.parse(following)
            name = following.partition("=")[0].replace("-", "_")
            own = page == "guides/extending.md" and name == "slot"  # of the page's own tracker
            assert own or name in ADAPTER, following
        if word == "-o" and following.startswith("dst_"):
            key, _, value = following.removeprefix("dst_").partition("=")
            FLAGS[key.replace("_", "-")].value.parse(value)
        if not word.startswith(("--dst-", "--no-dst-")):
            continue
        spelled = word.removeprefix("--no-dst-").removeprefix("--dst-")
        name, equals, value = spelled.partition("=")
        assert name in FLAGS, f"{page}: there is no --dst-{name}"
        assert FLAGS[name].has_flag, f"{page}: there is no --dst-{name}"
        assert equals or FLAGS[name].is_switch or word.startswith("--no-") or name == "tracker", (
            word
        )
        theirs = name == "edits" and page in (
            "guides/extending.md",
            "gallery/examples.md",
        )  # test_extending.py runs them
        if equals and not theirs and not re.search(r"[$<]|\.\.\.", value):
            FLAGS[name].value.parse(value)


def check_dstfuzz(words: list[str], page: str) -> None:
    """Check command and options of ``dstfuzz``."""
    assert words[0] in COMMANDS.names, f"{page}: there is no dstfuzz {words[0]}"
    part = " ".join(words[:2])
    shown = help_of(part if f"## dstfuzz {part}\n" in help_of_all() else words[0])
    for word in words[1:]:
        if re.match(r"--?[a-z]", word):
            assert re.search(rf"(?<!\S){re.escape(word.partition('=')[0])}\b", shown), (
                f"{page}: dstfuzz {words[0]} has no {word}"
            )


@pytest.mark.parametrize(("page", "block"), of("text"), ids=case)
def test_output_is_made_again_somewhere(page: str, block: Block) -> None:
    if page.startswith("tutorials/") or page in ("README.md", "gallery/weaknesses.md"):
        return  # by test_tutorials, test_readme and test_gallery
    if page == "gallery/systems.md":
        return  # Of systems that take minutes; test_gallery makes such a page.
    if page.startswith("relations/"):
        return  # Edits, and no output: those of each relation are tested with it.
    readme = next(shown for where, shown in of("text") if where == "README.md")
    if block.text.strip() in readme.text:
        return
    assert any(block.text.startswith(start) for start in NOT_MADE_AGAIN), f"{page}:{block.line}"


def test_options_named_in_the_prose_exist() -> None:
    unknown = {
        (page, flag)
        for page, text in texts().items()
        for flag in re.findall(r"--dst-([a-z]+(?:-[a-z]+)*)", text)
        if flag not in FLAGS and page != "changelog.md"
    }
    assert unknown == set()
