"""``dstfuzz check-data``: show how the package reads a file of dialogues."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from pytest_dstfuzz.cli.command import (
    Command,
    build_given_settings,
    load_data,
    print_page,
    terminal_page,
)
from pytest_dstfuzz.config import TOOL_CALLS
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.config.parsers import percent

if TYPE_CHECKING:
    from pytest_dstfuzz.config import VariantSettings
    from pytest_dstfuzz.dialogue.dialogues import DialogueSet
    from pytest_dstfuzz.kinds.kind import AnswerKind
    from pytest_dstfuzz.report.page import TerminalPage

_READ: Final = ("data", "tools", "split", "slots", "lock", "outcome", "seed")
#: Maximum number of tools, and of slots, that are listed by name.
_LISTED: Final = 12
_HEAD: Final = 12
_EXAMPLES = """\
  dstfuzz check-data conversations.jsonl                 your own dialogues
  dstfuzz check-data sgd/test.zip --outcome tool-calls   with the schema as tools
  dstfuzz check-data multiwoz21 --outcome state          belief states
No assistant is called."""


def _options(parser: Parser) -> None:
    # Imported late, as below.
    from pytest_dstfuzz.dialogue.readers.registry import find_readers, forms  # noqa: PLC0415

    listed = "\n".join(f"  {line}" for line in forms(find_readers()))
    parser.description = f"{parser.description}\n\nknown layouts:\n{listed}"
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="file of dialogues (can also be given as --data)"
    )
    parser.shared(*_READ)


def _check(given: Namespace) -> None:
    # Imported late so that help and usage errors do not wait for numpy.
    from pytest_dstfuzz.dialogue.load import shape_of_data  # noqa: PLC0415
    from pytest_dstfuzz.kinds import KINDS  # noqa: PLC0415

    given.data = given.file or given.data
    given.outcome = given.outcome or TOOL_CALLS
    settings = build_given_settings(given, _READ)
    how, outcome = settings.data, settings.reply.outcome
    data = load_data(settings)
    page = terminal_page()
    kind = KINDS[outcome]
    if kind.has_tools and _is_of_states(data):
        kind = KINDS["state"]
    page.line(f"{data.name}, split {data.split}, layout {data.layout!r}", "heading")
    _field(page, "found", shape_of_data(how.data))
    _dialogues(page, data)
    _speakers(page, data)
    _tools(page, data)
    _labels(page, data, kind)
    _locks(page, data, kind, settings.variant.lock)
    _reach(page, data, kind, settings.variant)
    for note in data.notes:
        page.field(f"  {'note':<{_HEAD}}", note, "warning")
    print_page(page)


def _is_of_states(data: DialogueSet) -> bool:
    """Return whether the labels of the data are belief states, never tool calls."""
    calls = any(turn.calls is not None for turn in data.turns())
    return not calls and any(turn.state is not None for turn in data.turns())


def _field(page: TerminalPage, head: str, text: str) -> None:
    page.field(f"  {head:<{_HEAD}}", text)


def _several(number: int, noun: str) -> str:
    return f"{number:,} {noun if number == 1 else f'{noun}s'}"


def _dialogues(page: TerminalPage, data: DialogueSet) -> None:
    counts = data.lengths
    mean = sum(counts) / len(counts)
    ids = ", ".join(dialogue.id for dialogue in data.dialogues[:3])
    more = ", ..." if len(counts) > 3 else ""
    _field(page, "dialogues", f"{len(counts):,}, called {ids}{more}")
    spread = f"{min(counts)} to {max(counts)} per dialogue, {mean:.1f} on average"
    _field(page, "turns", f"{sum(counts):,} in all, {spread}")


def _speakers(page: TerminalPage, data: DialogueSet) -> None:
    """Add the number of messages by role. The user speaks at each turn."""
    from pytest_dstfuzz.dialogue.messages import decode_message  # noqa: PLC0415 - as above

    roles: Counter[str] = Counter({"user": data.turn_count()})
    for dialogue in data.dialogues:
        for turn in dialogue.turns:
            if turn.recorded is None:
                roles["assistant"] += bool(turn.system)
        blocks = (turn.recorded or () for turn in dialogue.turns)
        for text in chain(*blocks, dialogue.closing):
            message = decode_message(text)
            kind = " with calls" if message.calls else ""
            roles[f"{message.role}{kind}" if message.role != "user" else "user without text"] += 1
    said = ", ".join(f"{role} {count:,}" for role, count in roles.items() if count)
    _field(page, "speakers", said)
    if not roles["assistant"]:
        _field(
            page,
            "",
            "no messages of the assistant, so the bot gets each turn without earlier replies",
        )


def _tools(page: TerminalPage, data: DialogueSet) -> None:
    # Imported late, as above.
    from pytest_dstfuzz.dialogue.ontology import iterate_recorded_calls  # noqa: PLC0415

    tools = {tool.name: tool for tool in data.tools}
    calls = Counter(
        call.name for dialogue in data.dialogues for call in iterate_recorded_calls(dialogue)
    )
    without = sum(not dialogue.tools for dialogue in data.dialogues)
    if not tools and not calls:
        _field(page, "tools", "none: the assistant uses its own tools")
        return
    lacking = f"; {_several(without, 'dialogue')} without tools" if without else ""
    if not tools:
        lacking = "; no tools: add them with --tools FILE if the bot has none"
    _field(page, "tools", f"{len(tools):,}, {_several(calls.total(), 'call')}{lacking}")
    rows = [["tool", "arguments", "required", "calls"]]
    names = sorted({*tools, *calls}, key=lambda name: (-calls[name], name))
    for name in names[:_LISTED]:
        schema = tools[name].schema if name in tools else {}
        properties, required = schema.get("properties") or {}, schema.get("required")
        needed = len(required) if isinstance(required, list) else 0
        shown = [f"{len(properties):,}", f"{needed:,}"] if name in tools else ["?", "?"]
        rows.append([name, *shown, f"{calls[name]:,}"])
    page.table(rows)
    if len(names) > _LISTED:
        _field(page, "", f"and {len(names) - _LISTED} more")


def _labels(page: TerminalPage, data: DialogueSet, kind: AnswerKind) -> None:
    turns = data.turn_count()
    if not kind.words.values:
        places = ((one, turn.index) for one in data.dialogues for turn in one.turns)
        count = sum(kind.label(*place) is not None for place in places)
        _field(page, "replies", f"recorded for {count:,} of {_several(turns, 'turn')}")
        return
    known = Counter(bool(turn.calls) for turn in data.turns() if turn.calls is not None)
    if known:
        unknown = turns - known.total()
        text = f"recorded after {_several(known[True], 'turn')}, none after {known[False]:,}"
        text += f", unknown for {unknown:,}" if unknown else ""
        _field(page, "calls", text)
    states = sum(turn.state is not None for turn in data.turns())
    if states:
        slots = {slot for turn in data.turns() for slot in turn.state or ()}
        text = f"{states:,} of {turns:,} turns, with {_several(len(slots), 'slot')}"
        _field(page, "states", text)
    if not known and not states:
        _field(
            page, "labels", "none: answers are compared only with the answers to the clean turns"
        )


def _locks(page: TerminalPage, data: DialogueSet, kind: AnswerKind, user: tuple[str, ...]) -> None:
    # Imported late, as above.
    from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon  # noqa: PLC0415
    from pytest_dstfuzz.relations.checks import lock_share  # noqa: PLC0415

    known = data.ontology.values if data.ontology is not None else {}
    count = sum(map(len, known.values()))
    source = f"{_several(count, 'known value')} of {_several(len(known), 'slot')}, "
    always = "and dates, numbers, names, negations and cue words in each utterance"
    _field(page, "locked", f"{source if count else ''}{always}")
    found = lock_share(data, kind, load_lexicon(), user)
    if not found.values:
        return
    share = percent(found.said / found.values, 1)
    text = (
        f"{share} of {_several(found.values, 'value')} in the labels of "
        f"{_several(found.turns, 'turn')} occur word for word in the user's utterances "
        f"({found.here:,} in that turn, {found.before:,} before)"
    )
    if found.said:
        text += (
            f"; {percent(found.locked / found.said, 1)} of these are locked, and "
            f"{percent(found.by_form / found.said, 1)} would be locked by their form alone"
        )
    _field(page, "calibration", text)
    if found.loose:
        loose = ", ".join(f"{slot} {number:,}" for slot, number in found.loose.most_common(_LISTED))
        page.field(f"  {'not locked':<{_HEAD}}", f"{loose}: add words with --dst-lock", "warning")


#: The words that are never mistyped are counted in at most about this many turns. Long turns take a
#: tenth of a second each.
_COUNTED: Final = 100


def _reach(
    page: TerminalPage, data: DialogueSet, kind: AnswerKind, settings: VariantSettings
) -> None:
    """Add the words of users that are never mistyped, with the reasons.

    The tracker is not asked. Values that are locked only because of a tracker's answer therefore
    count as unlocked.
    """
    # Imported late, as above.
    from pytest_dstfuzz.campaign.figures import ReachTally  # noqa: PLC0415
    from pytest_dstfuzz.perturb.engine import Perturber  # noqa: PLC0415
    from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon  # noqa: PLC0415
    from pytest_dstfuzz.report.weaknesses import reach_text  # noqa: PLC0415

    perturber, tally = Perturber.of(settings, data, load_lexicon()), ReachTally()
    step = -(-data.turn_count() // _COUNTED) or 1
    for turn in islice(data.turns(), 0, None, step):
        source = perturber.prepare(turn.user, kind.locked_values(data, turn, None), turn.system)
        tally.add_words(len(source.words), perturber.unreached(source))
    found = tally.reach
    if found is not None and found.unreached:
        _field(page, "no slips", reach_text(found))


COMMANDS = (
    Command(
        name="check-data",
        summary="show how your dialogues, tools and labels are read",
        kept="nothing was written",
        examples=_EXAMPLES,
        options=_options,
        work=_check,
        about="Read dialogues and print their speakers, tools and labels. Also print how many\n"
        "values of the labels are locked in the users' utterances, so that no edit changes\n"
        "them.",
    ),
)
