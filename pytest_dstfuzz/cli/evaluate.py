"""``dstfuzz evaluate``: how often a tracker is right by the labels."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pytest_dstfuzz.cli.progress import ProgressLine
from pytest_dstfuzz.config import ADAPTER, Settings, build_settings
from pytest_dstfuzz.config.command_line import Parser, one_of
from pytest_dstfuzz.dialogue.choose import LAYOUTS
from pytest_dstfuzz.dialogue.normalise import NORMALISATIONS, check_normalisation
from pytest_dstfuzz.printable import printable

SUMMARY = "joint goal accuracy, slot accuracy and figures by domain of a tracker"
KEPT = "nothing was kept"

_SHARED = (
    *("model", "checkpoint", "data", "split", "domains", "slots", "device", "batch_size"),
    *("preflight_seconds", *ADAPTER),
)
_EXAMPLES = """\
  dstfuzz evaluate --model trade                         on the shipped dialogues
  dstfuzz evaluate --model trade --data multiwoz21 --split val
  dstfuzz evaluate --model trade --data MultiWOZ_2.1 --layout original
  dstfuzz evaluate --model mybot.tracker:track --data conversations.jsonl --json"""


def run(arguments: Sequence[str]) -> int:
    """Measure the tracker and print the figures."""
    parser = Parser("dstfuzz evaluate", f"Print {SUMMARY}.", _EXAMPLES)
    parser.shared(*_SHARED, required=("model",))
    parser.value(
        "--layout",
        one_of("layout", LAYOUTS),
        "NAME",
        help=f"read the data in this layout: {', '.join(LAYOUTS)} (default: the first of them "
        "that holds the split)",
    )
    parser.value(
        "--normalisation",
        check_normalisation,
        "NAME",
        help=f"compare values in this form: {', '.join(NORMALISATIONS)} (default: plain for JSON "
        "Lines, else multiwoz; multiwoz-codes leaves all values but codes as the labels have them)",
    )
    parser.option("--json", action="store_true", help="print the figures as JSON")
    options = vars(parser.parse_all(arguments))
    as_json, layout = options.pop("json"), options.pop("layout")
    normalisation = options.pop("normalisation")
    settings = build_settings({name: value for name, value in options.items() if value is not None})
    lines = _measure(settings, layout, normalisation, as_json=as_json)
    print(printable("\n".join(lines)))
    return 0


def _measure(
    settings: Settings, layout: str | None, normalisation: str | None, *, as_json: bool
) -> list[str]:
    # Imported late: help and mistakes in the command line should not wait for numpy.
    from pytest_dstfuzz.dialogue.load import load_dialogues  # noqa: PLC0415
    from pytest_dstfuzz.dialogue.ontology import with_slots  # noqa: PLC0415
    from pytest_dstfuzz.dialogue.sampling import sample_set  # noqa: PLC0415
    from pytest_dstfuzz.trackers.deadline import Deadline  # noqa: PLC0415
    from pytest_dstfuzz.trackers.evaluate import evaluate  # noqa: PLC0415
    from pytest_dstfuzz.trackers.preflight import bounded, preflight  # noqa: PLC0415
    from pytest_dstfuzz.trackers.registry import tracker_for  # noqa: PLC0415

    data = load_dialogues(
        settings.data.data, settings.data.split, layout=layout, normalisation=normalisation
    )
    data = with_slots(data, settings.data.slots)
    data = sample_set(data, None, settings.variant.seed, settings.data.domains)
    deadline = Deadline()
    with bounded(deadline, settings.budget.preflight_seconds):
        tracker = tracker_for(settings, data, deadline=deadline)
        contexts = [dialogue.context(len(dialogue.turns) - 1) for dialogue in data.dialogues]
        preflight(tracker, contexts, ontology=data.ontology, deadline=deadline)
    progress = ProgressLine("turns predicted")
    try:
        evaluation = evaluate(tracker, data, settings.tracker.batch_size, progress)
    finally:
        progress.close()
    if as_json:
        return [json.dumps(evaluation.to_json(), indent=2)]
    return [f"tracker               {settings.tracker.model}", *evaluation.lines()]
