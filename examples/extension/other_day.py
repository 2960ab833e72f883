"""A relation that edits by itself: whoever travels on sunday instead has to be understood."""

from pytest_dstfuzz import Admissible, Delta, Inapplicable, Relation, Replacement, Rewrite, Scene


class OtherDay(Relation):
    name = "other-day"
    expects = "the day is sunday, and all else stays"
    edits = "own"
    side = "should-change"
    reasons = ("the turn gives no slot the value friday",)

    def begin(self, scene: Scene) -> list[Rewrite] | Inapplicable:
        slots = [slot for slot in scene.given if scene.now[slot] == "friday"]
        place = scene.turn.user.lower().find("friday")
        if len(slots) != 1 or place < 0:
            return Inapplicable(self.reasons[0])
        edit = Replacement(place, place + len("friday"), "Sunday", "day")
        return [scene.rewrite([edit], [Delta(slots[0], "friday", Admissible(("sunday",)))])]
