"""``dstfuzz calibrate``: suggest a threshold for the distance of replies with one meaning."""

from __future__ import annotations

from argparse import Namespace
from contextlib import closing
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Final

from pytest_dstfuzz.cli.command import Command, ProgressLine, build_given_settings
from pytest_dstfuzz.config import ADAPTER, REPLY, Settings
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.errors import TrackerError, UserError
from pytest_dstfuzz.printable import printable

if TYPE_CHECKING:
    from pytest_dstfuzz.dialogue.dialogues import DialogueSet

_READ: Final = (
    *("model", "checkpoint", "device", "batch_size", "votes", "data", "split", "turns", "seed"),
    *("history", *ADAPTER),
)
_EXAMPLES = """\
  dstfuzz calibrate --data questions.jsonl               the shipped embedding, without calls
  dstfuzz calibrate --data questions.jsonl --model my_bot:reply
  dstfuzz calibrate --data questions.jsonl --embedding all-MiniLM-L6-v2
It needs 50 recorded replies. With --model, the bot is asked each clean question --votes times."""


def _options(parser: Parser) -> None:
    parser.shared(*_READ)
    parser.option(
        "--embedding",
        default="shipped",
        metavar="NAME",
        help="embedding that computes the distances: shipped (default), or a model of "
        "sentence-transformers, by name or folder (needs the extra 'similarity')",
    )


def _calibrate(given: Namespace) -> None:
    # Imported late so that help and usage errors do not wait for numpy.
    from pytest_dstfuzz.comparisons.embedding import Calibration, different_replies, distances  # noqa: PLC0415
    from pytest_dstfuzz.comparisons.registry import comparison_by_name  # noqa: PLC0415
    from pytest_dstfuzz.dialogue.load import load_dialogues  # noqa: PLC0415

    given.outcome = REPLY
    settings = build_given_settings(given, (*_READ, "outcome"))
    # Allow every distance, because this command only measures them.
    reply = replace(settings.reply, threshold=2.0)
    settings = replace(settings, reply=reply)
    data = load_dialogues(settings.data.data, settings.data.split, outcome=REPLY)
    pairs = different_replies(data, settings.variant.seed)
    comparison = comparison_by_name(f"embedding:{given.embedding}", reply)
    own = _own_replies(settings, data) if settings.tracker.model else []
    found = Calibration(distances(comparison, pairs), distances(comparison, own))
    lines = [f"embedding {given.embedding}, data {data.name} (split {data.split})", *found.lines()]
    print(printable("\n".join(lines)))


def _own_replies(settings: Settings, data: DialogueSet) -> list[tuple[str, str]]:
    """Return pairs of replies of a bot to the same question."""
    # Imported late, as above.
    from pytest_dstfuzz.dialogue.sampling import sample_set  # noqa: PLC0415
    from pytest_dstfuzz.trackers.evaluate import predict_all  # noqa: PLC0415
    from pytest_dstfuzz.trackers.registry import tracker_for  # noqa: PLC0415
    from pytest_dstfuzz.trackers.tracker import Prediction  # noqa: PLC0415

    votes = settings.tracker.votes
    if votes < 2:
        raise UserError(
            "--votes 1 asks each question once, but a comparison of the bot's own replies needs "
            "at least two answers: use a larger number, such as 3"
        )
    sampled = sample_set(data, settings.data.turns, settings.variant.seed, None)
    contexts = [d.context(turn.index) for d in sampled.dialogues for turn in d.turns]
    asked = [one.again(number) for one in contexts for number in range(votes)]
    with closing(ProgressLine("replies")) as progress:
        answers = predict_all(
            tracker_for(settings, data),
            list(asked),
            settings.tracker.batch_size,
            progress,
            outcome=REPLY,
        )
    failures = [one for one in answers if isinstance(one, TrackerError)]
    if len(failures) == len(answers):
        raise failures[0]
    texts = [(one.reply or "") if isinstance(one, Prediction) else "" for one in answers]
    groups = (texts[at : at + votes] for at in range(0, len(texts), votes))
    return [pair for group in groups for pair in combinations(filter(None, group), 2)]


COMMANDS = (
    Command(
        name="calibrate",
        summary="suggest the largest distance of two replies of your bot that mean the same",
        kept="no results were saved",
        examples=_EXAMPLES,
        options=_options,
        work=_calibrate,
        about="Print the distances that an embedding computes between recorded replies to\n"
        "different questions, and a threshold for equivalent replies. With --model, the bot\n"
        "answers each question several times. Then the command also prints the distances\n"
        "between these replies, and uses them for the threshold.",
    ),
)
