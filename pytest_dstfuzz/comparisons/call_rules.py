"""From settings and data to the comparison of tool calls and of states, by rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Final

from pytest_dstfuzz.comparisons.argument_rules import Rule, rule_of
from pytest_dstfuzz.comparisons.argument_table import ArgumentTable, is_pattern
from pytest_dstfuzz.comparisons.calls import ToolCallComparison
from pytest_dstfuzz.comparisons.comparison import Comparison
from pytest_dstfuzz.comparisons.exact import EXACT
from pytest_dstfuzz.comparisons.registry import comparison_by_name
from pytest_dstfuzz.comparisons.slots import SlotComparison
from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.config.call_options import ARGUMENTS_TABLE, argument_rule
from pytest_dstfuzz.dialogue.calls import AnswerPath
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.normalise import normalise_slot
from pytest_dstfuzz.errors import UserError, nearest, unknown_name
from pytest_dstfuzz.kinds import KINDS

#: Arguments that a message names at most.
_SHOWN: Final = 8


def comparison_of_values(
    data: DialogueSet,
    settings: ReplySettings,
    search_path: tuple[str, ...] = (),
    table: Sequence[str] = (),
) -> Comparison:
    """Return what compares answers with values, of the kind of the settings: states or calls."""
    has_tools = KINDS[settings.outcome].has_tools
    of_kind = comparison_of_calls if has_tools else comparison_of_states
    return of_kind(data, settings, search_path, table)


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
    places = _lines(settings, table)
    rules: list[tuple[str, Rule]] = []
    known = ArgumentTable((), data.tools)
    slots = dict.fromkeys([*known.slots, *_recorded(data)])
    for where, line in places:
        pattern, rule = _rule(where, line, search_path)
        if slots and not any(known.fits(pattern, slot) for slot in slots):
            if where == ARGUMENTS_TABLE and "-" in pattern and "." not in pattern:
                continue  # A slot of a belief state: the table serves runs of both kinds.
            raise _unknown(where, pattern, list(slots))
        rules.append((pattern, rule))
    texts = partial(comparison_by_name, None, settings, search_path)
    return ToolCallComparison(settings.call_order, ArgumentTable(rules, data.tools), texts)


def comparison_of_states(
    data: DialogueSet,
    settings: ReplySettings,
    search_path: tuple[str, ...] = (),
    table: Sequence[str] = (),
) -> Comparison:
    """Return what says of two belief states whether they are the same: equality without rules.

    Arguments are as for `comparison_of_calls`. Of the table's rules those of tools are left out.

    Raises:
        UserError: there is no such rule, or the data has no such slot; the nearest is said.
    """
    slots = data.ontology.slots if data.ontology is not None and data.says_slots else ()
    rules: list[tuple[str, Rule]] = []
    for where, line in _lines(settings, table):
        given, rule = _rule(where, line, search_path)
        pattern = given.lower() if is_pattern(given) else normalise_slot(given, data.normalisation)
        if pattern is None or (slots and not any(fnmatchcase(slot, pattern) for slot in slots)):
            if where == ARGUMENTS_TABLE and "." in given:
                continue  # An argument of a tool: the table serves runs of both kinds.
            raise UserError(f"{where}: {unknown_name('slot', given, slots)}")
        rules.append((pattern, rule))
    texts = partial(comparison_by_name, None, settings, search_path)
    return SlotComparison(ArgumentTable(rules), texts) if rules else EXACT


def _lines(settings: ReplySettings, table: Sequence[str]) -> list[tuple[str, str]]:
    """Return the rules in their order, each with where it was given."""
    given = [("--dst-arguments", line) for line in settings.arguments]
    return [*((ARGUMENTS_TABLE, line) for line in table), *given]


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
                if (found := AnswerPath.of(path)).in_call:
                    yield found.part[1]


def _unknown(where: str, pattern: str, slots: list[str]) -> UserError:
    guess = nearest(pattern, slots)
    shown = ", ".join(slots[:_SHOWN]) + (", ..." if len(slots) > _SHOWN else "")
    hint = f"Did you mean {guess!r}?" if guess else f"There are: {shown}."
    return UserError(f"{where}: no tool of the data has an argument {pattern!r}. {hint}")
