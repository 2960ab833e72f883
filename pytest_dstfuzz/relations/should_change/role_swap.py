"""Two slots change their roles: ``from A to B`` the other way, leaving and arriving."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.perturb.words import listed, match_case
from pytest_dstfuzz.relations.kinds import domain_of, end_of, moment_of
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.rewrite import Admissible, Begun, Delta, Inapplicable, Rewrite
from pytest_dstfuzz.relations.scene import Replacement, Scene
from pytest_dstfuzz.relations.should_change.base import OF_CALLS, ShouldChange, tables_of
from pytest_dstfuzz.relations.should_change.sites import REASONS, ValueSite, sites_of
from pytest_dstfuzz.relations.should_change.value_swap import admitted
from pytest_dstfuzz.relations.values import ValueTable

NO_ROLE: Final = "the turn gives neither both ends of a journey nor a time with a role"
NO_CUE: Final = "no cue right before the value says its role"
OTHER_HELD: Final = "the slot of the other role has a value"
NO_OTHER_SLOT: Final = "no slot has the other role"

_FROM: Final = listed("from leaving departing")
_TO: Final = listed("to into")
#: Words between a verb and its time that say nothing of the role.
_LOOSE: Final = listed("anytime sometime any time")
_LEAVE: Final = listed("at after")
_ARRIVE: Final = listed("by before at")
#: Verbs of leaving and those of arriving that take their place, and the other way.
_ARRIVAL_OF: Final = {
    "leave": "arrive",
    "leaves": "arrives",
    "leaving": "arriving",
    "depart": "arrive",
    "departs": "arrives",
    "departing": "arriving",
}
_LEAVING_OF: Final = {"arrive": "leave", "arrives": "leaves", "arriving": "leaving"}


@register_relation
class RoleSwap(ShouldChange):
    """Both ends of a journey are exchanged; a time of leaving becomes one of arriving."""

    name = "role-swap"
    expects = "the two ends exchange their values, or the time moves to the other slot of times"
    reasons = (*REASONS, NO_ROLE, NO_CUE, NO_OTHER_SLOT, OTHER_HELD, *OF_CALLS)

    def impossible(self, data: DialogueSet) -> str:
        """Say so where no domain has two slots of different roles."""
        roles: set[tuple[str, str]] = set()
        for kinds in (table.kinds for table in tables_of(data)):
            roles |= {(domain_of(s), end_of(s)) for s, kind in kinds.items() if kind == "end"}
            roles |= {(domain_of(s), moment_of(s)) for s, kind in kinds.items() if kind == "time"}
        for one, other in (("from", "to"), ("leave", "arrive")):
            if any((domain, other) in roles for domain, role in roles if role == one):
                return ""
        return "no pair of slots for the two ends of a journey, or for leaving and arriving"

    def edited(self, scene: Scene) -> Begun:
        """Return a rewrite that exchanges the ends, and one for each time with a role."""
        sites = sites_of(scene)
        if not sites.found:
            return Inapplicable(sites.reason)
        ends = [site for site in sites.found if site.kind == "end" and end_of(site.slot)]
        made = [
            _exchanged(scene, one, other)
            for one in ends
            for other in ends
            if end_of(one.slot) == "from"
            and end_of(other.slot) == "to"
            and domain_of(one.slot) == domain_of(other.slot)
        ]
        times = (site for site in sites.found if site.kind == "time" and moment_of(site.slot))
        made += [_moved(scene, site) for site in times]
        rewrites = [one for one in made if isinstance(one, Rewrite)]
        if rewrites:
            return rewrites
        reasons = [one for one in made if isinstance(one, str)]
        return Inapplicable(max(reasons, key=self.reasons.index, default=NO_ROLE))


def _exchanged(scene: Scene, start: ValueSite, goal: ValueSite) -> Rewrite | str:
    """Return the rewrite in which start and goal stand in each other's place."""
    for site, cues in ((start, _FROM), (goal, _TO)):
        if _cue(scene, site) not in cues:
            return NO_CUE
    edits, deltas = [], []
    for site, other in ((start, goal), (goal, start)):
        place = site.mention
        edits.append(Replacement(place.start, place.end, other.surface, "ends"))
        after = admitted(scene, site.slot, other.value, other.surface)
        deltas.append(Delta(site.slot, site.value, after))
    return scene.rewrite(edits, deltas)


def _moved(scene: Scene, site: ValueSite) -> Rewrite | str:
    """Return the rewrite in which the time is that of the other role."""
    words = scene.parts.words
    cue = site.mention.first - 1
    verb = cue - 1
    while verb > 0 and words[verb].lower in _LOOSE:
        verb -= 1
    if verb < 0:
        return NO_CUE
    leaves = moment_of(site.slot) == "leave"
    verbs, cues = (_ARRIVAL_OF, _LEAVE) if leaves else (_LEAVING_OF, _ARRIVE)
    new = verbs.get(words[verb].lower)
    if new is None or words[cue].lower not in cues or _is_range(scene, site):
        return NO_CUE
    other = _other_slot(scene, site)
    if other is None:
        return NO_OTHER_SLOT
    if other in scene.now or other in scene.before:
        return OTHER_HELD
    edits = [
        Replacement(
            words[verb].start, words[cue - 1].end, match_case(words[verb].text, new), "verb"
        ),
        Replacement(words[cue].start, words[cue].end, "by" if leaves else "after", "cue"),
    ]
    emptied = Admissible(tuple(dict.fromkeys((site.before, None))))
    filled = Admissible((site.value,))
    deltas = [Delta(site.slot, site.value, emptied), Delta(other, None, filled)]
    return scene.rewrite(edits, deltas)


def _cue(scene: Scene, site: ValueSite) -> str:
    first = site.mention.first
    if not first or scene.parts.gaps[first].strip():
        return ""
    return scene.parts.words[first - 1].lower


def _is_range(scene: Scene, site: ValueSite) -> bool:
    """Say whether more is said of the time: `9:00 to 10:00`, `8:15 in ely`, `right after that`."""
    words = [word.lower for word in scene.parts.words]
    following = words[site.mention.last + 1 : site.mention.last + 3]
    if any(word[:1].isdigit() or word in {"or", "to"} for word in following):
        return True
    if following[:1] in (["in"], ["at"], ["from"]):
        return True
    return any(
        cue in _ARRIVE | _LEAVE and word in {"that", "then"} for cue, word in pairwise(words)
    )


def _other_slot(scene: Scene, site: ValueSite) -> str | None:
    """Return the slot of the same domain whose times have the other role."""
    kinds = scene.once(ValueTable.of).kinds
    wanted = "arrive" if moment_of(site.slot) == "leave" else "leave"
    return next(
        (
            slot
            for slot, kind in kinds.items()
            if kind == "time"
            and domain_of(slot) == domain_of(site.slot)
            and moment_of(slot) == wanted
        ),
        None,
    )
