"""``dstfuzz relations``: list the relations, each with the share of turns it applies to."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pytest_dstfuzz.cli.command import (
    Command,
    build_given_settings,
    load_data,
    print_page,
    terminal_page,
)
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.config.options import OUTCOMES
from pytest_dstfuzz.config.parsers import percent
from pytest_dstfuzz.dialogue.calls import REPLY
from pytest_dstfuzz.errors import UserError

if TYPE_CHECKING:
    from pytest_dstfuzz.config import Settings
    from pytest_dstfuzz.dialogue.calls import OutcomeKind
    from pytest_dstfuzz.dialogue.dialogues import DialogueSet
    from pytest_dstfuzz.relations.relation import Relation
    from pytest_dstfuzz.report.page import TerminalPage

_READ: Final = (
    "data",
    "split",
    "domains",
    "slots",
    "lock",
    "outcome",
    "tools",
)
_EXAMPLES = """\
  dstfuzz relations                                      all relations
  dstfuzz relations drop                                 one, with its edits and conditions
  dstfuzz relations --data multiwoz21                    to how many turns each applies
  dstfuzz relations value-swap --data multiwoz21         and why it does not apply to others
No tracker is called: with --data, the labels take the place of its answers. To see to which
answers of a tracker a relation applies, run pytest with --dst-relation."""

_OWN: Final = (
    "This command reads no conftest.py. If yours registers a relation, count the turns to which it "
    "applies with pytest_dstfuzz.testing.check_relation()."
)


def _options(parser: Parser) -> None:
    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="name of a relation, or several names such as a,b; keys are written as for "
        "--dst-relation",
    )
    parser.shared(*_READ)


def _show(given: Namespace) -> None:
    # Imported late so that help and usage errors do not wait for numpy.
    from pytest_dstfuzz.relations.registry import RELATIONS, relations_named  # noqa: PLC0415

    settings = build_given_settings(given, _READ)
    if given.name is not None:
        settings = settings.replace_options(relation=given.name)
        given.name = settings.variant.relation
    data = None
    if given.data is not None:
        from pytest_dstfuzz.dialogue.paraphrases import with_paraphrases  # noqa: PLC0415
        from pytest_dstfuzz.dialogue.sampling import sample_set  # noqa: PLC0415
        from pytest_dstfuzz.relations.sources import with_frozen  # noqa: PLC0415

        how = settings.data
        data = load_data(settings)
        data = with_frozen(with_paraphrases(data, how.tools_paraphrase), how.frozen)
        data = sample_set(data, None, settings.variant.seed, how.domains)
    problems: list[str] = []
    if given.name is None:
        every = _every(problems)
        # If data are given, show only the relations for the tested kind of answer.
        relations = tuple(one for one in every if not data or settings.reply.outcome in one.on)
    else:
        try:
            relations = relations_named(given.name)
        except UserError as error:
            if {name.strip() for name in given.name.split(",")}.issubset(RELATIONS.names):
                raise
            raise UserError(f"{error} {_OWN}") from None
    counts = [_counts(one, data, settings) for one in relations] if data else []
    page = terminal_page()
    if given.name is None:
        _table(page, relations, counts)
    else:
        for number, relation in enumerate(relations):
            outcome = settings.reply.outcome
            kind = outcome if outcome in relation.on else relation.on[0]
            _one(page, relation, counts[number] if counts else None, kind)
    if data:
        page.gap()
        page.field("", _counted(data, settings.reply.outcome))
    for problem in problems:
        page.field("", problem, "warning")
    print_page(page)


def _every(problems: list[str]) -> list[Relation]:
    """Return all relations. If those of other packages fail to load, add to ``problems``."""
    from pytest_dstfuzz.relations.registry import RELATIONS, relation_by_name  # noqa: PLC0415 - as above

    found = []
    for name in RELATIONS.single:
        try:
            found.append(relation_by_name(name))
        except UserError as error:
            problems.append(str(error))
    return found


def _counts(relation: Relation, data: DialogueSet, settings: Settings) -> Counter[str] | str:
    """Count turns by the reason why a relation does not apply to them; ``""`` if it applies.

    If the relation cannot apply to any turn of the data, return a sentence with the reason.
    """
    from pytest_dstfuzz.kinds import KINDS  # noqa: PLC0415 - as above
    from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon  # noqa: PLC0415 - as above
    from pytest_dstfuzz.perturb.locks import Locks  # noqa: PLC0415 - as above
    from pytest_dstfuzz.relations.checks import reasons_by_label  # noqa: PLC0415 - as above
    from pytest_dstfuzz.relations.relation import Scenes  # noqa: PLC0415 - as above

    if why := relation.impossible(data):
        return why
    lexicon, reply = load_lexicon(), settings.reply
    guards = Locks.of(lexicon, data.ontology, data.cue_words, settings.variant.lock)
    # Recorded replies serve if there are no belief states.
    direct = KINDS[reply.outcome].has_exact_labels or not _has_states(data)
    scenes = Scenes(data, lexicon, guards, 0, reply if direct else None)
    return Counter(reasons_by_label(relation, data, scenes))


def _has_states(data: DialogueSet) -> bool:
    return any(all(turn.state is not None for turn in one.turns) for one in data.dialogues)


def _table(
    page: TerminalPage, relations: Sequence[Relation], counts: Sequence[Counter[str] | str]
) -> None:
    from pytest_dstfuzz.relations.registry import name_outcomes  # noqa: PLC0415 - as above

    figures = ["applicable", "of", "share"] if counts else []
    rows = [["relation", "side", "edits", *figures, "tests"]]
    for number, relation in enumerate(relations):
        edited = relation.unit if relation.edits == "own" else "search"
        row = [relation.name, relation.side, edited]
        if counts:
            row += _figures(counts[number])
        every = len(relation.on) == len(OUTCOMES)
        rows.append([*row, "all" if every else name_outcomes(relation)])
    page.table(rows)
    for relation, found in zip(relations, counts, strict=False):
        if isinstance(found, str):
            page.field(f"  {relation.name}: ", found)


def _figures(found: Counter[str] | str) -> list[str]:
    if isinstance(found, str):
        return ["-", "-", "-"]
    total = found.total()
    if not total:
        return ["-", "-", "-"]
    return [f"{found['']:,}", f"{total:,}", percent(found[""] / total, 1)]


def _one(
    page: TerminalPage, relation: Relation, found: Counter[str] | str | None, kind: OutcomeKind
) -> None:
    from pytest_dstfuzz.kinds import KINDS  # noqa: PLC0415 - as above
    from pytest_dstfuzz.relations.registry import name_outcomes  # noqa: PLC0415 - as above

    page.gap()
    page.line(relation.name, "heading")
    by = f"it edits the {relation.unit}" if relation.edits == "own" else "the search edits the turn"
    said = [
        ("side", f"{relation.side}; {by}"),
        ("of", name_outcomes(relation)),
        ("expects", KINDS[kind].words.fill(relation.expects)),
        ("words", relation.source or "none"),
    ]
    for head, text in said:
        page.field(f"  {head:<9}", text)
    if isinstance(found, str):
        page.field("  applies  ", f"to no turn of the data: {found}")
    elif found is None:
        page.line("  does not apply if")
        for reason in relation.reasons:
            page.field("    - ", reason)
    elif not found:
        labels = KINDS[kind].words.labels
        page.field(
            "  applies  ", f"to an unknown number of {relation.unit}s: they have no {labels}"
        )
    else:
        applicable, total, share = _figures(found)
        page.field("  applies  ", f"to {applicable} of {total} {relation.unit}s ({share})")
        _reasons(page, relation, found)


def _reasons(page: TerminalPage, relation: Relation, found: Counter[str]) -> None:
    """Add a table with the number of turns that each reason excludes and the remaining turns."""
    left = found.total()
    listed = [reason for reason in relation.reasons if found[reason]]
    others = sorted(reason for reason in found if reason and reason not in relation.reasons)
    rows = [["  does not apply if (in the order of the checks)", "turns", "left"]]
    for reason in (*others, *listed):
        left -= found[reason]
        rows.append([f"  {reason}", f"{found[reason]:,}", f"{left:,}"])
    if len(rows) > 1:
        page.table(rows)


def _counted(data: DialogueSet, outcome: OutcomeKind) -> str:
    named = f"{data.name} (split {data.split})"
    # Imported late, as above.
    from pytest_dstfuzz.kinds import KINDS  # noqa: PLC0415

    calls = (turn.calls is not None for one in data.dialogues for turn in one.turns)
    if KINDS[outcome].has_tools and any(calls):
        return f"Counted over {named}, with the recorded calls in place of the assistant's."
    if _has_states(data):
        return f"Counted over {named}, with the labels in place of the tracker's answers."
    label = KINDS[outcome].label
    recorded = (
        all(label(one, turn.index) is not None for turn in one.turns) for one in data.dialogues
    )
    if outcome == REPLY and any(recorded):
        return f"Counted over {named}, with the recorded replies in place of the bot's."
    return (
        f"{named} has no dialogue with a label at each turn, so nothing was counted. Without "
        "labels, only a run can count, by the answers of a tracker: pytest --dst-model=ADDRESS "
        "--dst-relation=all --dst-turns=20 --dst-fail-on=gate"
    )


COMMANDS = (
    Command(
        name="relations",
        summary="list the relations, each with the share of your data that it applies to",
        kept="nothing was written",
        examples=_EXAMPLES,
        options=_options,
        work=_show,
    ),
)
