"""Commands for a tracker and its data: evaluate, check-tracker, serve, fetch."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_dstfuzz.cli.command import (
    Command,
    ProgressLine,
    build_given_settings,
    load_data,
    print_page,
    terminal_page,
)
from pytest_dstfuzz.config import (
    ADAPTER,
    STATE,
    TRACKER_KEYS,
    Settings,
    identity_of,
    parse_option,
)
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.config.parsers import choice, integer
from pytest_dstfuzz.config.secret import PLAIN_VARIABLE
from pytest_dstfuzz.dialogue.normalise import NORMALISATIONS, check_normalisation
from pytest_dstfuzz.errors import UserError, needs_extra
from pytest_dstfuzz.json_data import json_encoded
from pytest_dstfuzz.printable import format_count, printable

if TYPE_CHECKING:
    from pytest_dstfuzz.comparisons.judge import Judges
    from pytest_dstfuzz.dialogue.dialogues import DialogueSet
    from pytest_dstfuzz.report.page import Style
    from pytest_dstfuzz.trackers.calls import CallEvaluation, CallJudge
    from pytest_dstfuzz.trackers.conformance import Conformance
    from pytest_dstfuzz.trackers.evaluate import Evaluation, InWordsOf
    from pytest_dstfuzz.trackers.replies import RepliedTurn, ReplyEvaluation, ReplyJudge

EXIT_FAILED = 1

_READ = ("data", "tools", "split", "domains", "slots")
_ASKED = ("model", "checkpoint", *_READ, "device", "batch_size")
_JUDGED = ("judge", "judge_model", "judge_prices", "judge_calls")
_REPLIES = ("outcome", "compare", "threshold", *_JUDGED, "cited", "fallback", "history")
_CALLS = ("call_order", "arguments")
_EVALUATED = (*_ASKED, "preflight_seconds", *_REPLIES, *_CALLS, *ADAPTER)
_CHECKED = (*_ASKED, "repeatable", *_REPLIES, *_CALLS, *ADAPTER)
_SERVED = ("checkpoint", "device", "batch_size", "outcome")
#: Status of a finding -> how the table shows it.
_SHOWN: dict[str, tuple[str, Style]] = {
    "passed": ("ok", "good"),
    "failed": ("FAIL", "bad"),
    "warned": ("warn", "warning"),
    "skipped": ("-", "dim"),
}
#: Warning if the server needs no token.
_OPEN = (
    "dstfuzz: warning: anyone who can reach {host} can use the tracker: add --token-env NAME to "
    "require the token in that environment variable"
)


def _dialogues(
    settings: Settings,
    turns: int | None = None,
    *,
    layout: str | None = None,
    normalisation: str | None = None,
) -> DialogueSet:
    # Imported late so that help and usage errors do not wait for numpy.
    from pytest_dstfuzz.dialogue.sampling import (  # noqa: PLC0415
        sample_set,
        with_history,
    )

    how = settings.data
    read = load_data(settings, layout=layout, normalisation=normalisation)
    data = with_history(read, settings.reply)
    return sample_set(data, turns, settings.variant.seed, how.domains)


def _slot_rules(settings: Settings, data: DialogueSet) -> InWordsOf | None:
    """Return the function that applies the rules for slots, or ``None`` without rules."""
    # Imported late, as above.
    from pytest_dstfuzz.comparisons.calls import comparison_of_states  # noqa: PLC0415
    from pytest_dstfuzz.comparisons.comparison import as_before  # noqa: PLC0415

    comparison = comparison_of_states(data, settings.reply)
    return None if comparison.exact else partial(as_before, comparison)


def _judge(settings: Settings, data: DialogueSet, judges: Judges) -> ReplyJudge | CallJudge | None:
    """Return the comparison with recorded replies or calls, or ``None`` for states."""
    from pytest_dstfuzz.kinds import KINDS  # noqa: PLC0415 - as above

    kind = KINDS[settings.reply.outcome]
    if kind.has_slots:
        return None
    if kind.has_tools:
        from pytest_dstfuzz.comparisons.calls import comparison_of_calls  # noqa: PLC0415 - as above
        from pytest_dstfuzz.comparisons.comparison import call_judge  # noqa: PLC0415 - as above

        return call_judge(comparison_of_calls(data, settings.reply))
    # Imported late, as above.
    from pytest_dstfuzz.comparisons.comparison import TextPair  # noqa: PLC0415
    from pytest_dstfuzz.comparisons.registry import comparison_by_name  # noqa: PLC0415
    from pytest_dstfuzz.dialogue.calls import REPLY  # noqa: PLC0415
    from pytest_dstfuzz.trackers.replies import ReplyJudge  # noqa: PLC0415

    comparison = comparison_by_name(settings.reply.compare, settings.reply, judges=judges)
    judges.reach()

    def agree(turns: Sequence[RepliedTurn]) -> list[bool]:
        pairs = [TextPair(REPLY, turn.recorded, turn.found, turn.context) for turn in turns]
        comparison.prepare(pairs)
        found = [comparison.compare(*pair) for pair in pairs]
        return [one.same and not one.unsure for one in found]

    return ReplyJudge(comparison.name, agree)


def _evaluate_options(parser: Parser) -> None:
    # Imported late so that `dstfuzz doctor` works if a required package is missing.
    from pytest_dstfuzz.dialogue.readers.registry import READERS  # noqa: PLC0415

    parser.shared(*_EVALUATED, required=("model",))
    parser.value(
        "--layout",
        choice("layout", READERS.single),
        "NAME",
        help=f"layout of the data: {', '.join(READERS.single)} (default: the first that "
        "has the split)",
    )
    parser.value(
        "--normalisation",
        check_normalisation,
        "NAME",
        help=f"normalisation of values before they are compared: {', '.join(NORMALISATIONS)} "
        "(default: plain for JSON Lines, otherwise multiwoz; multiwoz-codes changes only "
        "codes)",
    )
    parser.option("--json", action="store_true", help="print the figures as JSON")


def _evaluate(given: Namespace) -> None:
    # Imported late, as above.
    from pytest_dstfuzz.comparisons.judge import Judges  # noqa: PLC0415
    from pytest_dstfuzz.trackers.calls import CallJudge, evaluate_calls  # noqa: PLC0415
    from pytest_dstfuzz.trackers.evaluate import evaluate  # noqa: PLC0415
    from pytest_dstfuzz.trackers.registry import tracker_for  # noqa: PLC0415
    from pytest_dstfuzz.trackers.replies import evaluate_replies  # noqa: PLC0415
    from pytest_dstfuzz.trackers.validation import (  # noqa: PLC0415
        Deadline,
        bound_time,
        preflight,
    )

    settings = build_given_settings(given, _EVALUATED)
    data = _dialogues(settings, layout=given.layout, normalisation=given.normalisation)
    deadline = Deadline()
    with bound_time(deadline, settings.budget.preflight_seconds):
        tracker = tracker_for(settings, data, deadline=deadline)
        contexts = [dialogue.context(len(dialogue.turns) - 1) for dialogue in data.dialogues]
        preflight(
            tracker,
            contexts,
            ontology=data.ontology,
            deadline=deadline,
            outcome=settings.reply.outcome,
        )
    judges = Judges()
    judge, batch_size = _judge(settings, data, judges), settings.tracker.batch_size
    evaluation: Evaluation | ReplyEvaluation | CallEvaluation
    with closing(ProgressLine("turns predicted")) as progress:
        if judge is None:
            rules = _slot_rules(settings, data)
            evaluation = evaluate(tracker, data, batch_size, progress, rules)
        elif isinstance(judge, CallJudge):
            evaluation = evaluate_calls(tracker, data, judge, batch_size, progress)
        else:
            evaluation = evaluate_replies(tracker, data, judge, batch_size, progress)
    lines = [f"tracker               {settings.tracker.model}", *evaluation.lines()]
    if (facts := judges.facts) is not None and (count := facts.unsure + facts.past_budget):
        lines.append(f"undecided by a judge  {count:,}, which count as different")
    shown = [json.dumps(evaluation.to_json(), indent=2)] if given.json else lines
    print(printable("\n".join(shown)))


def _check_options(parser: Parser) -> None:
    parser.shared(*_CHECKED, required=("model",))
    parser.value(
        "--turns",
        lambda text: parse_option("turns", text, "--turns"),
        "N|all",
        help="number of turns to test, from dialogues drawn by the seed, or all (default: all)",
    )
    parser.option("--json", action="store_true", help="print the findings and figures as JSON")


def _check(given: Namespace) -> int:
    # Imported late, as above.
    from pytest_dstfuzz.comparisons.judge import Judges  # noqa: PLC0415
    from pytest_dstfuzz.trackers.conformance import check_tracker  # noqa: PLC0415
    from pytest_dstfuzz.trackers.registry import tracker_for  # noqa: PLC0415
    from pytest_dstfuzz.trackers.tracker import notes_of  # noqa: PLC0415

    settings = build_given_settings(given, _CHECKED)
    data, how = _dialogues(settings, given.turns), settings.tracker
    tracker = tracker_for(settings, data)
    with closing(ProgressLine("contexts predicted")) as progress:
        found = check_tracker(
            tracker,
            data,
            how.batch_size,
            lambda asked: progress(asked, None),
            repeatable=how.repeatable,
            outcome=settings.reply.outcome,
            judge=_judge(settings, data, Judges()),
        )
    about = {
        "tracker": str(how.model),
        "data": data.name,
        "split": data.split,
        "dialogues": len(data.dialogues),
        "turns": data.turn_count(),
        "notes": [*data.notes, *notes_of(tracker)],
    }
    if given.json:
        print(json.dumps({**about, **found.to_json()}, indent=2))
    else:
        _print_findings(about, found)
    return 0 if found.passed else EXIT_FAILED


def _print_findings(about: dict[str, Any], found: Conformance) -> None:
    page = terminal_page()
    sizes = (
        f"{format_count(about['dialogues'], 'dialogue')}, {format_count(about['turns'], 'turn')}"
    )
    where = f"{about['data']}, split {about['split']}: {sizes}"
    page.field("tracker      ", about["tracker"])
    page.field("data         ", where)
    for note in about["notes"]:
        page.field("note         ", note)
    page.gap()
    for finding in found.findings:
        word, style = _SHOWN[finding.status]
        page.field(f"  {word:<5} {finding.check:<15} ", finding.message, style)
        if finding.advice and finding.status != "passed":
            page.field(" " * 24, finding.advice)
    page.gap()
    rates = "   ".join(f"{size}: {rate:,.1f}" for size, rate in found.throughput.items())
    if rates:
        page.field("contexts per second by batch size ", rates)
    for name, figure in found.evaluation.figures() if found.evaluation else ():
        page.field(f"{name:<34}", figure)
    page.field("contexts predicted                ", f"{found.asked:,}")
    page.gap()
    page.line(found.headline(), "good" if found.passed else "bad")
    print_page(page)


def _serve_options(parser: Parser) -> None:
    parser.shared("model", "tracker", *_SERVED, required=("model",))
    host, port = "127.0.0.1", 8765
    parser.value(
        "--host", str, "HOST", default=host, help=f"address to listen on (default: {host})"
    )
    parser.value(
        "--port",
        integer(0, 65535),
        "PORT",
        default=port,
        help=f"port to listen on; 0 chooses a free port (default: {port})",
    )
    parser.value(
        "--token-env",
        str,
        "NAME",
        help="environment variable with a bearer token; the server refuses requests without this "
        "token. For pytest, set DSTFUZZ_TOKEN to the same token",
    )


def _serve(given: Namespace) -> None:
    name: str = given.model
    if "://" in name:
        raise UserError(f"{name} is already a service: test it with pytest --dst-model={name}")
    token = _token(given.token_env)
    with needs_extra("dstfuzz serve", "serve", "starlette", "uvicorn"):
        from pytest_dstfuzz.trackers.web.contract import About  # noqa: PLC0415 - needs the extra
        from pytest_dstfuzz.trackers.web.server import (  # noqa: PLC0415 - needs the extra
            address_of,
            is_loopback,
            listen,
            make_app,
            make_server,
        )
    # Imported late, as above.
    from pytest_dstfuzz.trackers.registry import resolve_tracker  # noqa: PLC0415
    from pytest_dstfuzz.trackers.tracker import says_repeatable  # noqa: PLC0415

    how = {key: value for key in _SERVED if (value := getattr(given, key)) is not None}
    keys = {key.name: key.read() for key in given.tracker or ()}
    for item in TRACKER_KEYS:
        if getattr(given, item.name, None) is not None:
            raise UserError(f"{item.flag} applies only to a service at an address, not to {name}")
    settings = Settings().replace_options(model=name, tracker=given.tracker or (), **how)
    decided = identity_of(settings, "tracker")
    with listen(given.host, given.port) as listening:
        tracker = resolve_tracker(name, keys=keys, **how)
        about = About(name, repeatable=says_repeatable(tracker))
        batch_size = how.get("batch_size", Settings().tracker.batch_size)
        app = make_app(
            tracker,
            about,
            batch_size=batch_size,
            token=token,
            host=given.host,
            outcome=how.get("outcome", STATE),
            mark=_mark(settings, decided, tracker),
        )
        if not (token or is_loopback(given.host)):
            print(_OPEN.format(host=given.host), file=sys.stderr, flush=True)
        print(f"{name} answers at {address_of(listening)} (Ctrl-C ends it)", flush=True)
        make_server(app).run(sockets=[listening])


def _mark(settings: Settings, decided: dict[str, Any], tracker: object) -> str:
    """Return a digest of the options and the code that a tracker was made with.

    It is ``""`` for a shipped tracker with the default options. ``decided`` is the identity of the
    options before the tracker was made, because it may read files that change.
    """
    # Imported late, as above.
    from pytest_dstfuzz.campaign.code import code_of_tracker  # noqa: PLC0415
    from pytest_dstfuzz.trackers.registry import factory_options_of  # noqa: PLC0415

    model = str(settings.tracker.model)
    plain = identity_of(Settings().replace_options(model=model), "tracker")
    found = {
        **{name: value for name, value in decided.items() if value != plain[name]},
        **factory_options_of(settings.tracker),
        **code_of_tracker(model, tracker),
    }
    return hashlib.sha256(json_encoded(found)).hexdigest()[:16] if found else ""


def _token(variable: str | None) -> str:
    if variable is None:
        return ""
    token = os.environ.get(variable, "").strip()
    if not token:
        if PLAIN_VARIABLE.fullmatch(variable):
            raise UserError(f"--token-env: the environment variable {variable!r} is not set")
        raise UserError(
            "--token-env: no environment variable has the given name, which may be the token "
            "and is not shown: give the name of a variable"
        )
    return token


def _fetch_options(parser: Parser) -> None:
    from pytest_dstfuzz.dialogue.load import DATASETS  # noqa: PLC0415 - keeps other commands fast

    parser.add_argument("name", metavar="NAME", help=f"data set: {', '.join(sorted(DATASETS))}")


def _fetch(given: Namespace) -> None:
    from pytest_dstfuzz.dialogue.load import fetch  # noqa: PLC0415 - as above

    shown: dict[str, ProgressLine] = {}

    def progress(file: str, received: int, size: int | None) -> None:
        shown.setdefault(file, ProgressLine(f"bytes of {file}"))(received, size)

    try:
        folder = fetch(given.name, progress=progress)
    finally:
        for line in shown.values():
            line.close()
    print(folder)


COMMANDS = (
    Command(
        "evaluate",
        "measure the accuracy of a tracker or bot against the labels",
        "no results were saved",
        """\
  dstfuzz evaluate --model trade                         on the shipped dialogues
  dstfuzz evaluate --model trade --data multiwoz21 --split val
  dstfuzz evaluate --model trade --data MultiWOZ_2.1 --layout original
  dstfuzz evaluate --model mybot.tracker:track --data conversations.jsonl --json
  dstfuzz evaluate --model my_bot:reply --outcome reply --data questions.jsonl""",
        _evaluate_options,
        _evaluate,
        about="Print the joint goal accuracy, the slot accuracy and figures by domain of a\n"
        "tracker. With --outcome reply, print how many replies agree with the recorded ones.",
    ),
    Command(
        "check-tracker",
        "check whether a tracker can be tested, and report its problems",
        "no results were saved",
        """\
  dstfuzz check-tracker --model my_bot:track             on the shipped dialogues
  dstfuzz check-tracker --model my_bot:track --data conversations.jsonl
  dstfuzz check-tracker --model http://localhost:8000 --turns 100 --json
  dstfuzz check-tracker --model my_bot:reply --outcome reply --data questions.jsonl
It exits with 0 if all checks passed (a warning is not a failure), with 1 if a check failed, and
with 2 if the tracker cannot be loaded.""",
        _check_options,
        _check,
        about="Test a tracker with clean and unusual dialogues, singly, in batches and in other\n"
        "orders, and print problems of its answers with advice.",
    ),
    Command(
        "serve",
        "serve a tracker over HTTP, so that it can be tested from another machine",
        "all received requests were answered",
        """\
  dstfuzz serve --model trade --tracker device=cuda --host 0.0.0.0 --token-env SERVE_TOKEN
  dstfuzz serve --model mybot.tracker:track --port 9000
  dstfuzz serve --model my_bot:reply --outcome reply     for --dst-outcome=reply
  dstfuzz serve --model my_bot:answer --outcome tool-calls
  pytest --dst-model=http://127.0.0.1:9000               tests the served tracker""",
        _serve_options,
        _serve,
    ),
    Command(
        "fetch",
        "download a version of MultiWOZ to the cache folder, and verify it",
        "downloaded parts are kept, and the same command continues the download",
        """\
  dstfuzz fetch multiwoz21
  pytest --dst-model=trade --dst-data=multiwoz21         uses the downloaded data""",
        _fetch_options,
        _fetch,
        about="Download a named data set from its publisher. The cache folder is\n"
        "$DSTFUZZ_CACHE, or else 'dstfuzz' in the user's cache folder.",
    ),
)
