"""The settings and the dialogues that a report is based on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pytest_dstfuzz import Dialogue, DialogueSet, Settings, TurnResult, UserError
from pytest_dstfuzz.config import build_settings, names_of, settings_of_json

_SAME: str = "name the data of the report with --data and --split"


def settings_of_report(report: Mapping[str, Any], own: Mapping[str, Any], path: object) -> Settings:
    """Return the settings of a report. The options ``own`` override them.

    Relation, search and shard have their defaults, because the variants come from the report.

    Raises:
        UserError: the report is redacted, or has the results of several bots.
    """
    if report["settings"].get("redact"):
        raise UserError(
            f"{path} was written with --dst-redact, so it lacks the texts: write a report without "
            "it"
        )
    if "models" in report:
        raise UserError(f"{path} has several bots: write a report of one")
    run, default = report.get("run", {}), Settings()
    told = {
        **report["settings"],
        **{name: run[name] for name in names_of("place") if name in run},
        "relation": default.variant.relation,
        "search": default.variant.search,
        "shard": None,
    }
    return build_settings(own, settings_of_json(told))


def clean_dialogue(data: DialogueSet, ids: Collection[str], turn: TurnResult) -> Dialogue:
    """Return the dialogue of a turn.

    Raises:
        UserError: the data lacks the dialogue, or the turn has another text in the data. ``ids``
            are the dialogues of the data.
    """
    name, index = turn.dialogue_id, turn.turn_index
    if name not in ids:
        raise UserError(
            f"the dialogue {name!r} of the report is not in the data {data.name}, split "
            f"{data.split}: {_SAME}"
        )
    dialogue = data.dialogue(name)
    if index >= len(dialogue.turns) or dialogue.turns[index].user != turn.user:
        raise UserError(
            f"turn {index} of the dialogue {name!r} has another text than in the report: {_SAME}"
        )
    return dialogue
