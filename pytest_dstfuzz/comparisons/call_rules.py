"""From settings and data to the comparison of tool calls, and what wrong rules are told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from pytest_dstfuzz.comparisons.argument_rules import Rule, rule_of
from pytest_dstfuzz.comparisons.argument_table import ArgumentTable
from pytest_dstfuzz.comparisons.calls import ToolCallComparison
from pytest_dstfuzz.comparisons.registry import comparison_by_name
from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.config.call_options import ARGUMENTS_TABLE, argument_rule
from pytest_dstfuzz.dialogue.calls import call_path
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.errors import UserError, nearest

#: Arguments that a message names at most.
_SHOWN: Final = 8


def comparison_of_calls(
    data: DialogueSet,
    settings: ReplySettings,
    search_path: tuple[str, ...] = (),
    table: Sequence[str] = (),
) -> ToolCallComparison:
    """Return what says of two messages whether they make the same calls.

    Args:
        data: what the schemas of its tools say of an argument decides where nobody gave a rule.
        settings: whether order counts, and the rules.
        search_path: folders in which modules are looked for first; empty = the working folder.
        table: rules of ``[tool.dstfuzz.arguments]``, before those of the settings.

    Raises:
        UserError: there is no such rule, or none of the tools has the argument; the nearest is
            said.
    """
    places = [*((ARGUMENTS_TABLE, line) for line in table)]
    places += [("--dst-arguments", line) for line in settings.arguments]
    rules = [_rule(where, line, search_path) for where, line in places]
    known = ArgumentTable(rules, data.tools)
    slots = dict.fromkeys([*known.slots, *_recorded(data)])
    for (where, _), (pattern, _) in zip(places, rules, strict=True):
        if slots and not any(known.fits(pattern, slot) for slot in slots):
            raise _unknown(where, pattern, list(slots))
    texts = partial(comparison_by_name, None, settings, search_path)
    return ToolCallComparison(settings.call_order, known, texts)


def _rule(where: str, line: str, search_path: tuple[str, ...]) -> tuple[str, Rule]:
    try:
        pattern, _, rule = argument_rule(line).partition("=")
        return pattern, rule_of(rule, search_path)
    except ValueError as error:
        raise UserError(f"{where}: {line!r} {error}") from None
    except UserError as error:
        raise UserError(f"{where}: {line}: {error}") from None


def _recorded(data: DialogueSet) -> Iterable[str]:
    """Return the tools and arguments of recorded calls: not all tools come with a schema."""
    for dialogue in data.dialogues:
        for turn in dialogue.turns:
            for path in turn.calls or ():
                if (found := call_path(path)) is not None:
                    yield found.slot


def _unknown(where: str, pattern: str, slots: list[str]) -> UserError:
    guess = nearest(pattern, slots)
    shown = ", ".join(slots[:_SHOWN]) + (", ..." if len(slots) > _SHOWN else "")
    hint = f"Did you mean {guess!r}?" if guess else f"There are: {shown}."
    return UserError(f"{where}: no tool of the data has an argument {pattern!r}. {hint}")
