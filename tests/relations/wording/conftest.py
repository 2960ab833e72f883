"""One turn of a user as a scene, of each kind of answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.calls import Outcome
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Dialogue, DialogueSet, Turn
from pytest_dstfuzz.lexicon import load_lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.relations.registry import relation_by_name
from pytest_dstfuzz.relations.relation import Inapplicable, Rewrite, Scene, Scenes, begin

AskedBot = Callable[..., set[str]]


@pytest.fixture(scope="session")
def questions() -> Callable[..., Scene]:
    """Make the scene of a question to a bot that replies."""
    lexicon = load_lexicon()

    def of(
        user: str, relation: str, system: str = "", own: Mapping[str, str] | None = None
    ) -> Scene:
        words = lexicon.with_synonyms((own or {}).items())
        earlier = (Turn(0, "", "Good evening to all of you."),) if system else ()
        turns = (*earlier, Turn(len(earlier), system, user))
        talk = Dialogue("d", turns)
        data = DialogueSet("bot", "test", (talk,))
        scenes = Scenes(data, words, Locks(words), 0, ReplySettings(outcome="reply"))
        reply = Outcome({"reply": "We open at nine."})
        return scenes.of(relation, talk, len(earlier), [reply] * len(turns))

    return of


@pytest.fixture(scope="session")
def asked(questions: Callable[..., Scene]) -> AskedBot:
    """Return the texts that a relation makes of a question."""

    def of(name: str, user: str, **more: object) -> set[str]:
        begun = begin(relation_by_name(name), questions(user, name, **more))
        return set() if isinstance(begun, Inapplicable) else {one.seen.user for one in begun}

    return of


@pytest.fixture(scope="session")
def rewritten(scenes: Scenes) -> Callable[..., list[Rewrite]]:
    """Return the rewrites of a turn with a belief state, under the ontology of the sample."""

    def of(name: str, user: str, state: Mapping[str, str], system: str = "") -> list[Rewrite]:
        earlier = (Turn(0, "", "Hello.", BeliefState({})),) if system else ()
        turns = (*earlier, Turn(len(earlier), system, user, BeliefState(state)))
        scene = scenes.labelled(name, Dialogue("d", turns), len(earlier))
        begun = begin(relation_by_name(name), scene)
        return [] if isinstance(begun, Inapplicable) else list(begun)

    return of
