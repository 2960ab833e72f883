"""Readable text for tool calls and replies."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from pytest_dstfuzz.campaign.results import BY_LABEL, Spread, TurnResult
from pytest_dstfuzz.dialogue.calls import (
    AnswerPath,
    Outcome,
    ToolCall,
    canonical,
    list_calls,
    place_of,
    value_of,
)
from pytest_dstfuzz.dialogue.dialogues import Difference
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.report.wording import Span, mark_edits, mark_spans, shorten, visible

__all__ = ["call_lines"]


#: Maximum number of characters shown of a value, of a changed value, and of a value on a page.
_LONGEST: Final = 40
_LONGEST_CHANGED: Final = 120
LONGEST_ON_PAGE: Final = 2_000
#: Maximum number of unchanged arguments shown per call.
_MOST_KEPT: Final = 6
#: Stands for a missing value.
_NONE: Final = "none"

#: A call for a page: code with its deleted and inserted parts.
Spans = list[str | Span]


class CallChange(NamedTuple):
    """The change of one call."""

    #: The label before the call, such as ``no call; expected``; ``""`` if an argument changed.
    what: str
    spans: Spans
    #: Notes, such as the expected value of an argument.
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The whole change in one line."""
        code = "".join(one if isinstance(one, str) else _arrow(one) for one in self.spans)
        notes = f" ({'; '.join(self.notes)})" if self.notes else ""
        return f"{f'{self.what} ' if self.what else ''}{code}{notes}"


class _ComparedMessages(NamedTuple):
    """Two messages and their differences."""

    before: Mapping[AnswerPath, str]
    after: Mapping[AnswerPath, str]
    changes: Mapping[AnswerPath, Difference]
    tools: Sequence[str]
    #: Whether all arguments of the calls are known, or only the changed arguments.
    whole: bool
    page: bool


def show_calls(outcome: Mapping[str, str], longest: int = _LONGEST_CHANGED) -> str:
    """Return the calls of a message as code.

    >>> show_calls({"book[0]": "call 1", "book[0].people": "2", "book[0].area": "north"})
    'book(people=2, area="north")'
    >>> show_calls({})
    'nothing'
    """
    return ", ".join(code_of(call, longest) for call in list_calls(outcome)) or "nothing"


def code_of(call: ToolCall, longest: int = _LONGEST_CHANGED) -> str:
    """Return a call as code, with its values as JSON."""
    given = (f"{visible(name)}={_code(value, longest)}" for name, value in call.arguments.items())
    return f"{visible(call.name)}({', '.join(given)})"


def call_lines(turn: TurnResult, changes: Sequence[Difference]) -> list[str]:
    """Return the changes of the calls in a turn's message, one line per changed call."""
    return [one.text for one in call_changes(turn, changes)]


def call_changes(
    turn: TurnResult, changes: Sequence[Difference], *, page: bool = False
) -> list[CallChange]:
    """Return the changed calls of a turn's message. Other kinds of answer have none.

    For a ``page``, values may be longer.
    """
    if not turn.kind.has_tools:
        return []
    return changes_of(turn.clean_state or Outcome(), changes, turn.tools, page=page)


def changes_of(
    clean: Mapping[str, str] | None,
    changes: Sequence[Difference],
    tools: Sequence[str] = (),
    *,
    page: bool = False,
) -> list[CallChange]:
    """Return the changed calls. Without ``clean`` calls, only the changed arguments are known.

    ``tools`` are the names of the available tools, if known.
    """
    by_path = {one.path: one for one in changes if one.path.in_call}
    # For changed paths, the reference gives the earlier value. All others equal the clean answer.
    known = {AnswerPath.of(path): text for path, text in (clean or {}).items()}
    before = {**known, **{path: one.before for path, one in by_path.items()}}
    after = {**before, **{path: one.after for path, one in by_path.items()}}
    told = _ComparedMessages(_known(before), _known(after), by_path, tools, clean is not None, page)
    return list(_calls(told))


def show_remembered(
    answer: Mapping[str, str] | None,
    changes: Sequence[Difference],
    show: Callable[[str], str] = str,
) -> list[str]:
    """Return the changed calls of a remembered violation, one line per call.

    Args:
        answer: the calls of the clean turn, if known.
        changes: the changes of these calls.
        show: formats a value for display.
    """

    def shown(path: AnswerPath, text: str | None) -> str | None:
        own = text is None or (path.is_call and place_of(text) is not None)
        return text if text is None or own else show(text)

    clean = None
    if answer is not None:
        clean = {path: shown(AnswerPath.of(path), answer[path]) or "" for path in answer}
    found = [
        replace(one, before=shown(one.path, one.before), after=shown(one.path, one.after))
        for one in changes
    ]
    return [one.text for one in changes_of(clean, found)]


def _known(values: Mapping[AnswerPath, str | None]) -> dict[AnswerPath, str]:
    return {path: text for path, text in values.items() if text is not None}


def _calls(told: _ComparedMessages) -> Iterator[CallChange]:
    """Yield changed arguments, missing calls and new calls."""
    ordered = _in_order(told)
    gone = [one for one in ordered if one in told.before and one not in told.after]
    new = [one for one in ordered if one in told.after and one not in told.before]
    for call in ordered:
        paths = [path for path in told.changes if path.call == call]
        if gone or new:
            # Ignore changed positions, because a missing or new call shifts all later calls.
            paths = [path for path in paths if path != call]
        if paths and call not in gone and call not in new:
            yield _changed(call, paths, told)
    yield from _gone_and_new(gone, new, told)


def _gone_and_new(
    gone: Sequence[AnswerPath], new: Sequence[AnswerPath], told: _ComparedMessages
) -> Iterator[CallChange]:
    both = min(len(gone), len(new))
    for call, other in zip(gone, new, strict=False):
        spans = [Span(_code_in(call, told.before, told), _code_in(other, told.after, told))]
        yield CallChange("", [*spans], (*_unknown(other, told), *_notes([call, other], told)))
    left = any(path.in_call for path in told.after)
    for call in gone[both:]:
        what = "not called:" if left else "no call; expected"
        code = Span(_code_in(call, told.before, told), "")
        yield CallChange(what, [code], tuple(_notes([call], told)))
    others = any(path.in_call for path in told.before)
    for call in new[both:]:
        what = "called, too:" if others else "called although nothing was called before:"
        notes = (*_unknown(call, told), *_notes([call], told))
        yield CallChange(what, [Span("", _code_in(call, told.after, told))], notes)


def _changed(call: AnswerPath, paths: Sequence[AnswerPath], told: _ComparedMessages) -> CallChange:
    """Return the change of a call that is in both messages, with arguments sorted by name."""
    every = dict.fromkeys((*told.before, *told.after, *paths))
    groups: dict[str, list[AnswerPath]] = {}
    for path in sorted((one for one in every if one.call == call and one != call), key=_place):
        groups.setdefault(str(path[2]), []).append(path)
    given: list[Spans] = []
    kept = 0
    for name, group in sorted(groups.items()):
        moved = any(path in told.changes for path in group)
        kept += not moved
        if moved or kept <= _MOST_KEPT or told.page:
            given += _given(name, group, told)
    if not told.whole or (kept > _MOST_KEPT and not told.page):
        given.append(["..."])
    spans: Spans = [f"{visible(call.tool)}("]
    for number, one in enumerate(given):
        spans += [", ", *one] if number else one
    notes = [*_unknown(call, told), *_notes(paths, told)]
    if call in paths and (own := told.changes[call]).before != own.after:
        now, then = (place_of(text or "") for text in (own.after, own.before))
        notes.append(f"call {now} of the message, was call {then}")
    return CallChange("", _joined([*spans, ")"]), tuple(notes))


def _given(name: str, group: Sequence[AnswerPath], told: _ComparedMessages) -> Iterator[Spans]:
    """Yield an argument of a call. If only some parts of an object changed, yield each part.

    A list of values is shown as a whole.
    """
    moved = [path for path in group if path in told.changes]
    inner = [path[3:] for path in group]
    members = all(len(steps) == 1 and isinstance(steps[0], int) for steps in inner)
    nested = any(path.argument != name for path in group) and not (told.whole and members)
    stays = not all(told.changes[path].after is None for path in moved) and not all(
        told.changes[path].before is None for path in moved
    )
    if moved and nested and (stays or len(moved) < len(group)):
        for path in group:
            yield from _given(path.argument, [path], told)
        return
    longest = LONGEST_ON_PAGE if told.page else _LONGEST_CHANGED if moved else _LONGEST
    before, after = (_value(name, group, one, longest) for one in (told.before, told.after))
    yield [f"{visible(name)}=", Span(before, after) if moved else before]


def _value(
    name: str, group: Sequence[AnswerPath], values: Mapping[AnswerPath, str], longest: int
) -> str:
    """Return the JSON value at the given paths of one argument."""
    known = {path: values[path] for path in group if path in values}
    if not known:
        return _NONE
    if [name] == [path.argument for path in group]:
        return _code(value_of(known[group[0]]), longest)
    (call,) = list_calls(known)
    return ", ".join(_code(value, longest) for value in call.arguments.values())


def _place(path: AnswerPath) -> list[tuple[int, str]]:
    """Return a sort key for paths, in which list items keep their order."""
    return [(step, "") if isinstance(step, int) else (-1, f".{step}") for step in path[2:]]


def _in_order(told: _ComparedMessages) -> list[AnswerPath]:
    """Return the calls of both messages in order. Calls of the first message come first."""
    found: list[AnswerPath] = []
    for message in (told.before, told.after):
        calls = dict.fromkeys(path.call for path in message if path.in_call)
        places = {call: place_of(message.get(call, "")) for call in calls}
        ordered = sorted((place or len(places), str(call), call) for call, place in places.items())
        found += [call for *_, call in ordered]
    # Add calls for which only a changed argument is known.
    return list(dict.fromkeys([*found, *(path.call for path in told.changes)]))


def _code_in(call: AnswerPath, message: Mapping[AnswerPath, str], told: _ComparedMessages) -> str:
    (found,) = list_calls({path: text for path, text in message.items() if path.call == call})
    return code_of(found, LONGEST_ON_PAGE if told.page else _LONGEST)


def _unknown(call: AnswerPath, told: _ComparedMessages) -> list[str]:
    return ["no such tool"] if told.tools and call.tool not in told.tools else []


def _notes(paths: Sequence[AnswerPath], told: _ComparedMessages) -> list[str]:
    """Return notes on changed paths: expected values and recorded calls."""
    return [*_expected(paths, told), *_by_label(paths, told)]


def _expected(paths: Iterable[AnswerPath], told: _ComparedMessages) -> list[str]:
    """Return notes such as ``expected 2`` for changed values, if the relation expects a value."""
    wanted = [
        (path, expected)
        for path in paths
        if path in told.changes and (expected := told.changes[path].expected) is not None
    ]
    alone = len(wanted) == 1
    return [
        visible(f"expected {one}" if alone else f"expected {path.argument or path} {one}")
        for path, one in wanted
    ]


def _by_label(paths: Iterable[AnswerPath], told: _ComparedMessages) -> list[str]:
    """Return notes on whether changed values match the recorded calls, each note only once."""
    known = {
        path: BY_LABEL[label]
        for path in paths
        if path in told.changes and (label := told.changes[path].by_label) is not None
    }
    texts = dict.fromkeys(known.values())
    if len(texts) < 2:
        return list(texts)
    return [visible(f"{path.argument or path} {text}") for path, text in known.items()]


def _code(value: object, longest: int) -> str:
    return shorten(canonical(value), longest)


def _arrow(span: Span) -> str:
    """Return a change as text. If one side is empty, there is no arrow."""
    return " -> ".join(filter(None, span))


def _joined(spans: Spans) -> Spans:
    """Return the spans of a diff with adjacent unchanged texts joined."""
    found: Spans = []
    for one in spans:
        if isinstance(one, str) and found and isinstance(found[-1], str):
            found[-1] += one
        elif one:
            found.append(one)
    return found


_PIECES: Final = re.compile(r"\s+|\S+")
#: The differences of two replies are marked if they have at least this share of words in common.
_ALIKE: Final = 0.5
#: Maximum number of words and blanks in a reply whose differences are marked.
_MOST_PIECES: Final = 1000
#: Maximum number of characters shown of a reply, and of the text next to a difference.
MOST_SAID: Final = 600
_MARGIN: Final = 100


def differences(before: str, after: str) -> tuple[Edit, ...]:
    """Return the edits that turn one reply into another, as whole words, the last edit first.

    If the replies have little in common or are very long, return no edits.

    >>> [(edit.before, edit.after) for edit in differences("It opens at nine.", "It opens at ten.")]
    [('nine.', 'ten.')]
    """
    old, new = _PIECES.findall(before), _PIECES.findall(after)
    if max(len(old), len(new)) > _MOST_PIECES:
        return ()
    matcher = SequenceMatcher(str.isspace, old, new, autojunk=False)
    kept = sum(_letters(old[at : at + size]) for at, _, size in matcher.get_matching_blocks())
    if kept < _ALIKE * max(_letters(old), _letters(new)):
        return ()
    starts = [0]
    for piece in old:
        starts.append(starts[-1] + len(piece))
    return tuple(
        Edit(
            "",
            "",
            starts[first],
            starts[last],
            "".join(old[first:last]),
            "".join(new[here:there]),
        )
        for kind, first, last, here, there in reversed(matcher.get_opcodes())
        if kind != "equal"
    )


def reply_lines(
    changes: Sequence[Difference], shown: str | None, own: Spread | None
) -> Iterator[tuple[str, str]]:
    """Yield pairs (label, text) that describe replies that changed.

    The text with the label ``replied`` is the new reply with marked differences. If the replies
    have little in common, the old reply follows with the label ``before``. It is left out if the
    caller has already ``shown`` it. The last label is ``differs`` or ``apart``. Its text is the
    reason why the reply counts as different.
    """
    for change in changes:
        before, after = _texts(change)
        # After redaction, two different replies may look the same.
        if before == after and change.expected is not None:
            yield "replied", f"the same again: {shorten(after, MOST_SAID)}"
            continue
        edits = differences(before, after)
        if edits:
            yield "replied", mark_edits(before, edits, margin=_MARGIN)
        else:
            if before != shown:
                yield "before", shorten(before, MOST_SAID)
            yield "replied", shorten(after, MOST_SAID)
        yield from why_lines(change, own)


def why_lines(change: Difference, own: Spread | None) -> Iterator[tuple[str, str]]:
    """Yield the reason why a reply counts as different. Also yield a verdict of the label."""
    if change.distance is not None:
        within = None if own is None else own.largest
        far = "" if within is None else f"; replies to the clean turn lie within {within:.2f}"
        yield "apart", f"{change.why or f'{change.distance:.2f}'}{far}"
    elif change.why:
        yield "differs", change.why
    if change.by_label is not None:
        yield "label", BY_LABEL[change.by_label]


def reply_pairs(
    turn: TurnResult, changes: Sequence[Difference]
) -> list[tuple[Spans, Spans, list[str]]]:
    """Return pairs of old and new reply for display, with reasons. Belief states have none.

    Marks show deleted text in the old reply, and inserted text in the new reply.
    """
    found: list[tuple[Spans, Spans, list[str]]] = []
    for change in () if turn.kind.words.values else changes:
        before, after = _texts(change)
        edits = differences(before, after)
        spans = mark_spans(before, edits)
        left: Spans = [one if isinstance(one, str) else Span(one.before, "") for one in spans]
        right: Spans = [one if isinstance(one, str) else Span("", one.after) for one in spans]
        why = [f"{name}: {visible(text)}" for name, text in why_lines(change, turn.own)]
        found.append((left, right if edits else [visible(after)], why))
    return found


def _texts(change: Difference) -> tuple[str, str]:
    return change.before or "", change.after or ""


def _letters(pieces: Sequence[str]) -> int:
    """Return the number of letters in the words of a text."""
    return sum(len(piece) for piece in pieces if not piece.isspace())
