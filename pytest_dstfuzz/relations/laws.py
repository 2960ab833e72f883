"""What every relation must keep to, put to the test on dialogues whose labels stand for answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.outcome import OutcomeKind
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.edits import apply_edits, without
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.relations.checked import unsound
from pytest_dstfuzz.relations.relation import FAILED_EARLIER, TOO_LONG, Relation, begin, proposed
from pytest_dstfuzz.relations.rewrite import OTHER_LANGUAGE, BySearch, Inapplicable, Rewrite
from pytest_dstfuzz.relations.scene import Scene, Scenes

#: What is wrong is shown so many times at most.
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class RelationCheck:
    """What a relation made of some dialogues, and what is wrong with it."""

    name: str
    #: Turns, or dialogues, that it was asked about, and those that it says something about.
    asked: int
    applicable: int
    rewrites: int
    #: Why it says nothing about the others -> how many, the most frequent first.
    inapplicable: Mapping[str, int]
    #: One sentence each, with the place; none where all is well.
    findings: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    def assert_passed(self) -> None:
        """Raise an `AssertionError` that says what is wrong, where anything is."""
        if self.findings:
            told = "\n".join(f"  {finding}" for finding in self.findings[:_SHOWN])
            count = len(self.findings)
            raise AssertionError(f"the relation {self.name!r} breaks {count} rules:\n{told}")


def check_laws(
    relation: Relation,
    data: DialogueSet,
    lexicon: Lexicon,
    seed: int,
    outcome: OutcomeKind | None = None,
) -> RelationCheck:
    """Ask a relation about every turn of some dialogues, twice and in different orders.

    Two askings must give the same; edits must lead to what is seen, references be clean contexts,
    deltas begin with the state as it is; of what may come apart every single edit must be one that
    can be left out; and a reason must be one that the relation lists. The labels are those of an
    ``outcome``; ``None`` = the first that the relation can speak of.
    """
    places = [
        (dialogue, turn.index)
        for dialogue in data.dialogues
        for turn in dialogue.turns
        if relation.unit == "turn" or turn.index == len(dialogue.turns) - 1
    ]
    guards = Locks(lexicon, data.ontology, data.cue_words)
    reply = ReplySettings(outcome=relation.on[0] if outcome is None else outcome)
    findings: list[str] = []

    def ask(order: Sequence[int]) -> dict[int, tuple[Scene, _Made]]:
        scenes = Scenes(data, lexicon, guards, seed, reply)
        found = {}
        for number in order:
            scene = scenes.labelled(relation.name, *places[number])
            found[number] = scene, _begun(relation, scene, findings)
        return found

    numbers = range(len(places))
    first, again = ask(numbers), ask(numbers[::-1])
    reasons: Counter[str] = Counter()
    rewrites = 0
    for number in numbers:
        scene, begun = first[number]
        if isinstance(begun, Inapplicable):
            reasons[begun.reason] += 1
            listed = (*relation.reasons, relation.inapplicable)
            if begun.reason not in (*listed, FAILED_EARLIER, TOO_LONG, OTHER_LANGUAGE):
                findings.append(f"{_at(scene)}: {begun.reason!r} is none of its reasons")
        made = begun if isinstance(begun, list) else []
        rewrites += len(made)
        if begun != again[number][1]:
            findings.append(f"{_at(scene)}: asked again, it says something else")
        findings += [f"{_at(scene)}: {wrong}" for one in made if (wrong := _wrong(one, scene))]
    return RelationCheck(
        name=relation.name,
        asked=len(places),
        applicable=len(places) - reasons.total(),
        rewrites=rewrites,
        inapplicable=dict(reasons.most_common()),
        # What is raised at each asking is one fault.
        findings=tuple(dict.fromkeys(findings)),
    )


#: Rewrites, why there are none, or ``None``: the search has the turn, or asking raised.
_Made = list[Rewrite] | Inapplicable | None


def _begun(relation: Relation, scene: Scene, findings: list[str]) -> _Made:
    """Return what a relation makes of a turn; what it raises is a finding."""
    if scene.states[scene.index] is None:
        # Nobody knows the answer.
        return None if relation.edits == "search" else Inapplicable(FAILED_EARLIER)
    try:
        begun = begin(relation, scene)
        if isinstance(begun, Inapplicable):
            return begun
        return None if isinstance(begun, BySearch) else proposed(begun)
    except (UserError, ValueError) as error:
        findings.append(f"{_at(scene)}: {error}")
        return None


def _wrong(rewrite: Rewrite, scene: Scene) -> str:
    """Say what is wrong with a rewrite; ``""`` = nothing."""
    if wrong := unsound(rewrite, scene):
        return f"{rewrite.about or 'a rewrite'}: {wrong}"
    if rewrite.separable:
        for number in range(len(rewrite.edits)):
            rest = without(rewrite.edits, [number])
            if len(rest) != len(rewrite.edits) - 1:
                return f"{rewrite.about}: edit {number} cannot be left out alone"
            apply_edits(scene.turn.user, rest)
    return ""


def _at(scene: Scene) -> str:
    return f"turn {scene.index} of {scene.dialogue.id!r}"
