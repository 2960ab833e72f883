"""What a report says about its run besides the results."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.trackers.tracker import Disagreement, Usage


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The data that was tested, and the circumstances of the run.

    Everything but ``notes``, ``command``, ``started``, ``seconds``, ``usage``,
    ``disagreement``, ``asked`` and ``recalled`` is the same in two runs of one campaign.
    """

    #: Short name of the data set.
    data: str
    split: str
    #: Name of the value normalisation.
    normalisation: str
    #: Layout that the data was read from.
    layout: str
    #: What the data set holds; the results say what of it was tested.
    dialogues: int
    turns: int
    #: Fingerprint of the lexicon that variants were made with (several: parted by blanks).
    lexicon: str = ""
    #: Fingerprint of the agent's policy that chose what to change (several: parted by blanks).
    policy: str = ""
    #: For the user: choices made while reading, which may name paths, and what differs
    #: from the settings.
    notes: tuple[str, ...] = ()
    #: Why the run ended before its last turn, or ``""``.
    ended: str = ""
    #: The command line that was given.
    command: str = ""
    #: ISO 8601, with time zone.
    started: str = ""
    seconds: float | None = None
    #: What the answers of trackers took that count tokens; ``None`` where none does.
    usage: Usage | None = None
    #: How often a tracker that need not be repeatable disagreed with itself, before the run.
    disagreement: Disagreement | None = None
    #: Contexts that trackers were asked for, those of preflights apart, and answers that came
    #: from a cache.
    asked: int = 0
    recalled: int = 0

    @classmethod
    def of(
        cls,
        data: DialogueSet,
        *,
        lexicon: str = "",
        policy: str = "",
        notes: tuple[str, ...] = (),
        ended: str = "",
        command: str = "",
        started: str = "",
        seconds: float | None = None,
    ) -> RunInfo:
        """Describe a run on ``data``."""
        return cls(
            data=data.name,
            split=data.split,
            normalisation=data.normalisation,
            layout=data.layout,
            dialogues=len(data.dialogues),
            turns=data.turn_count(),
            lexicon=lexicon,
            policy=policy,
            notes=(*data.notes, *notes),
            ended=ended,
            command=command,
            started=started,
            seconds=seconds,
        )
