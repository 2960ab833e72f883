"""Dialogues written here, and what relations make of them with their labels as answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Dialogue, DialogueSet, Ontology, Turn
from pytest_dstfuzz.lexicon import load_lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.relations.relation import Inapplicable, Relation, Rewrite, Scenes

#: What the system says, what the user answers, and what of the state is new (``""``: gone).
Said = tuple[str, str, dict[str, str]]
Begin = Callable[..., list[Rewrite] | str]


@pytest.fixture(scope="session")
def begin() -> Begin:
    """Begin a relation on a dialogue; the rewrites, or why there are none.

    Where ``wrong`` is given, the tracker says that of some slots as soon as they have a label.
    """
    lexicon = load_lexicon()

    def of(
        relation: Relation,
        said: Sequence[Said],
        wrong: Mapping[str, str] | None = None,
        ontology: Ontology | None = None,
    ) -> list[Rewrite] | str:
        turns: list[Turn] = []
        state: dict[str, str] = {}
        for system, user, new in said:
            state = {slot: value for slot, value in {**state, **new}.items() if value}
            turns.append(Turn(len(turns), system, user, BeliefState(state)))
        dialogue = Dialogue("d", tuple(turns))
        data = DialogueSet("written", "test", (dialogue,), ontology)
        scenes = Scenes(data, lexicon, Locks(lexicon, data.ontology), seed=1)
        labels = [dict(turn.state or {}) for turn in turns]
        answers = [
            BeliefState({slot: (wrong or {}).get(slot, value) for slot, value in label.items()})
            for label in labels
        ]
        begun = relation.begin(scenes.of(relation.name, dialogue, len(turns) - 1, answers))
        if isinstance(begun, Inapplicable):
            assert begun.reason in relation.reasons
            return begun.reason
        return list(begun)  # type: ignore[arg-type]  # these relations give nothing else

    return of
