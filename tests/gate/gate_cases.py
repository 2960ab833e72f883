"""Results made by hand: turns whose variants held or broke, as a few letters say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pytest_dstfuzz.campaign.figures import Counts
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Difference
from pytest_dstfuzz.gate.baseline import Baseline, Groups, make_baseline
from pytest_dstfuzz.gate.pairing import Pairing, pair_up
from pytest_dstfuzz.gate.verdict import LIMITS, Figure, LimitFinding, failure_rate, judge_figure
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.totals.totals import RelationFacts, Totals

#: A tracker that believes something about the length of what was said.
BOT = """
def steady(context):
    return {"hotel-area": "north", "hotel-book stay": str(len(context.exchanges))}

def fragile(context):
    return {**steady(context), "hotel-name": str(len(context.user) % 7)}
"""
OUTCOMES = {
    "h": "held",
    "v": "violation",
    "c": "carried",
    "i": "improved",
    "e": "error",
    "d": "duplicate",
}
CAMPAIGN = {"seed": 0, "search": "random", "content": "c0ffee"}


def totals_of(groups: Groups, own_edits: Iterable[str] = ()) -> Totals:
    """Return the totals of a session, some of whose relations make the edits themselves."""
    totals = Totals({name: RelationFacts(edits="own") for name in own_edits})
    for group, turns in groups.items():
        for one in turns:
            totals.add(one, group)
    return totals


def judged_figure(name: str, bound: float, figure: Figure) -> LimitFinding:
    """Judge a figure by the limit of a name."""
    return judge_figure(next(one for one in LIMITS if one.name == name), bound, figure)


def judged_rate(bound: float, violations: int, valid: int) -> LimitFinding:
    """Judge the failure rate of a session of so many valid variants."""
    counts = Counts(violations=violations, held=valid - violations)
    return judged_figure("max-failure-rate", bound, failure_rate(None, counts))


def variant(
    index: int,
    letter: str,
    *,
    slot: str = "hotel-area",
    transformation: str = "char_drop",
    cause: str | None = "turn",
    text: str = "",
) -> VariantResult:
    """Return one variant; ``v`` and ``c`` change the slot, anew or carried."""
    changed = (Difference(slot, "north", None, carried=letter == "c"),)
    return VariantResult(
        index=index,
        text=text or f"variant {index}",
        context=("hello",),
        edits=(Edit(transformation, "any", 0, 1, "v", ""),),
        edit_w=0.0,
        edit_c=0.1,
        valid=letter != "d",
        reason="no answer" if letter == "e" else "",
        outcome=OUTCOMES[letter],  # type: ignore[arg-type]  # one of the valid names
        changed_slots=changed if letter in "vc" else (),
        cause=cause if letter == "v" else None,  # type: ignore[arg-type]  # likewise
    )


def turn(
    dialogue: str, index: int, variants: str | Sequence[VariantResult], **given: str | None
) -> TurnResult:
    """Return a turn; of letters, each is a variant with what ``given`` says of it."""
    made = [
        variant(number, item, **given) if isinstance(item, str) else item  # type: ignore[arg-type]
        for number, item in enumerate(variants)
    ]
    worst = next((name for name in ("error", "violation") if name in {v.outcome for v in made}), "")
    return TurnResult(
        id=f"sample-test-{dialogue}-t{index}",
        dialogue_id=dialogue,
        turn_index=index,
        system="",
        user="hello",
        clean_state=BeliefState({"hotel-area": "north", "train-day": f"{dialogue} {index}"}),
        outcome=worst or "held",  # type: ignore[arg-type]  # one of the valid names
        variants=tuple(made),
    )


def build(*dialogues: str, **given: str | None) -> dict[str, list[TurnResult]]:
    """Return a run: each text is a dialogue, its words are turns, their letters variants."""
    turns = [
        turn(f"D{number:03}", index, letters, **given)
        for number, text in enumerate(dialogues)
        for index, letters in enumerate(text.split())
    ]
    return {"only": turns}


def baseline(*dialogues: str, **given: str | None) -> Baseline:
    """Return the baseline of such a run."""
    return saved(build(*dialogues, **given))


class Contents(Mapping[str, Sequence[str]]):
    """Data in which every dialogue says something of its own, to its hundredth turn."""

    def __init__(self, groups: Mapping[str, Sequence[TurnResult]]) -> None:
        self.names = sorted({turn.dialogue_id for turns in groups.values() for turn in turns})

    def __getitem__(self, name: str) -> Sequence[str]:
        return [f"{name} {number}" for number in range(100)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def saved(
    groups: Mapping[str, Sequence[TurnResult]],
    campaign: Mapping[str, object] = CAMPAIGN,
    contents: Mapping[str, Sequence[str]] | None = None,
) -> Baseline:
    """Return the baseline of some results."""
    return make_baseline(groups, campaign, "mybot", contents or Contents(groups))


def paired(one: Baseline, groups: Mapping[str, Sequence[TurnResult]]) -> Pairing:
    """Return what a baseline and a run have in common."""
    return pair_up(one, groups, Contents(groups))
