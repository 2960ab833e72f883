"""Commands for stored violations and reports: list, accept, retire, promote, report."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pytest_dstfuzz.cli.command import Command, print_page, terminal_page
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.printable import format_count, printable

if TYPE_CHECKING:
    from pytest_dstfuzz.regressions.regression import Corpus, Regression
    from pytest_dstfuzz.report.page import TerminalPage


_STATES = ("open", "accepted")


def _list_options(parser: Parser) -> None:
    _ids(parser, "*")
    parser.option("--status", choices=_STATES, help="show only violations with this status")
    parser.option(
        "--weakness",
        metavar="ID",
        help="show only violations of the weakness with this id, or with this beginning of its id",
    )
    _folder(parser)


def _accept_options(parser: Parser) -> None:
    parser.add_argument(
        "id",
        metavar="ID",
        help="id of a violation, of a weakness, or of a turn, or the beginning of the id",
    )
    parser.option("--reason", metavar="TEXT", required=True, help="why the violation is acceptable")
    _folder(parser)


def _retire_options(parser: Parser) -> None:
    _ids(parser)
    _folder(parser)


def _promote_options(parser: Parser) -> None:
    _ids(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="PATH",
        help="add the tests to this file; it is created if it does not exist",
    )
    _folder(parser)


def _ids(parser: Parser, count: str = "+") -> None:
    parser.add_argument(
        "ids", metavar="ID", nargs=count, help="id of a violation, or the beginning of the id"
    )


def _folder(parser: Parser) -> None:
    parser.option(
        "--regressions",
        type=Path,
        metavar="PATH",
        default=Path(".dstfuzz", "regressions"),
        help="folder of the remembered violations (default: .dstfuzz/regressions)",
    )


def _accept(given: Namespace) -> None:
    # Imported late so that help and usage errors do not wait for numpy.
    from pytest_dstfuzz.regressions.regression import (  # noqa: PLC0415
        accept_turn,
        accept_violation,
        accept_weakness,
        full_id,
        update_corpus,
    )

    corpora = _read_corpora(given.regressions)
    weaknesses, turns = _named_by(corpora, "weakness"), _named_by(corpora, "turn")
    violations = {name for corpus in corpora.values() for name in corpus}
    name = full_id({*violations, *weaknesses, *turns}, given.id)
    if name in turns:
        for path in turns[name]:
            update_corpus(path, partial(accept_turn, turn=name, reason=given.reason))
            print(printable(f"accepted the violations at turn {name} in {path}"))
        return
    if name not in weaknesses:
        for path in _find_ids(corpora, [name]):
            update_corpus(path, partial(accept_violation, name=name, reason=given.reason))
            print(printable(f"accepted {name} in {path}"))
        return
    for path in weaknesses[name]:
        _, after = update_corpus(path, partial(accept_weakness, weakness=name, reason=given.reason))
        count = sum(entry.weakness == name for entry in after.values())
        print(
            printable(f"accepted the weakness {name} in {path}: {format_count(count, 'violation')}")
        )
    print("violations of this weakness in later builds are accepted too, at any turn and slot")


def _retire(given: Namespace) -> None:
    # Imported late, as above.
    from pytest_dstfuzz.regressions.regression import update_corpus, without  # noqa: PLC0415

    for path, names in _find_ids(_read_corpora(given.regressions), given.ids).items():
        update_corpus(path, partial(without, names=names))
        for name in names:
            print(printable(f"retired {name} from {path}"))


def _promote(given: Namespace) -> None:
    """Write tests to a file, or to the terminal if no file is given."""
    # The lines of a JSON Lines file may be valid Python, so check the name of the file.
    if given.output is not None and given.output.suffix != ".py":
        raise UserError(f"{given.output} is not a Python file: its name must end in .py")
    corpora = _read_corpora(given.regressions)
    found = _find_ids(corpora, given.ids)
    # If a violation is stored for several data sets, its test is always the same.
    chosen = {name: corpora[path][name] for path, names in found.items() for name in names}
    if given.output is None:
        # Imported late, as above.
        from pytest_dstfuzz.regressions.promote import write_all_promoted  # noqa: PLC0415

        sys.stdout.write(write_all_promoted(chosen.values()))
        return
    _add(given.output, list(chosen.values()))
    print(printable(str(given.output)))


def _add(output: Path, chosen: Sequence[Regression]) -> None:
    """Add tests to a file. Other commands may write to it at the same time."""
    # Imported late, as above.
    from pytest_dstfuzz.files import lock_file, read_text, write_text  # noqa: PLC0415
    from pytest_dstfuzz.regressions.promote import write_all_promoted  # noqa: PLC0415

    with lock_file(output):
        existing = read_text(output, "file of tests") if output.exists() else ""
        try:
            text = write_all_promoted(chosen, existing)
        except UserError as error:
            raise UserError(f"{output}: {error}") from None
        write_text(output, text)


def _list(given: Namespace) -> None:
    from pytest_dstfuzz.regressions.regression import full_id  # noqa: PLC0415 - as above

    page = terminal_page()
    corpora = _read_corpora(given.regressions)
    weakness = (
        None
        if given.weakness is None
        else full_id(_named_by(corpora, "weakness"), given.weakness, "weakness")
    )
    wanted = (
        _find_ids(corpora, given.ids)
        if given.ids
        else {path: list(corpora[path]) for path in corpora}
    )
    for path, names in wanted.items():
        entries = [corpora[path][name] for name in names]
        if weakness is not None:
            entries = [entry for entry in entries if entry.weakness == weakness]
        shown = [entry for entry in entries if given.status in (None, entry.status)]
        page.gap()
        page.line(f"{path}: {_states(entries)}")
        for name, group in _by_weakness(shown):
            page.gap()
            page.line(f"{name or 'unknown weakness'} ({_states(group)})", "heading")
            for entry in group:
                _show(page, entry, whole=bool(given.ids))
    print_page(page)


def _states(entries: Sequence[Regression]) -> str:
    accepted = sum(entry.status == "accepted" for entry in entries)
    return f"{len(entries) - accepted} open, {accepted} accepted"


def _by_weakness(entries: Sequence[Regression]) -> list[tuple[str, list[Regression]]]:
    """Group violations by the id of their weakness. Violations without one come last."""
    groups: dict[str, list[Regression]] = {}
    for entry in entries:
        groups.setdefault(entry.weakness, []).append(entry)
    return sorted(groups.items(), key=lambda item: (not item[0], item[0]))


def _named_by(
    corpora: Mapping[Path, Corpus], part: Literal["weakness", "turn"]
) -> dict[str, list[Path]]:
    """Map each weakness or turn to the files that store its violations."""
    found: dict[str, list[Path]] = {}
    for path, corpus in corpora.items():
        for name in sorted({getattr(entry, part) for entry in corpus.values()} - {""}):
            found.setdefault(name, []).append(path)
    return found


def _show(page: TerminalPage, entry: Regression, *, whole: bool) -> None:
    if whole:
        page.gap()
    page.field(f"{entry.id}  {entry.status:<8}  ", f"{entry.turn}  {entry.done}")
    for line in entry.lines_of(entry.changed):
        page.field(" " * 22, line)
    if entry.reason:
        page.field(" " * 22, f"accepted: {entry.reason}")
    for who, text in entry.told if whole else ():
        page.field(f"  {f'{who}:':<8} ", text)


def _read_corpora(folder: Path) -> dict[Path, Corpus]:
    """Return the stored violations of each data set's file."""
    # Imported late so that help and usage errors do not wait for numpy.
    from pytest_dstfuzz.regressions.regression import read_corpus  # noqa: PLC0415

    paths = sorted(folder.glob("*.jsonl"))
    if not paths:
        raise UserError(
            f"no remembered violations in {folder}: write some with pytest --dst-remember, or "
            "name another folder with --regressions PATH"
        )
    return {path: read_corpus(path) for path in paths}


def _find_ids(corpora: Mapping[Path, Corpus], starts: Sequence[str]) -> dict[Path, list[str]]:
    """Return the ids in each file that begin with one of ``starts``. Files may share an id."""
    from pytest_dstfuzz.regressions.regression import full_id  # noqa: PLC0415 - as above

    known = {name for corpus in corpora.values() for name in corpus}
    names = dict.fromkeys(full_id(known, start) for start in starts)
    found = {path: [name for name in names if name in one] for path, one in corpora.items()}
    return {path: ids for path, ids in found.items() if ids}


def _report_options(parser: Parser) -> None:
    parser.add_argument(
        "report", type=Path, metavar="REPORT", help="JSON report, as written by pytest --dst-report"
    )
    parser.option("--html", type=Path, metavar="PATH", help="write an HTML page to this file")
    parser.option(
        "--markdown", type=Path, metavar="PATH", help="write a Markdown summary to this file"
    )


def _report(given: Namespace) -> None:
    if given.html is None and given.markdown is None:
        raise UserError(
            "nothing to write: add --html PATH, --markdown PATH, or both (see dstfuzz report "
            "--help)"
        )
    # Imported late so that help and usage errors do not wait for numpy.
    from pytest_dstfuzz.files import check_apart, write_text  # noqa: PLC0415
    from pytest_dstfuzz.report.github import markdown_text  # noqa: PLC0415
    from pytest_dstfuzz.report.html import check_installed, write_html  # noqa: PLC0415
    from pytest_dstfuzz.report.json_report import read_report  # noqa: PLC0415
    from pytest_dstfuzz.report.view import views_of  # noqa: PLC0415

    if given.html is not None:
        check_installed()
    written = {"--html": given.html, "--markdown": given.markdown}
    check_apart(written, {"the report": given.report})
    views = views_of(read_report(given.report))
    if given.html is not None:
        write_html(given.html, views)
        print(printable(str(given.html)))
    if given.markdown is not None:
        write_text(given.markdown, markdown_text(views))
        print(printable(str(given.markdown)))


COMMANDS = (
    Command(
        "report",
        "make an HTML page or a Markdown summary from a JSON report",
        "existing files are unchanged",
        """\
  pytest --dst-model=trade --dst-report=report.json      writes the JSON report
  dstfuzz report report.json --html report.html          a page in a single file
  dstfuzz report report.json --markdown summary.md       for a job summary""",
        _report_options,
        _report,
        about="Make an HTML page or a Markdown summary from a JSON report.",
    ),
    Command(
        "regressions",
        "list the remembered violations, or show some",
        "nothing was written",
        """\
  dstfuzz regressions                                    all, one per line
  dstfuzz regressions --status open                      those that fail the build
  dstfuzz regressions --weakness call-dropped            those of one weakness
  dstfuzz regressions 3f2a                               one with its utterances and changes""",
        _list_options,
        _list,
    ),
    Command(
        "accept",
        "accept remembered violations or a weakness, so that they do not fail the build",
        "the regressions are unchanged",
        """\
  dstfuzz accept 3f2a9c0b1d --reason 'nobody types this to our bot'
  dstfuzz accept DSF0022-t0 --reason 'cut short'         all violations at a turn
  dstfuzz accept value-made-up --reason 'we ask again'   a whole weakness, also in later builds""",
        _accept_options,
        _accept,
    ),
    Command(
        "retire",
        "remove remembered violations that are fixed",
        "the violations listed above are retired, the others are unchanged",
        """\
  dstfuzz retire 3f2a9c0b1d 77aa01c2de                   ids that pytest lists as fixed""",
        _retire_options,
        _retire,
    ),
    Command(
        "promote",
        "write a pytest test for a remembered violation",
        "existing files are unchanged",
        """\
  dstfuzz promote 3f2a9c0b1d                             prints the test
  dstfuzz promote 3f2a 77aa -o tests/test_students.py    adds two tests to a file""",
        _promote_options,
        _promote,
    ),
)
