"""Comparison of the tool calls of two messages."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property, partial
from typing import Final

from pytest_dstfuzz.comparisons.arguments import (
    AUTO,
    RULES,
    TEXT,
    ArgumentKind,
    ArgumentTable,
    Rule,
    SlotComparison,
    is_pattern,
    rule_of,
    same_value,
)
from pytest_dstfuzz.comparisons.comparison import EXACT, Comparison, ComparisonResult, TextPair
from pytest_dstfuzz.comparisons.registry import comparison_by_name
from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.config.options import ARGUMENTS_TABLE, argument_rule
from pytest_dstfuzz.dialogue.calls import (
    AnswerPath,
    CallTree,
    Outcome,
    Tree,
    assign_columns,
    by_tool,
    calls_of_outcome,
    canonical,
    place_of,
    value_of,
    value_of_tree,
)
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet
from pytest_dstfuzz.dialogue.normalise import normalise_slot
from pytest_dstfuzz.errors import UserError, did_you_mean, unknown_name
from pytest_dstfuzz.kinds import KINDS

#: Whether the order of calls counts.
ORDERS: Final = ("any", "exact")
#: Upper bound for the number of calls or arguments; the base of the score in `_gain`.
_MANY: Final = 1000


class ToolCallComparison(Comparison):
    """Compares tool calls, with a rule for each argument.

    Calls of one tool are paired by similarity. If the order counts, calls in both messages must
    have the same order.
    """

    def __init__(
        self,
        order: str = "any",
        table: ArgumentTable | None = None,
        texts: Callable[[], Comparison] | None = None,
    ) -> None:
        """Store the rules and a function that makes the comparison of free text."""
        self._ordered = order == "exact"
        self._table = table or ArgumentTable()
        self._make_texts = texts

    @property
    def name(self) -> str:
        """The name in reports: whether the order counts, and the rules of the user."""
        given = "".join(f",{pattern}={rule.name}" for pattern, rule in self._table.rules)
        return f"calls:{'exact' if self._ordered else 'any'}{given}"

    @property
    def identity(self) -> str:
        """The name, a digest of the schemas, and the identity of the text comparison."""
        slots = {slot: self._table.kind(slot) for slot in self._table.slots}
        told = canonical([[slot, *_told(kind)] for slot, kind in slots.items()])
        own = "".join(f"|{rule.identity}" for _, rule in self._table.rules if rule.identity)
        texts = "" if self._texts is None else f"|{self._texts.identity}"
        digest = hashlib.sha256(told.encode()).hexdigest()[:12]
        return f"{self.name}#{digest}{own}{texts}"

    def align(self, before: Outcome, found: Outcome) -> Outcome:
        """Return ``found`` with the paths of ``before``.

        Equivalent values become those of ``before``.
        """
        if before == found:
            return found
        clean, _ = calls_of_outcome(before)
        given, others = calls_of_outcome(found)
        self._ignore_tools(clean, given)
        pairs = self._pairs(clean, given)
        values = dict(others)
        for call, tree in clean.items():
            if (own := pairs.get(call)) is not None:
                values.update(self._merged(call.tool, tree, given[own]).paths(call))
        for call, of in self._places(clean, given, pairs).items():
            values[str(call)] = of
        taken = set(pairs.values())
        extra = [call for call in given if call not in taken]
        values.update(self._new(clean, given, extra))
        return Outcome(values)

    def prepare(self, pairs: Sequence[TextPair]) -> None:
        """Prepare the comparison of free texts."""
        texts = [pair for pair in pairs if self._rule_of(pair.path) is TEXT]
        if texts and self._texts is not None:
            self._texts.prepare(texts)

    def compare(self, path: str, before: str, found: str, asked: Context) -> ComparisonResult:
        """Return whether two values of an argument, or two positions of a call, are equivalent."""
        place = AnswerPath.of(path)
        if not place.in_call:
            return _compared(same=before == found, before=before, found=found)
        if place.is_call:
            return self._same_place(place.tool, before, found)
        way = place[2:]
        rule, at = self._table.governing(place.tool, way)
        if rule.ignores:
            return ComparisonResult(same=True)
        if rule is TEXT and self._texts is not None:
            return self._texts.compare(path, before, found, asked)
        if rule.whole and at < len(way):
            # This is part of an argument that was compared as a whole.
            return _compared(same=before == found, before=before, found=found)
        kind = self._table.kind(place.part[1])
        same = rule.same(value_of(before), value_of(found), kind)
        return _compared(same=same, before=before, found=found)

    def one_sided(self, path: str, *, gone: bool) -> str:
        """Return a note that a call or an argument is gone or new."""
        place = AnswerPath.of(path)
        if not place.in_call:
            return ""
        what = "call" if place.is_call else "argument"
        return f"the {what} is gone" if gone else f"a new {what}"

    @cached_property
    def _texts(self) -> Comparison | None:
        """The comparison of free texts. ``None`` if no argument is a free text."""
        if self._make_texts is None or all(rule is not TEXT for _, rule in self._table.rules):
            return None
        return self._make_texts()

    def _rule_of(self, path: str) -> Rule:
        place = AnswerPath.of(path)
        return self._table.governing(place.tool, place[2:])[0] if place.in_call else AUTO

    def _same_place(self, tool: str, before: str, found: str) -> ComparisonResult:
        places = place_of(before), place_of(found)
        if not self._ordered or None in places or self._is_ignored(tool):
            return ComparisonResult(same=True)
        same = places[0] == places[1]
        return ComparisonResult(same, why="" if same else f"another order: {before} -> {found}")

    def _is_ignored(self, tool: str) -> bool:
        rule = self._table.named(tool)
        return rule is not None and rule.ignores

    def _ignore_tools(
        self, clean: Mapping[AnswerPath, CallTree], given: dict[AnswerPath, CallTree]
    ) -> None:
        """Replace the found calls of ignored tools by the clean calls."""
        for call in [call for call in given if self._is_ignored(call.tool)]:
            del given[call]
        given.update({call: tree for call, tree in clean.items() if self._is_ignored(call.tool)})

    def _pairs(
        self, clean: Mapping[AnswerPath, CallTree], given: Mapping[AnswerPath, CallTree]
    ) -> dict[AnswerPath, AnswerPath]:
        """Map each clean call to the found call of the same tool that is most similar to it."""
        found: dict[AnswerPath, AnswerPath] = {}
        others = by_tool(given)
        for tool, mine in by_tool(clean).items():
            theirs = others.get(tool, [])
            if len(mine) == 1 and len(theirs) == 1:
                found[mine[0]] = theirs[0]
            elif theirs:
                gains = [[self._gain(one, clean, two, given) for two in theirs] for one in mine]
                columns = assign_columns(gains)
                found.update(
                    (call, theirs[at])
                    for call, at in zip(mine, columns, strict=True)
                    if at is not None
                )
        return found

    def _gain(
        self,
        one: AnswerPath,
        clean: Mapping[AnswerPath, CallTree],
        other: AnswerPath,
        given: Mapping[AnswerPath, CallTree],
    ) -> int:
        """Return the similarity of two calls.

        Equivalent arguments count most, then equal texts, then equal numbers of the calls.
        """
        mine, theirs = clean[one].arguments, given[other].arguments
        merged = self._merged(one.tool, clean[one], given[other]).arguments
        same = sum(merged.get(name) == tree for name, tree in mine.items())
        alike = sum(theirs.get(name) == tree for name, tree in mine.items())
        gain = int(merged == mine)
        for part in (same, alike, one[1] == other[1]):
            gain = gain * _MANY + part
        return gain

    def _merged(self, tool: str, clean: CallTree, given: CallTree) -> CallTree:
        arguments = self._parts(tool, clean.arguments, given.arguments, None)
        return CallTree(given.place, arguments)

    def _parts(
        self,
        slot: str,
        clean: Mapping[str | int, Tree],
        given: Mapping[str | int, Tree],
        inherited: Rule | None,
    ) -> dict[str | int, Tree]:
        found: dict[str | int, Tree] = {}
        for step in dict.fromkeys([*clean, *given]):
            below = slot if isinstance(step, int) else f"{slot}.{step}"
            named = inherited if below == slot else self._table.named(below) or inherited
            part = self._part(below, clean.get(step), given.get(step), named)
            if part is not None:
                found[step] = part
        return found

    def _part(
        self, slot: str, before: Tree | None, found: Tree | None, named: Rule | None
    ) -> Tree | None:
        """Return the clean argument if it equals the found one by its rule, or the found one."""
        rule = named or AUTO
        if before == found or rule.ignores:
            return before
        kind = self._table.kind(slot)
        if (before is None or found is None) and rule is not RULES["exact"]:
            given, default = _value(before if found is None else found), value_of(kind.default)
            # A missing argument is equivalent to null and to its default.
            if given is None or (default is not None and same_value(given, default, kind)):
                return before
        if rule.whole:
            return before if rule.same(_value(before), _value(found), kind) else found
        if before is None or found is None:
            return found
        one, other = _members(before, found), _members(found, before)
        if one is not None and other is not None:
            parts = self._parts(slot, one, other, named)
            return before if parts == one else parts or found
        return before if rule.same(_value(before), _value(found), kind) else found

    def _places(
        self,
        clean: Mapping[AnswerPath, CallTree],
        given: Mapping[AnswerPath, CallTree],
        pairs: Mapping[AnswerPath, AnswerPath],
    ) -> dict[AnswerPath, str]:
        """Return the position of each shared call among the calls that both messages make."""
        kept = {call: clean[call].place or "" for call in pairs}
        counted = [call for call in pairs if not self._is_ignored(call.tool)]
        if self._ordered:
            by_place = sorted(counted, key=lambda call: _number(clean[call].place))
            as_found = sorted(counted, key=lambda call: _number(given[pairs[call]].place))
            for own, call in zip(by_place, as_found, strict=True):
                kept[call] = clean[own].place or ""
        return {call: text for call, text in kept.items() if text}

    def _new(
        self,
        clean: Mapping[AnswerPath, CallTree],
        given: Mapping[AnswerPath, CallTree],
        extra: Sequence[AnswerPath],
    ) -> dict[str, str]:
        """Return the paths of calls that are only in the found message, in a fixed order."""
        values: dict[str, str] = {}
        numbers = {tool: max(int(one[1]) for one in mine) for tool, mine in by_tool(clean).items()}

        def order(call: AnswerPath) -> tuple[int, str, str, int]:
            place = _number(given[call].place) if self._ordered else 0
            told = {f".{step}": _value(tree) for step, tree in given[call].arguments.items()}
            return place, call.tool, canonical(told), int(call[1])

        for count, call in enumerate(sorted(extra, key=order), start=len(clean) + 1):
            tree = given[call]
            number = numbers[call.tool] = numbers.get(call.tool, -1) + 1
            place = tree.place if self._ordered or tree.place is None else f"call {count}"
            values.update(CallTree(place, tree.arguments).paths(AnswerPath((call.tool, number))))
        return values


def _members(tree: Tree, beside: Tree) -> Mapping[str | int, Tree] | None:
    """Return the members of an object or a list, or ``None`` for other values.

    An empty object is stored as a text. It counts as an object if the other value is an object.
    """
    if isinstance(tree, dict):
        return tree
    is_object = isinstance(beside, dict) and all(isinstance(step, str) for step in beside)
    return {} if is_object and _value(tree) == {} else None


def _value(tree: Tree | None) -> object:
    return None if tree is None else value_of_tree(tree)


def _number(place: str | None) -> int:
    """Return the place of a call in its message, or 0 if it is unknown."""
    return place_of(place or "") or 0


def _compared(*, same: bool, before: str, found: str) -> ComparisonResult:
    return ComparisonResult(same, why="" if same else f"{before} -> {found}")


def _told(kind: ArgumentKind) -> list[str]:
    return [kind.type, kind.format, kind.default]


#: Maximum number of arguments in a message.
_SHOWN: Final = 8


def comparison_of_values(
    data: DialogueSet,
    settings: ReplySettings,
    search_path: tuple[str, ...] = (),
    table: Sequence[str] = (),
) -> Comparison:
    """Return the comparison for answers with values: belief states or tool calls."""
    has_tools = KINDS[settings.outcome].has_tools
    of_kind = comparison_of_calls if has_tools else comparison_of_states
    return of_kind(data, settings, search_path, table)


def comparison_of_calls(
    data: DialogueSet,
    settings: ReplySettings,
    search_path: tuple[str, ...] = (),
    table: Sequence[str] = (),
) -> ToolCallComparison:
    """Return the comparison of tool calls.

    Args:
        data: the data set; if an argument has no rule, its schema decides how it is compared.
        settings: the rules, and whether the order of calls counts.
        search_path: folders to search first for modules; empty = the working folder.
        table: rules of ``[tool.dstfuzz.arguments]``; the rules of ``settings`` have priority.

    Raises:
        UserError: the rule does not exist, or no tool has the argument; the message suggests the
            most similar name.
    """
    places = _lines(settings, table)
    rules: list[tuple[str, Rule]] = []
    known = ArgumentTable((), data.tools)
    slots = dict.fromkeys([*known.slots, *_recorded(data)])
    for where, line in places:
        pattern, rule = _rule(where, line, search_path)
        if slots and not any(known.fits(pattern, slot) for slot in slots):
            if where == ARGUMENTS_TABLE and "-" in pattern and "." not in pattern:
                continue  # A slot of a belief state. The table serves both kinds of runs.
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
    """Return the comparison of belief states. Without rules, it is plain equality.

    The arguments are those of `comparison_of_calls`. Rules of the table for tools are skipped.

    Raises:
        UserError: the rule or the slot does not exist; the message suggests the most similar name.
    """
    slots = data.ontology.slots if data.ontology is not None and data.says_slots else ()
    rules: list[tuple[str, Rule]] = []
    for where, line in _lines(settings, table):
        given, rule = _rule(where, line, search_path)
        pattern = given.lower() if is_pattern(given) else normalise_slot(given, data.normalisation)
        if pattern is None or (slots and not any(fnmatchcase(slot, pattern) for slot in slots)):
            if where == ARGUMENTS_TABLE and "." in given:
                continue  # An argument of a tool. The table serves both kinds of runs.
            raise UserError(f"{where}: {unknown_name('slot', given, slots)}")
        rules.append((pattern, rule))
    texts = partial(comparison_by_name, None, settings, search_path)
    return SlotComparison(ArgumentTable(rules), texts) if rules else EXACT


def _lines(settings: ReplySettings, table: Sequence[str]) -> list[tuple[str, str]]:
    """Return the rules in order, each with its origin."""
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
    """Return the tools and arguments of recorded calls, which may have no schema."""
    for dialogue in data.dialogues:
        for turn in dialogue.turns:
            for path in turn.calls or ():
                if (found := AnswerPath.of(path)).in_call:
                    yield found.part[1]


def _unknown(where: str, pattern: str, slots: list[str]) -> UserError:
    shown = ", ".join(slots[:_SHOWN]) + (", ..." if len(slots) > _SHOWN else "")
    hint = did_you_mean(pattern, slots) or f" Valid: {shown}."
    return UserError(f"{where}: no tool of the data has an argument {pattern!r}.{hint}")
