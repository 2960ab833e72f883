"""A tracker of one's own, by a name: ``pytest --dst-model=keywords``."""

from pytest_dstfuzz import Context

AREAS = ("north", "south", "east", "west", "centre")


class Keywords:
    """Takes the last area that the user names; ``KEY=VALUE`` may say of which slot."""

    def __init__(self, slot: str = "hotel-area") -> None:
        self.slot = slot

    def predict(self, contexts: list[Context]) -> list[dict[str, str]]:
        return [self.state(" ".join(context.user_utterances).lower()) for context in contexts]

    def state(self, said: str) -> dict[str, str]:
        places = {said.rfind(area): area for area in AREAS if area in said}
        return {self.slot: places[max(places)]} if places else {}
