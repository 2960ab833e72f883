"""What became of the dialogues of a baseline, and of their clean answers, as reports name it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def moved_dialogues(comparison: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Return what is said of dialogues that are not the same in both builds, and their ids.

    Args:
        comparison: of the JSON report; those of earlier versions say nothing of it.
    """
    suite = comparison.get("suite", {})
    found = {
        "new dialogues, not compared": [str(name) for name in suite.get("added", ())],
        "dialogues that are gone": [str(name) for name in suite.get("removed", ())],
        "dialogues that changed, compared up to the change": [
            str(name) for name in suite.get("changed", ())
        ],
        "dialogues with another name, compared by their clean answers (a name decides variants)": [
            f"{old} (now {new})" for old, new in suite.get("renamed", ())
        ],
    }
    return [(text, names) for text, names in found.items() if names]


def changed_answers(comparison: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the turns whose clean answer changed: id, ``slot: before -> after, ...``.

    Args:
        comparison: of the JSON report; those of earlier versions do not name the answers.
    """
    return [
        (
            str(answer["turn"]),
            ", ".join(
                f"{item['slot']}: {item['before'] or 'none'} -> {item['after'] or 'none'}"
                for item in answer["slots"]
            ),
        )
        for answer in comparison.get("clean", {}).get("answers", ())
    ]
