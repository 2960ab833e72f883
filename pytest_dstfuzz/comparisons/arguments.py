"""Compares values of arguments and slots by rules, and holds the table of rules."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any, Final

from pytest_dstfuzz.comparisons.comparison import Comparison, ComparisonResult, TextPair, digest_of
from pytest_dstfuzz.dialogue.calls import (
    Outcome,
    Tool,
    canonical,
    members_of,
    plain_marks,
    text_of,
    value_of,
)
from pytest_dstfuzz.dialogue.dates import instant_of, is_moment
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.dialogue.number_words import with_digits
from pytest_dstfuzz.errors import UserError, redact_text, unknown_name
from pytest_dstfuzz.registry import blame_errors
from pytest_dstfuzz.trackers.registry import load_attribute

#: Marks at the end of a text that are not part of a value.
_FINAL: Final = ".!?,;:…"
_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d{1,3})?", re.IGNORECASE)
#: Maximum relative difference of two floats that count as the same number. Arithmetic with floats
#: makes differences of about 1e-16. Two different numbers of at most 15 digits differ by more.
_CLOSE: Final = Decimal("1e-15")


@dataclass(frozen=True, slots=True)
class ArgumentKind:
    """The description of an argument in a tool's schema."""

    #: ``string``, ``number``, ``integer``, ``boolean``, ``array``, ``object``; ``""`` = unknown.
    type: str = ""
    #: ``date``, ``time``, ``date-time``, ...
    format: str = ""
    #: The default value as canonical JSON; ``null`` if the schema has none.
    default: str = "null"


UNKNOWN: Final = ArgumentKind()
#: A function of two JSON values and the schema's description. It returns whether the values are
#: equivalent.
Same = Callable[[object, object, ArgumentKind], bool]


def fold_text(text: str) -> str:
    """Return a text in a form that is equal for all spellings of one value.

    The form has no differences in case, blanks, final punctuation, and the encoding of quotes,
    dashes and accents.

    >>> fold_text(" The  Ritz. "), fold_text("Joe’s")
    ('the ritz', "joe's")
    """
    plain = plain_marks(text).casefold()
    return plain.rstrip(_FINAL).rstrip() or plain


@lru_cache(maxsize=1 << 12)
def number_of(text: str) -> Decimal | None:
    """Return the number that the whole text denotes, or ``None``.

    >>> number_of("1,200"), number_of("two"), number_of("2 people")
    (Decimal('1200'), Decimal('2'), None)
    """
    if any(unicodedata.decomposition(char)[:5] in ("<supe", "<sub>") for char in text):
        return None  # 10² is not 102.
    plain = with_digits(unicodedata.normalize("NFKC", plain_marks(text))).strip()
    head, _, _ = plain.partition(".")
    groups = head.lstrip("+-").split(",")
    if len(groups) > 1 and 1 <= len(groups[0]) <= 3 and all(len(one) == 3 for one in groups[1:]):
        plain = plain.replace(",", "")
    return Decimal(plain) if _NUMBER.fullmatch(plain) else None


def numeral(value: object) -> Decimal | None:
    """Return a JSON number, or the number that a text of digits denotes; otherwise ``None``.

    A text with a leading zero, a plus sign or an exponent counts as an id and not as a number.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return Decimal(str(value))
    plain = plain_marks(value) if isinstance(value, str) else ""
    whole, _, part = plain.removeprefix("-").partition(".")
    if not (whole + part).isdecimal() or not whole or (len(whole) > 1 and whole[0] == "0"):
        return None
    return number_of(plain)


def _is_whole(number: Decimal) -> bool:
    return number.is_finite() and number == number.to_integral_value()


def _equal(one: Decimal, other: Decimal) -> bool:
    whole = _is_whole(one) and _is_whole(other)
    if whole or not (one.is_finite() and other.is_finite()):
        return one == other
    return abs(one - other) <= _CLOSE * max(abs(one), abs(other))


def same_exactly(one: object, other: object, kind: ArgumentKind = UNKNOWN) -> bool:
    """Return whether two values and their JSON types are equal. 2 and 2.0 are equal."""
    del kind
    if isinstance(one, int | float) and isinstance(other, int | float):
        return isinstance(one, bool) == isinstance(other, bool) and one == other
    return canonical(one) == canonical(other)


def same_number(one: object, other: object, kind: ArgumentKind = UNKNOWN) -> bool:
    """Return whether two values are the same number ("2", "two") or the same text."""
    numbers = [
        number_of(value) if isinstance(value, str) else numeral(value) for value in (one, other)
    ]
    if numbers[0] is None or numbers[1] is None:
        return same_folded(one, other, kind)
    return _equal(numbers[0], numbers[1])


def same_folded(one: object, other: object, kind: ArgumentKind = UNKNOWN) -> bool:
    """Return whether two values are equal texts except for case and blanks. "2" equals 2."""
    del kind
    return fold_text(_text(one)) == fold_text(_text(other))


def same_instant(one: object, other: object, kind: ArgumentKind = UNKNOWN) -> bool:
    """Return whether two values are the same instant or the same text."""
    instants = instant_of(one), instant_of(other)
    if None in instants:
        return same_folded(one, other, kind)
    return instants[0] == instants[1]


def same_auto(one: object, other: object, kind: ArgumentKind = UNKNOWN) -> bool:
    """Return whether two values are equivalent by the default rule.

    The schema's type and format decide whether they are compared as numbers, times or texts.
    Without a schema, the form of the values decides.
    """
    if same_exactly(one, other):
        return True
    if kind.format in ("date", "time", "date-time"):
        return same_instant(one, other)
    texts = isinstance(one, str) and isinstance(other, str)
    if kind.type in ("number", "integer"):
        return same_number(one, other)
    if not (texts and kind.type == "string"):
        numbers = numeral(one), numeral(other)
        if numbers[0] is not None and numbers[1] is not None:
            # Compare them as texts, because ``3.10`` and ``3.1`` may be two versions.
            alike = _equal(numbers[0], numbers[1])
            return alike and (not texts or _is_whole(numbers[0]) or same_folded(one, other))
    if texts and is_moment(str(one)) and is_moment(str(other)):
        return same_instant(one, other)
    return same_folded(one, other)


def _text(value: object) -> str:
    return value if isinstance(value, str) else text_of(value)


def _found_in(one: object, several: Sequence[object], kind: ArgumentKind) -> int | None:
    """Return the index of the first equivalent value, or ``None``."""
    return next((at for at, two in enumerate(several) if same_value(one, two, kind)), None)


def same_value(one: object, other: object, kind: ArgumentKind = UNKNOWN) -> bool:
    """Return whether two nested JSON values are equivalent, part by part (see `same_auto`)."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return set(one) == set(other) and all(same_value(one[k], other[k]) for k in one)
    if _is_list(one) and _is_list(other):
        pairs = zip(_parts(one), _parts(other), strict=False)
        return len(_parts(one)) == len(_parts(other)) and all(same_value(*p, kind) for p in pairs)
    return same_auto(one, other, kind)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _parts(value: object) -> Sequence[object]:
    """Return the elements of a list, the pairs of an object, or a single value as a list.

    For ``None`` the list is empty.
    """
    if value is None:
        return []
    if isinstance(value, Mapping):
        return [list(pair) for pair in value.items()]
    return value if isinstance(value, Sequence) and not isinstance(value, str) else [value]


def same_members(one: Sequence[str], other: Sequence[str], rule: Rule) -> bool:
    """Return whether two lists have the same members in any order, compared by a rule."""
    return len(one) == len(other) and _all_matched(
        one, other, lambda mine, its: rule.same(mine, its, UNKNOWN)
    )


def _within(some: object, others: object, kind: ArgumentKind) -> bool:
    """Return whether each element of ``some`` matches a different element of ``others``."""
    return _all_matched(_parts(some), _parts(others), lambda mine, its: same_value(mine, its, kind))


#: Maximum number of pairs of list elements to compare by a rule, which takes about a second. Only
#: elements of unusual spellings are compared pair by pair.
_MOST_PAIRS: Final = 200_000


def _all_matched(
    some: Sequence[object], others: Sequence[object], same: Callable[[Any, Any], bool]
) -> bool:
    """Return whether each element of ``some`` matches a different element of ``others``.

    Elements that are equal in their usual form are matched first, without a search. If more than
    `_MOST_PAIRS` of the other pairs must be compared, the lists do not match.
    """
    if len(some) > len(others):
        return False
    for key in (canonical, _usual_form):
        some, others = _without_equal(some, others, key, same)
    left, pairs = list(others), 0
    for one in some:
        for at, two in enumerate(left):
            pairs += 1
            if pairs > _MOST_PAIRS:
                return False
            if same(one, two):
                del left[at]
                break
        else:
            return False
    return True


def _without_equal(
    some: Sequence[object],
    others: Sequence[object],
    key: Callable[[object], str],
    same: Callable[[Any, Any], bool],
) -> tuple[list[object], list[object]]:
    """Return two lists without the pairs of elements that are the same and have an equal key."""
    places: dict[str, list[int]] = {}
    for place in reversed(range(len(others))):
        places.setdefault(key(others[place]), []).append(place)
    rest, matched = [], set()
    for one in some:
        found = places.get(key(one))
        if found and same(one, others[found[-1]]):
            matched.add(found.pop())
        else:
            rest.append(one)
    return rest, [two for place, two in enumerate(others) if place not in matched]


def _usual_form(value: object) -> str:
    """Return a text that is mostly equal for values that are the same by `same_value`."""
    if isinstance(value, Mapping):
        return canonical({str(name): _usual_form(inner) for name, inner in value.items()})
    if _is_list(value):
        return canonical([_usual_form(inner) for inner in _parts(value)])
    number = numeral(value)
    if number is not None and number.is_finite():
        return str(number.normalize())
    instant = instant_of(value) if isinstance(value, str) and is_moment(value) else None
    return fold_text(_text(value)) if instant is None else repr(instant)


def same_unordered(one: object, other: object, kind: ArgumentKind = UNKNOWN) -> bool:
    """Return whether two lists have the same elements in any order."""
    return len(_parts(one)) == len(_parts(other)) and _within(one, other, kind)


def found_is_subset(before: object, found: object, kind: ArgumentKind = UNKNOWN) -> bool:
    """Return whether all elements of the found value are in the clean value."""
    return _within(found, before, kind)


def found_is_superset(before: object, found: object, kind: ArgumentKind = UNKNOWN) -> bool:
    """Return whether all elements of the clean value are in the found value."""
    return _within(before, found, kind)


def _always(one: object, other: object, kind: ArgumentKind = UNKNOWN) -> bool:
    del one, other, kind
    return True


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule for the equivalence of two values."""

    #: The name in options.
    name: str
    same: Same
    #: Whether the rule takes the whole argument instead of each value within it.
    whole: bool = False
    #: Anything else that affects the result, such as the source of a function.
    identity: str = ""

    @property
    def ignores(self) -> bool:
        """Whether the rule accepts every value, including a missing one."""
        return self.same is _always


AUTO: Final = Rule("auto", same_auto)
#: Free text, compared as replies are.
TEXT: Final = Rule("text", same_folded)
RULES: Final[Mapping[str, Rule]] = {
    rule.name: rule
    for rule in (
        AUTO,
        Rule("exact", same_exactly),
        Rule("ignore", _always, whole=True),
        Rule("number", same_number),
        Rule("case", same_folded),
        Rule("instant", same_instant),
        Rule("subset", found_is_subset, whole=True),
        Rule("superset", found_is_superset, whole=True),
        Rule("unordered", same_unordered, whole=True),
        TEXT,
    )
}


def admissible(values: Sequence[object]) -> Rule:
    """Return a rule that treats all given values as equivalent.

    If the values are lists, each list is a separate group: only values of one group are equivalent.

    Raises:
        UserError: a group has fewer than two values, or values and groups are mixed.
    """
    groups = [list(one) for one in values if isinstance(one, Sequence) and not isinstance(one, str)]
    if groups and len(groups) != len(values):
        raise UserError(
            f"{canonical(list(values))} mixes values and groups: give either equivalent values, "
            '["NYC", "New York"], or groups of them, '
            '[["NYC", "New York"], ["LA", "Los Angeles"]]'
        )
    groups = groups or [list(values)]
    if any(len(group) < 2 for group in groups):
        raise UserError(
            f"{canonical(list(values))} needs at least two equivalent values in each list"
        )

    def same(one: object, other: object, kind: ArgumentKind) -> bool:
        return same_value(one, other, kind) or any(
            _found_in(one, group, kind) is not None and _found_in(other, group, kind) is not None
            for group in groups
        )

    return Rule(canonical(list(values)), same)


def own_rule(function: Any, name: str) -> Rule:
    """Return the rule for a user's function, which takes two JSON values and returns a boolean.

    Raises:
        UserError: the object is not callable.
    """
    if not callable(function):
        raise UserError(
            f"{name} is of type {type(function).__name__}: give a function of two values"
        )

    def same(one: object, other: object, kind: ArgumentKind) -> bool:
        del kind
        with blame_errors(f"the rule of arguments {name!r}"):
            answer = function(one, other)
        if type(answer).__module__ == "numpy" and hasattr(answer, "item"):
            answer = answer.item()
        if not isinstance(answer, bool):
            raise UserError(
                f"the rule of arguments {name!r} returned {redact_text(repr(answer))}: it must "
                "return True if both values are equivalent, otherwise False"
            )
        return answer

    return Rule(name, same, whole=True, identity=digest_of(function, name))


def rule_of(given: object, search_path: tuple[str, ...] = ()) -> Rule:
    """Return the rule for a name, a list of admissible values, or ``module:function``.

    Raises:
        UserError: the rule does not exist; the message suggests the most similar name.
    """
    text = given.strip() if isinstance(given, str) else ""
    if text in RULES:
        return RULES[text]
    if text.startswith("["):
        given = value_of(text)
    if isinstance(given, Sequence) and not isinstance(given, str):
        return admissible(given)
    if re.fullmatch(r"[\w.]+:[\w.]+", text):
        return own_rule(load_attribute(text, search_path, "rule of arguments"), text)
    error = unknown_name("rule of arguments", text or str(given), RULES)
    raise UserError(
        f'{error} Write equivalent values as a list, ["NYC", "New York"], and your own function '
        "as package.module:function."
    )


_WILD: Final = frozenset("*?[")
#: Maximum depth of arguments, since schemas may be recursive.
_DEEPEST: Final = 12
#: Maximum number of described arguments of a tool. Schemas that refer to each other have far more.
_MOST_ARGUMENTS: Final = 5_000


def is_pattern(name: str) -> bool:
    """Return whether a name of arguments or slots has wildcards."""
    return bool(_WILD & set(name))


class ArgumentTable:
    """The rules of arguments or slots by pattern, and the schemas of the tools.

    A pattern matches tools, or arguments without list indices: for example ``book_table.people``,
    ``*.id`` or ``book_table.*``. A name without wildcards has priority. If several patterns match,
    the last one counts.
    """

    def __init__(self, rules: Sequence[tuple[str, Rule]] = (), tools: Iterable[Tool] = ()) -> None:
        self.rules = tuple(rules)
        self._tools = tuple(dict.fromkeys(tools))
        self._exact = {pattern: rule for pattern, rule in rules if not is_pattern(pattern)}
        self._patterns = [one for one in reversed(rules) if one[0] not in self._exact]
        self._named = lru_cache(1 << 14)(self._find)

    def named(self, slot: str) -> Rule | None:
        """Return the user's rule for an argument, a slot or a tool, or ``None``."""
        return self._named(slot)

    def kind(self, slot: str) -> ArgumentKind:
        """Return the schema's description of an argument."""
        return self._kinds.get(slot, UNKNOWN)

    def governing(self, tool: str, way: Sequence[str | int]) -> tuple[Rule, int]:
        """Return the rule for an argument, and the length of the path to the compared value.

        If a rule on the path takes a whole argument, the first such rule applies. Otherwise the
        user's rule for the innermost argument applies. If the user gave no rule, `AUTO` applies.
        """
        slot, found = tool, (AUTO, len(way))
        for at, step in enumerate(way, start=1):
            if isinstance(step, int):
                continue
            slot = f"{slot}.{step}"
            rule = self.named(slot)
            if rule is None:
                continue
            if rule.whole:
                return rule, at
            found = rule, len(way)
        return found

    def fits(self, pattern: str, slot: str) -> bool:
        """Return whether a pattern may apply to an argument or to a value within it.

        If the schema does not describe the members of an object, the pattern may name any member.
        """
        inner = pattern.startswith((f"{slot}.", "*"))
        return fnmatchcase(slot, pattern) or (inner and self.kind(slot).type == "object")

    @property
    def slots(self) -> tuple[str, ...]:
        """The names of the tools, and of the arguments that their schemas describe."""
        return tuple(dict.fromkeys([*(tool.name for tool in self._tools), *self._kinds]))

    def _find(self, slot: str) -> Rule | None:
        if slot in self._exact:
            return self._exact[slot]
        return next((rule for name, rule in self._patterns if fnmatchcase(slot, name)), None)

    @cached_property
    def _kinds(self) -> dict[str, ArgumentKind]:
        found: dict[str, ArgumentKind] = {}
        for tool in self._tools:
            schema = tool.schema
            described = _kinds(tool.name, schema, schema, ())
            for slot, kind in islice(described, _MOST_ARGUMENTS):
                # Two tools may have the same name. If their schemas differ, the kind is unknown.
                found[slot] = kind if found.get(slot, kind) == kind else UNKNOWN
        return found


def _kinds(
    slot: str, schema: Any, root: Mapping[str, Any], above: tuple[object, ...]
) -> Iterable[tuple[str, ArgumentKind]]:
    """Yield the arguments below a schema with their descriptions.

    A schema that refers to itself, as for nested filters, is described down to the reference.
    ``above`` has the properties of the schemas around this one.
    """
    schema = _plain(schema, root)
    if not isinstance(schema, Mapping) or len(above) == _DEEPEST:
        return
    properties = schema.get("properties")
    if any(properties is one for one in above if one is not None):
        return
    above = (*above, properties)
    for name, inner in properties.items() if isinstance(properties, Mapping) else ():
        below = f"{slot}.{name}"
        of_elements = _elements(inner, root)
        yield below, _kind(of_elements, inner, root)
        yield from _kinds(below, of_elements, root, above)
    if "items" in schema:
        yield from _kinds(slot, schema["items"], root, above)


def _elements(schema: Any, root: Mapping[str, Any]) -> Any:
    """Return the schema of a list's elements, or the schema itself."""
    for _ in range(_DEEPEST):
        schema = _plain(schema, root)
        if not isinstance(schema, Mapping) or "items" not in schema:
            break
        schema = schema["items"]
    return schema


def _kind(elements: Any, schema: Any, root: Mapping[str, Any]) -> ArgumentKind:
    plain = _plain(schema, root)
    default = plain.get("default") if isinstance(plain, Mapping) else None
    if isinstance(schema, Mapping) and "default" in schema:
        default = schema["default"]
    if not isinstance(elements, Mapping):
        return ArgumentKind(default=canonical(default))
    kind, form = elements.get("type"), elements.get("format")
    return ArgumentKind(
        kind if isinstance(kind, str) else "",
        form if isinstance(form, str) else "",
        canonical(default),
    )


def _plain(schema: Any, root: Mapping[str, Any]) -> Any:
    """Return a schema with its references resolved, and without the type null."""
    for _ in range(_DEEPEST):
        if not isinstance(schema, Mapping):
            return schema
        reference = schema.get("$ref")
        several = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(reference, str) and reference.startswith("#/"):
            schema = _at(root, reference)
        elif isinstance(several, Sequence):
            others = [one for one in several if one != {"type": "null"}]
            if len(others) != 1:
                return {}
            (schema,) = others
        elif isinstance(schema.get("type"), list):
            types = [one for one in schema["type"] if one != "null"]
            return {**schema, "type": types[0] if len(types) == 1 else ""}
        else:
            return schema
    return {}


def _at(root: Mapping[str, Any], reference: str) -> Any:
    found: Any = root
    for step in reference.removeprefix("#/").split("/"):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


#: Prefix of the comparison's name, which reports and remembered violations store.
STATES: Final = "states"


class SlotComparison(Comparison):
    """Compares slots by their rules, and slots without a rule by equality."""

    def __init__(self, table: ArgumentTable, texts: Callable[[], Comparison] | None = None) -> None:
        """Store the rules of slots, and a function that makes the comparison of free text."""
        self._table = table
        self._make_texts = texts

    @property
    def name(self) -> str:
        """The name in reports: `STATES` and the rules of the user."""
        return STATES + "".join(f",{slot}={rule.name}" for slot, rule in self._table.rules)

    @property
    def identity(self) -> str:
        """The name, digests of the user's functions, and the identity of the text comparison."""
        own = "".join(f"|{rule.identity}" for _, rule in self._table.rules if rule.identity)
        texts = "" if self._texts is None else f"|{self._texts.identity}"
        return f"{self.name}{own}{texts}"

    def align(self, before: Outcome, found: Outcome) -> Outcome:
        """Return ``found`` with equivalent values replaced by those of ``before``."""
        values = dict(found)
        for slot in {**before, **found}:
            one, other = before.get(slot), found.get(slot)
            rule = self._table.named(slot)
            if one == other or rule is None or rule is TEXT or not _same(rule, one, other):
                continue
            if one is None:
                del values[slot]
            else:
                values[slot] = one
        return found if values == found else Outcome(values)

    def prepare(self, pairs: Sequence[TextPair]) -> None:
        """Prepare the comparison of free texts."""
        texts = [pair for pair in pairs if self._table.named(pair.path) is TEXT]
        if texts and self._texts is not None:
            self._texts.prepare(texts)

    def compare(self, path: str, before: str, found: str, asked: Context) -> ComparisonResult:
        """Return whether two values of a slot are equivalent."""
        rule = self._table.named(path)
        if rule is TEXT and self._texts is not None:
            return self._texts.compare(path, before, found, asked)
        return ComparisonResult(
            before == found or (rule is not None and _same(rule, before, found))
        )

    @cached_property
    def _texts(self) -> Comparison | None:
        """The comparison of free texts, if a slot has one."""
        if self._make_texts is None or all(rule is not TEXT for _, rule in self._table.rules):
            return None
        return self._make_texts()


def rules_of_slots(compared: str) -> str:
    """Return the part for belief states of the names of a run's comparisons, or ``""``.

    >>> rules_of_slots("numbers; or states,hotel-time=instant")
    'states,hotel-time=instant'
    """
    names = compared.split("; or ")
    return next((name for name in names if name.startswith(f"{STATES},")), "")


def _same(rule: Rule, before: str | None, found: str | None) -> bool:
    """Return whether two values are equivalent. The order of list members does not matter."""
    if rule.ignores:
        return True
    one, other = _value(before), _value(found)
    if rule.whole:
        return rule.same(one, other, UNKNOWN)
    if before is None or found is None:
        return False
    return same_members(members_of(before), members_of(found), rule)


def _value(text: str | None) -> object:
    """Return a value in the form for rules: a list, a text, or ``None`` for no value."""
    if text is None:
        return None
    members = members_of(text)
    return list(members) if len(members) > 1 else members[0]
