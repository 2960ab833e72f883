"""Relations on the shape of a conversation: asides, repeated needs, turns in two parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pytest_dstfuzz.dialogue.dialogues import Exchange, diff_states
from pytest_dstfuzz.perturb.values import spell_compared
from pytest_dstfuzz.perturb.words import word_list, word_set
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.relation import (
    Inapplicable,
    Move,
    Relation,
    Replacement,
    Rewrite,
    Scene,
    TurnStart,
)
from pytest_dstfuzz.relations.rounds import points_back
from pytest_dstfuzz.relations.should_change.relations import ACKNOWLEDGED
from pytest_dstfuzz.relations.should_change.sites import split_spoken
from pytest_dstfuzz.relations.values import domain_of
from pytest_dstfuzz.relations.wording import Sentence, says_need, sentences

_FIRST_ROUND: Final = "the turn is the first one, or the system says nothing before it"
_LOCKED_ASIDE: Final = "every aside contains a locked word"
#: Questions that have nothing to do with a request, and their answers.
_ASIDES: Final = (
    ("Are you a robot, by the way?", "I am an automated assistant."),
    ("Wait, am I talking to a machine?", "You are talking to a computer program."),
    ("By the way, how are you?", "I am doing well, thanks for asking."),
    ("Hello? Are you listening?", "I am listening."),
    ("Just curious, who made you?", "Some engineers made me."),
)
_RETURN: Final = "As I was saying:"


@register_relation
class Aside(Relation):
    """Puts a question about something else, and its answer, before the turn.

    The system answers the question, and repeats its own message from before the question. The
    answer to the turn must stay the same.

    Source: method, section 21.
    """

    name = "aside"
    expects = "{stays}"
    source = "questions and answers of this package (MIT)"
    edits = "own"
    english = True
    reasons = (_FIRST_ROUND, _LOCKED_ASIDE)

    def begin(self, scene: Scene) -> TurnStart:
        """Return the dialogue with each aside before its last round."""
        if not scene.index or not scene.turn.system.strip():
            return Inapplicable(_FIRST_ROUND)
        words = scene.table.words
        found = [
            pair
            for pair in _ASIDES
            if not any(spell_compared(word) in words for word in word_list(" ".join(pair)))
        ]
        order = scene.rng.permutation(len(found)).tolist()
        return [_with_aside(scene, *found[place]) for place in order] or Inapplicable(_LOCKED_ASIDE)


def _with_aside(scene: Scene, question: str, answer: str) -> Rewrite:
    *earlier, last = scene.context.exchanges
    asked = Exchange(last.system, question)
    back = Exchange(f"{answer} {_RETURN} {last.system.strip()}", last.user)
    # The recorded messages before the turn now stand before the aside.
    seen = replace(scene.context, exchanges=(*earlier, asked, back))
    moves = (Move("add", scene.index, scene.index - 1),)
    return Rewrite(seen, scene.context, moves=moves, about="an aside")


_ENDS_TALK: Final = "the turn is the first one, says thanks, or ends in a question"
_GIVES_NOTHING: Final = "the user mentions no value that the turn sets"
_NOT_NEEDED: Final = "no earlier sentence states a need whose values are still valid"
#: Words of a turn that ends something.
_ENDS: Final = word_set("thank thanks thankyou bye goodbye")
#: Words of a sentence that asks for something to be done, which would be done twice.
_DONE_TWICE: Final = word_set("book reserve order buy make another more also else other instead")
#: Minimum number of words of a sentence that is repeated.
_FEWEST: Final = 4
_LEADS: Final = ("Once again:", "To repeat:", "As I said:")


@register_relation
class Restate(Relation):
    """Repeats a need of an earlier turn at the end of the turn. The answer must stay the same.

    Source: method, section 21.
    """

    name = "restate"
    expects = "{stays}"
    source = "the utterances of the data itself"
    on = ("state", "tool-calls")
    edits = "own"
    english = True
    reasons = (_ENDS_TALK, _GIVES_NOTHING, _NOT_NEEDED)

    def begin(self, scene: Scene) -> TurnStart:
        """Return the turn with an earlier sentence repeated at its end."""
        parts = list(sentences(scene.turn.user))
        said = {word for one in parts for word in one.said}
        if not scene.index or not parts or parts[-1].asks or not _ENDS.isdisjoint(said):
            return Inapplicable(_ENDS_TALK)
        if not any(map(split_spoken(scene.turn.user).mentions, _given(scene))):
            return Inapplicable(_GIVES_NOTHING)
        found = list(_needs_before(scene))
        order = scene.rng.permutation(len(found) * len(_LEADS)).tolist()
        pairs = [(found[place % len(found)], _LEADS[place // len(found)]) for place in order]
        return [_restated(scene, *pair) for pair in pairs] or Inapplicable(_NOT_NEEDED)


def _given(scene: Scene) -> list[str]:
    """Return the values that the turn adds to the state, or of the calls after it."""
    if scene.kind.has_tools:
        return list(scene.kind.slot_values(scene.now).values())
    return [scene.now[slot] for slot in scene.given]


def _needs_before(scene: Scene) -> Iterator[str]:
    """Yield earlier sentences that state a need whose values are still in the state."""
    values = scene.kind.slot_values(scene.now) if scene.kind.has_tools else scene.now
    for turn in scene.dialogue.turns[: scene.index]:
        for one in sentences(turn.user):
            text = turn.user[one.start : one.end]
            told = set(one.said)
            if not says_need(one) or len(one.said) < _FEWEST or not told.isdisjoint(_DONE_TWICE):
                continue
            if points_back(text, scene.lexicon) or not _hold(scene, turn.index, text, values):
                continue
            yield text


def _hold(scene: Scene, index: int, text: str, values: Mapping[str, str]) -> bool:
    """Return whether the state still has all values of a turn, and a sentence mentions a value.

    The values must belong to the domain of the newest turn.
    """
    said = split_spoken(text)
    if scene.kind.has_tools:
        return any(said.mentions(value) for value in values.values())
    given = diff_states(scene.state(index - 1), scene.state(index))
    domains = {domain_of(slot) for slot in scene.given}
    kept = all(values.get(one.slot) == one.after for one in given)
    about = {domain_of(one.slot) for one in given}
    mentioned = any(one.after is not None and said.mentions(one.after) for one in given)
    return kept and mentioned and about == domains and len(domains) == 1


def _restated(scene: Scene, text: str, lead: str) -> Rewrite:
    user = scene.turn.user
    end = len(user.rstrip())
    joint = " " if user[end - 1] in ".!" else ". "
    one = Replacement(end, end, f"{joint}{lead} {text}.", "restated")
    return scene.rewrite([one], about="a need is said once more")


_ONE_SENTENCE: Final = "the turn cannot be split between two sentences"
#: Minimum number of words of the first part.
_SHORTEST: Final = 3


@register_relation
class Split(Relation):
    """Splits a turn into two turns. The answer after the second must stay the same.

    Between the parts, the system says `Okay.`

    Source: method, section 21; Laban et al., LLMs get lost in multi-turn conversation, 2025.
    """

    name = "split"
    expects = "{stays}"
    source = ""
    on = ("state", "tool-calls")
    edits = "own"
    english = True
    reasons = (_ONE_SENTENCE,)

    def begin(self, scene: Scene) -> TurnStart:
        """Return the turn cut after each of its sentences."""
        if scene.guarded.exact:  # A dot may be part of an address or a path.
            return Inapplicable(_ONE_SENTENCE)
        parts = list(sentences(scene.turn.user))
        cuts = [place for place in range(1, len(parts)) if _may_cut(parts, place)]
        rewrites = [_cut(scene, parts[place]) for place in cuts]
        return rewrites or Inapplicable(_ONE_SENTENCE)


def _may_cut(parts: Sequence[Sentence], place: int) -> bool:
    """Return whether no answer is due between two sentences, and both have content."""
    left, right = parts[:place], parts[place:]
    said = sum(len(one.said) for one in left), sum(len(one.said) for one in right)
    return not any(one.asks for one in left) and said[0] >= _SHORTEST and said[1] >= _SHORTEST


def _cut(scene: Scene, second: Sentence) -> Rewrite:
    user = scene.turn.user
    *earlier, last = scene.context.exchanges
    first = Exchange(last.system, user[: second.start].rstrip())
    seen = replace(scene.context, exchanges=(*earlier, first))
    seen = seen.going_on(ACKNOWLEDGED, user[second.start :])
    moves = (Move("add", scene.index + 1, scene.index),)
    return Rewrite(seen, scene.context, moves=moves, about="the turn is said in two turns")
