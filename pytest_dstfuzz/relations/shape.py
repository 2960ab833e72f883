"""Relations on the shape of a conversation: asides, repeated needs, split and joined turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pytest_dstfuzz.dialogue.dialogues import Difference, Exchange, Turn, diff_states
from pytest_dstfuzz.dialogue.messages import decode_message
from pytest_dstfuzz.perturb.values import spell_compared
from pytest_dstfuzz.perturb.words import word_list, word_set
from pytest_dstfuzz.relations.order import last_detail
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
from pytest_dstfuzz.relations.rounds import has_conversations, points_back
from pytest_dstfuzz.relations.should_change.relations import ACKNOWLEDGED
from pytest_dstfuzz.relations.should_change.sites import split_spoken
from pytest_dstfuzz.relations.values import domain_of, name_words
from pytest_dstfuzz.relations.wording import (
    Sentence,
    asks_to,
    is_polite,
    requests,
    says_need,
    sentences,
)

_FIRST_ROUND: Final = "the turn is the first one"
_LOCKED_ASIDE: Final = "every aside contains a locked word"
#: Questions that have nothing to do with a request, and their answers.
_ASIDES: Final = (
    ("Are you a robot, by the way?", "I am an automated assistant."),
    ("Wait, am I talking to a machine?", "You are talking to a computer program."),
    ("By the way, how are you?", "I am doing well, thanks for asking."),
    ("Do you ever get bored?", "No, I never do."),
    ("Just curious, who made you?", "Some engineers made me."),
)
_RETURN: Final = "As I was saying:"


class _Shape(Relation):
    """Expects the same answer although the conversation has another shape."""

    expects = "{stays}"
    edits = "own"
    english = True


@register_relation
class Aside(_Shape):
    """Inserts a question about another topic, and its answer, before the turn.

    The system answers the question and repeats its message from before the question. The answer to
    the turn must stay the same.

    Source: method, section 21.
    """

    name = "aside"
    source = "questions and answers of this package (MIT)"
    reasons = (_FIRST_ROUND, _LOCKED_ASIDE)

    def begin(self, scene: Scene) -> TurnStart:
        """Return the dialogue with each aside before its last round."""
        if not scene.index:
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
    # Recorded questions may stand without the messages of the system.
    again = f" {_RETURN} {last.system.strip()}" if last.system.strip() else ""
    back = Exchange(f"{answer}{again}", last.user)
    # The recorded messages before the turn now stand before the aside.
    seen = replace(scene.context, exchanges=(*earlier, asked, back))
    moves = (Move("add", scene.index, scene.index - 1),)
    return Rewrite(seen, scene.context, moves=moves, about="an aside")


_ENDS_TALK: Final = "the turn is the first one, says thanks, or ends in a question"
_BOOKS: Final = "the turn books something or chooses an offer"
_GIVES_NOTHING: Final = "the user mentions no value that the turn sets"
_NOT_NEEDED: Final = "no earlier sentence states a need whose values are still valid"
#: Words of a turn that ends something.
_ENDS: Final = word_set("thank thanks thankyou bye goodbye")
#: Words of a sentence that asks for something to be done, which would be done twice.
_DONE_TWICE: Final = word_set("book reserve order buy make another more also else other instead")
#: Words of a turn that books something. A need that it fulfils is not said again.
_BOOKING: Final = word_set("book booking booked reserve reservation reserved schedule")
#: Words in the name of a slot that such a turn fills.
_OF_BOOKING: Final = frozenset({"book", "name"})
#: Minimum number of words of a sentence that is repeated.
_FEWEST: Final = 4
_LEADS: Final = ("Once again:", "To repeat:", "As I said:")


@register_relation
class Restate(_Shape):
    """Repeats an earlier need of the user at the end of the turn. The answer must stay the same.

    Source: method, section 21.
    """

    name = "restate"
    source = "the utterances of the data itself"
    on = ("state", "tool-calls")
    reasons = (_ENDS_TALK, _BOOKS, _GIVES_NOTHING, _NOT_NEEDED)

    def begin(self, scene: Scene) -> TurnStart:
        """Return the turn with an earlier sentence repeated at its end."""
        parts = list(sentences(scene.turn.user))
        said = {word for one in parts for word in one.said}
        if not scene.index or not parts or parts[-1].asks or not _ENDS.isdisjoint(said):
            return Inapplicable(_ENDS_TALK)
        names = {word for slot in scene.given for word in name_words(slot)}
        if not _BOOKING.isdisjoint(said) or not _OF_BOOKING.isdisjoint(names):
            return Inapplicable(_BOOKS)
        if not any(map(split_spoken(scene.turn.user).mentions, _given(scene))):
            return Inapplicable(_GIVES_NOTHING)
        found = list(_needs_before(scene))
        order = scene.rng.permutation(len(found) * len(_LEADS)).tolist()
        pairs = [(found[place % len(found)], _LEADS[place // len(found)]) for place in order]
        return [_restated(scene, *pair) for pair in pairs] or Inapplicable(_NOT_NEEDED)


def _given(scene: Scene) -> list[str]:
    """Return the values that the turn adds to the state, or the values of its calls."""
    if scene.kind.has_tools:
        return list(scene.kind.slot_values(scene.now).values())
    return [scene.now[slot] for slot in scene.given]


def _needs_before(scene: Scene) -> Iterator[str]:
    """Yield earlier sentences with needs that the state still contains."""
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
    """Return whether a sentence mentions a value, and the state has all values of its turn.

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
    one = Replacement(end, end, f"{_joint_after(user)}{lead} {text}.", "restated")
    return scene.rewrite([one], about="a need is said once more")


def _joint_after(user: str) -> str:
    """Return what stands between a text and a next sentence: a space, after a full stop if due."""
    return " " if user.rstrip()[-1:] in ".!?" else ". "


_ONE_SENTENCE: Final = "the turn cannot be split between two sentences"
_ONE_QUESTION: Final = "each dialogue of the data is a single question"
#: Minimum number of words of the first part.
_SHORTEST: Final = 3


@register_relation
class Split(_Shape):
    """Splits a turn into two turns. The answer after the second one must stay the same.

    Between the parts, the system says `Okay.`

    Source: method, section 21; Laban et al., LLMs get lost in multi-turn conversation, 2025.
    """

    name = "split"
    source = ""
    reasons = (_ONE_QUESTION, _ONE_SENTENCE)

    def begin(self, scene: Scene) -> TurnStart:
        """Return the turn in two parts, with a cut after each sentence but the last.

        A statement before a comma and a question may be a part, too.
        """
        if scene.guarded.exact:  # A dot may be part of an address or a path.
            return Inapplicable(_ONE_SENTENCE)
        if scene.kind.name == "reply" and not scene.once(has_conversations):
            return Inapplicable(_ONE_QUESTION)
        parts = list(sentences(scene.turn.user))
        cuts = [place for place in range(1, len(parts)) if _may_cut(parts, place)]
        if scene.kind.name == "reply":
            cuts = [place for place in cuts if _tells_and_asks(parts, place)]
        rewrites = [_cut(scene, parts[place]) for place in cuts]
        if len(parts) == 1:
            rewrites += [*_cut_at_comma(scene, parts[0]), *_later_detail(scene, parts[0])]
        return rewrites or Inapplicable(_ONE_SENTENCE)


def _may_cut(parts: Sequence[Sentence], place: int) -> bool:
    """Return whether a turn may be cut here: no answer is due, and both parts have content."""
    left, right = parts[:place], parts[place:]
    said = sum(len(one.said) for one in left), sum(len(one.said) for one in right)
    return not any(one.asks for one in left) and said[0] >= _SHORTEST and said[1] >= _SHORTEST


def _tells_and_asks(parts: Sequence[Sentence], place: int) -> bool:
    """Return whether facts come before the cut, and a question or a request after it.

    A bot would reply to any other first part, and reply to the second part otherwise.
    """
    told = all(one.said[0] in _STATES for one in parts[:place])
    return told and any(one.asks or requests(one) for one in parts[place:])


def _cut(scene: Scene, second: Sentence) -> Rewrite:
    user = scene.turn.user
    return _in_two(scene, user[: second.start].rstrip(), user[second.start :])


#: First words of a statement, and of a question or a request after it.
_STATES: Final = word_set("i i'm i've i'd we we're we've my our the there it's it")
_ASKS_THEN: Final = word_set(
    """can could would will do does is are what when where how which who may should must please
    what's where's"""
)
_AND: Final = word_set("and so but")


def _cut_at_comma(scene: Scene, one: Sentence) -> Iterator[Rewrite]:
    """Yield `My bike is broken.` and `Can you fix it?` for `My bike is broken, can you fix it?`."""
    commas = [place for place, gap in enumerate(one.gaps, 1) if gap.strip()]
    if len(commas) != 1 or one.gaps[commas[0] - 1].strip() != "," or one.said[0] not in _STATES:
        return
    cut = commas[0]
    start = cut + (one.said[cut] in _AND)
    if cut < _SHORTEST or len(one.said) - start < _SHORTEST or one.said[start] not in _ASKS_THEN:
        return
    user = scene.turn.user
    first = f"{user[: one.words[cut - 1].end]}{'.' if one.mark else ''}"
    second = user[one.words[start].start :]
    yield _in_two(scene, first, second[0].upper() + second[1:] if one.capital else second)


def _later_detail(scene: Scene, one: Sentence) -> Iterator[Rewrite]:
    """Yield `I need a table.` and `For two on Friday, please.` for one sentence with both."""
    first = last_detail(one)
    if first is None or not (says_need(one) or asks_to(one) or requests(one)):
        return
    if not _SAID_LATER.isdisjoint(one.said[:first]) or one.said[first - 1] in _NO_END:
        return
    user = scene.turn.user
    said = f"{user[: one.words[first - 1].end]}{one.mark}"
    then = user[one.words[first].start : one.end]
    then = then[0].upper() + then[1:] if one.capital else then
    yield _in_two(scene, said, f"{then}, please{'.' if one.mark else ''}")


#: A request with such words asks for one thing that the rest of the sentence describes.
_SAID_LATER: Final = word_set(
    "it that this them and or if weather tell know show about please thanks not no only"
)
#: Words that no first part ends in.
_NO_END: Final = word_set(
    "a an the my to is are be of with by open closed available need want like"
)


def _in_two(scene: Scene, said: str, then: str) -> Rewrite:
    """Return the dialogue with a turn said in two turns."""
    *earlier, last = scene.context.exchanges
    first = Exchange(last.system, said)
    seen = replace(scene.context, exchanges=(*earlier, first))
    seen = seen.going_on(ACKNOWLEDGED, then)
    moves = (Move("add", scene.index + 1, scene.index),)
    return Rewrite(seen, scene.context, moves=moves, about="the turn is said in two turns")


_NOTHING_TO_JOIN: Final = "the turn is the first one, or the user mentions no new value in it"
_NEEDS_ANSWER: Final = "the earlier turn asks something, or a tool is called between the two turns"
_DEPENDS: Final = "the turn answers a question or refers to earlier words"
_NOT_ONLY_NEW: Final = "one of the two turns changes or drops a value"
#: First words of a question, which may lack its mark.
_ASKS: Final = word_set(
    """is are was do does did can could will would may might have has which who where when why how
    what what's"""
)
#: Words of an emergency, to which a bot may rightly reply first.
_URGENT: Final = word_set(
    """urgent urgently emergency ambulance police bleeding blood fire smoke gas flood flooding
    burst accident crash hurt injured poison poisoned poisonous unconscious breathing choking pain
    danger dangerous stolen theft robbed fraud hacked suicide overdose 911 999 112"""
)
#: First words of a fragment that adds to a need: `In the north`, `For two people`.
_ADDS: Final = word_set("in for at on from to with near between until after before by somewhere")
#: Words of an answer to an offer or to a question, or of a correction.
_REACTS: Final = word_set(
    """yes yeah yep yup ok okay sure no nope sounds correct that's how what about instead actually
    either neither both any doesn't don't matter"""
)


@register_relation
class Join(_Shape):
    """Says two turns in one. The answer must be the same as after the second turn.

    The message of the system between the turns is left out.

    Source: method, section 21; Laban et al., LLMs get lost in multi-turn conversation, 2025.
    """

    name = "join"
    source = ""
    reasons = (_NOTHING_TO_JOIN, _NEEDS_ANSWER, _DEPENDS, _NOT_ONLY_NEW)

    def begin(self, scene: Scene) -> TurnStart:
        """Return the dialogue with the turn and the turn before it in one."""
        if scene.kind.name == "reply":
            return _joined_facts(scene)
        given = [value for value in _given(scene) if value is not None]
        said = split_spoken(scene.turn.user)
        if not scene.index or not any(map(said.mentions, given)):
            return Inapplicable(_NOTHING_TO_JOIN)
        before, now = (list(sentences(turn.user)) for turn in _last_two(scene))
        if not before or any(map(_needs_answer, before)) or _acts_between(scene):
            return Inapplicable(_NEEDS_ANSWER)
        if not _stands_alone(scene, before, now):
            return Inapplicable(_DEPENDS)
        if not scene.kind.has_tools and not _only_adds(scene):
            return Inapplicable(_NOT_ONLY_NEW)
        return [_joined(scene)]


def _joined_facts(scene: Scene) -> TurnStart:
    """Return a question or a request in one turn with the facts that the user said before it."""
    if not scene.index:
        return Inapplicable(_NOTHING_TO_JOIN)
    before, now = (list(sentences(turn.user)) for turn in _last_two(scene))
    before = [one for one in before if not is_polite(one)]
    if not before or not now or any(map(_wants_answer, before)):
        return Inapplicable(_NEEDS_ANSWER)
    states = all(one.said[0] in _STATES and len(one.said) >= _SHORTEST for one in before)
    words = {word for one in (*before, *now) for word in one.said}
    follows = now[0].asks or requests(now[0]) or asks_to(now[0])
    if not _URGENT.isdisjoint(words | {*word_list(scene.turn.system)}):
        return Inapplicable(_DEPENDS)
    reacts = now[0].said[0] in _REACTS - {"how", "what"} or not words.isdisjoint(_ENDS)
    if not states or not follows or reacts:
        return Inapplicable(_DEPENDS)
    return [_joined(scene)]


def _wants_answer(one: Sentence) -> bool:
    """Return whether a sentence asks for something, which a joined message asks for, too."""
    return one.asks or requests(one) or says_need(one) or asks_to(one)


def _last_two(scene: Scene) -> tuple[Turn, Turn]:
    return scene.dialogue.turns[scene.index - 1], scene.turn


def _acts_between(scene: Scene) -> bool:
    """Return whether the recorded system calls a tool between the two turns."""
    if not scene.kind.has_tools:
        return False
    earlier, now = _last_two(scene)
    recorded = map(decode_message, now.recorded or ())
    return bool(earlier.calls) or any(one.calls or one.role == "tool" for one in recorded)


def _stands_alone(scene: Scene, before: Sequence[Sentence], now: Sequence[Sentence]) -> bool:
    """Return whether a turn states a need, and the next turn needs no message between them."""
    words = {word for one in (*before, *now) for word in one.said}
    if not words.isdisjoint(_REACTS | _ENDS) or points_back(scene.turn.user, scene.lexicon):
        return False
    first = now[0]
    starts = says_need(first) or requests(first) or first.said[0] in _ADDS
    needs = (says_need(one) or requests(one) or asks_to(one) for one in before)
    return starts and not first.asks and any(needs)


def _needs_answer(sentence: Sentence) -> bool:
    """Return whether a sentence is a question, and not a request such as `Can you find me ...`."""
    return not asks_to(sentence) and (sentence.asks or sentence.said[0] in _ASKS)


def _only_adds(scene: Scene) -> bool:
    """Return whether both turns only add values that the user mentions, in one domain."""
    changes: list[Difference] = []
    for turn in _last_two(scene):
        states = scene.state(turn.index - 1), scene.state(turn.index)
        delta, said = diff_states(*states), split_spoken(turn.user)
        if not delta or any(
            one.before is not None or one.after is None or not said.mentions(one.after)
            for one in delta
        ):
            return False
        changes += delta
    return len({domain_of(one.slot) for one in changes}) == 1


def _joined(scene: Scene) -> Rewrite:
    earlier = scene.context.exchanges[-2]
    user = earlier.user.rstrip()
    one = scene.rewrite([Replacement(0, 0, f"{user}{_joint_after(user)}", "joined")])
    exchanges = (*scene.context.exchanges[:-2], Exchange(earlier.system, one.seen.user))
    transcript = scene.context.transcript
    if transcript is not None:
        blocks = list(transcript.before)
        del blocks[scene.index : scene.index + 1]
        transcript = replace(transcript, before=tuple(blocks))
    seen = replace(one.seen, exchanges=exchanges, transcript=transcript)
    moves = (Move("join", scene.index - 1, scene.index),)
    return replace(one, seen=seen, moves=moves, about="two turns are said in one")
