"""``--dst-results``: judge a folder of results instead of running campaigns.

The tracker is not called. The folder determines all settings that affect results. The session
determines the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_dstfuzz.campaign.code import FILES, code_of_rules
from pytest_dstfuzz.campaign.engine import data_digest
from pytest_dstfuzz.campaign.results import Results
from pytest_dstfuzz.comparisons.comparison import Comparison
from pytest_dstfuzz.config import (
    NO_CACHE,
    GateSettings,
    OutputSettings,
    Settings,
    build_settings,
    identity_of,
    is_own_function,
    option,
    settings_json,
)
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.files import check_path
from pytest_dstfuzz.registry import Registry
from pytest_dstfuzz.relations.registry import RELATIONS, relation_by_name
from pytest_dstfuzz.report.json_report import RunInfo
from pytest_dstfuzz.search.registry import find_training

__all__ = ["StoredRun"]

#: Parts of the settings that come from this session.
_OWN_PARTS: Final = ("output", "gate")
#: Options on the location of the dialogues, which may differ here.
_LIES: Final = ("data", "tools", "frozen", "tools_paraphrase")


class StoredRun(ABC):
    """The results of a finished run, for a session to judge.

    For another format, a package registers a subclass by an entry point of the group `GROUP`.
    """

    @abstractmethod
    def __init__(self, path: Path) -> None:
        """Open the value of ``--dst-results``, or raise a `UserError` if it has no results."""

    @classmethod
    @abstractmethod
    def holds(cls, path: Path) -> bool:
        """Return whether the path has results in the format of this class."""

    @property
    @abstractmethod
    def settings(self) -> Settings:
        """The settings of the run."""

    @property
    def decided(self) -> Mapping[str, Any]:
        """The settings that decided the results, see `identity_of`. Empty if unknown."""
        return {}

    @property
    def doubt(self) -> str:
        """Why the results may be of two versions of the bot, or ``""``."""
        return ""

    @property
    @abstractmethod
    def info(self) -> RunInfo:
        """Facts about the data and the run, with the properties of each relation."""

    @property
    @abstractmethod
    def relations(self) -> tuple[str, ...]:
        """The names of the relations with results, in the order of the run."""

    @abstractmethod
    def results(self, relation: str = "") -> Results:
        """Return the results of one relation, or of all relations, in the order of the data.

        Raises:
            UserError: the results are damaged or incomplete, cover only one shard, or have another
                version.
        """

    @abstractmethod
    def is_of(self, drawn: Sequence[tuple[Dialogue, int]]) -> bool:
        """Return whether the run tested these dialogues, each up to the given turn."""


GROUP: Final = "pytest_dstfuzz.results"
READERS: Final[Registry[type[StoredRun]]] = Registry(
    "reader of results",
    GROUP,
    expects="a class of StoredRun",
    fits=lambda found: isinstance(found, type) and issubclass(found, StoredRun),
)


def find_stored_run(path: Path) -> StoredRun:
    """Return the run whose results are at a path.

    Raises:
        UserError: the path has no results, or no installed package reads them.
    """
    readers: list[type[StoredRun]] = []
    problems: list[UserError] = []
    for name in READERS.names:
        try:
            readers.append(READERS.find(name))
        except UserError as error:
            problems.append(error)
    found = next((one for one in readers if one.holds(path)), None)
    if found is None and problems:
        raise problems[0]
    if not readers:
        raise UserError("--dst-results: no installed package can read results: leave it out")
    return (found or readers[0])(path)


def load_stored_settings(given: Mapping[str, Any], typed: Mapping[str, str]) -> Settings:
    """Return the settings of a session that judges a folder of results.

    Args:
        given: parsed values by option from all sources; ``results`` is the folder.
        typed: the options on the command line, as the user wrote them.

    Raises:
        UserError: the folder does not exist, or an option on the command line contradicts its
            results or needs a tracker.
    """
    where = Path(given["results"])
    check_path(where, option("results").spelled)
    run = find_stored_run(where)
    held = run.settings
    for name in ("shard", "replay"):
        if name in typed:
            raise UserError(
                f"{typed[name]} does not work with --dst-results, which does not call the tracker: "
                "leave it out"
            )
    # Data must neither run code nor choose the files to write.
    _refuse_code(held, given, where)
    unwritten = replace(held.budget, cache=NO_CACHE)
    held = replace(held, budget=unwritten, output=OutputSettings(), gate=GateSettings())
    shown = settings_json(held)
    repeated = {
        name: given[name]
        for name in typed
        if name in given and name not in _LIES and option(name).part not in _OWN_PARTS
    }
    for name in repeated:
        spelled, typed_settings = typed[name], _typed_settings(name, repeated, held)
        here = settings_json(typed_settings)[name]
        _refuse_other_content(name, spelled, typed_settings, run, where)
        if here != shown[name]:
            raise UserError(
                f"{spelled}: the results in {where} have {name.replace('_', '-')} = "
                f"{_shown(shown[name])}, not {_shown(here)}: leave the option out, or name the "
                "folder of a run with this value"
            )
    kept = {
        name: value
        for name, value in given.items()
        if option(name).part in _OWN_PARTS or (name in _LIES and name in typed)
    }
    return build_settings(kept, held)


def _typed_settings(name: str, typed: Mapping[str, Any], held: Settings) -> Settings:
    """Return settings with the value of an option from the command line.

    Some options are valid only together with others, from the command line or from the folder.
    """
    try:
        return build_settings(typed, held)
    except UserError:
        # The options contradict each other or the folder. Alone, an option shows its difference.
        return build_settings({name: typed[name]})


#: Options of comparisons, which may name one.
_NAMES_CODE: Final = ("compare", "arguments")


def _refuse_code(held: Settings, given: Mapping[str, Any], where: Path) -> None:
    """Raise an error if judging needs a user's function that only the folder names.

    The function is not imported, because the folder might come from a stranger.
    """
    for name in _NAMES_CODE:
        value = held.option(name)
        texts = value if isinstance(value, tuple) else (value or "").split(",")
        own = [one for one in (text.rpartition("=")[2] for text in texts) if is_own_function(one)]
        if own and given.get(name) != value:
            shown = f"dst_{name} = {','.join(texts)}" if name == "arguments" else f"--dst-{name}"
            raise UserError(
                f"--dst-results: the results in {where} were compared by your own {own[0]}, which "
                f"is not imported because a folder names it: name it yourself, with {shown}"
            )


def _refuse_other_content(
    name: str, spelled: str, typed: Settings, run: StoredRun, where: Path
) -> None:
    """Raise an error if an option equals the run's but its file or credential has changed."""
    here = identity_of(typed).get(name)
    if name in run.decided and here != run.decided[name]:
        looks = settings_json(typed)[name] == settings_json(run.settings)[name]
        if looks:
            raise UserError(
                f"{spelled}: a file, a credential, an environment variable or the working folder "
                f"that {name.replace('_', '-')} uses differs from that of the run in {where}: "
                "leave the option out, or run the campaign again"
            )


def refuse_other_rules(
    run: StoredRun, settings: Settings, comparison: Comparison, search_path: tuple[str, ...]
) -> None:
    """Raise an error if a rule of the run has changed since, because results would be stale.

    The rules are the comparison, the noise, the policy of the search, and the user's own code
    except the tracker. Relations, searches and policies that are not installed here are not
    checked.

    Args:
        run: the run.
        settings: its settings.
        comparison: the comparison of answers.
        search_path: folders to search first for modules.

    Raises:
        UserError: a rule has changed.
    """
    decided = run.decided
    if not decided:
        return
    relations = [relation_by_name(name) for name in run.relations if name in RELATIONS.single]
    here, before = code_of_rules(settings, relations, None, search_path), decided.get("code", {})
    # The files that a search names may all be gone.
    names = {*here, *(name for name in before if name.removesuffix(FILES) in here)}
    found = [f"the code of {name}" for name in sorted(names) if here.get(name) != before.get(name)]
    now = identity_of(settings, "variant")
    if decided.get("noise") != now["noise"]:
        found.append("the noise")
    if _is_other_policy(decided, now["search"], settings.variant.search):
        found.append("the policy of the search")
    if ("" if comparison.exact else comparison.identity) != decided.get("the comparison"):
        found = found or ["the comparison of answers"]
    if found:
        raise UserError(
            f"--dst-results: since the run in {settings.output.results}, this has changed: "
            f"{', '.join(found)}. The results may be stale: run the campaign again"
        )


def _is_other_policy(decided: Mapping[str, Any], here: object, search: str) -> bool:
    """Return whether a run's ``search`` now has another policy, and ``here`` as its identity."""
    before = decided.get("policy")
    # Relations that make their own edits use no policy.
    if not before:
        return False
    try:
        found = find_training(search)
    except UserError:  # Its file or its package is not here.
        return False
    policy = None if found is None else [found.fingerprint, found.code]
    return policy != before or here not in (search, decided.get("search"))


def refuse_workers(config: pytest.Config) -> None:
    """Raise an error if workers of xdist would read a folder of results.

    Raises:
        UserError: the run has workers.
    """
    if getattr(config.option, "dist", "no") != "no":
        raise UserError(
            "--dst-results needs a single process, and -n starts several: leave -n out, or set -n0"
        )


def refuse_other_data(
    run: StoredRun,
    settings: Settings,
    data: DialogueSet,
    drawn: Sequence[tuple[Dialogue, int]],
) -> None:
    """Raise an error if the dialogues are not those of the run. A baseline depends on them.

    The files that belong to the dialogues decide the results, too: the ontology, the tools and the
    reviewed paraphrases.

    Raises:
        UserError: the dialogues or such files differ.
    """
    if not run.is_of(drawn):
        raise UserError(
            f"--dst-results: the dialogues of {settings.data.data} differ from those of the run in "
            f"{settings.output.results}: they were changed since the run, or moved. If they moved, "
            "name their place with --dst-data=PATH"
        )
    # A file of dialogues may have another name here.
    here = data_digest(replace(data, name=run.info.data))
    if run.decided.get("data", here) != here:
        raise UserError(
            f"--dst-results: the data differ from those of the run in {settings.output.results}: "
            "the ontology, the tools, the reviewed paraphrases or dialogues that were not drawn "
            "have changed. The results may be stale: run the campaign again"
        )


def judge_stored(run: StoredRun, settings: Settings) -> str:
    """Return a description of the stored results."""
    turns, of = len(run.results()), ", ".join(run.relations)
    model, path = settings.tracker.model, settings.output.results
    results = f"{turns:,} result{'' if turns == 1 else 's'}"
    return f"{results} of {model} on {run.info.data} under {of}, from {path}"


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return "none" if value is None else text or "none"
