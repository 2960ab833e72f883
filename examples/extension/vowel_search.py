"""A search of one's own: of four draws the one with the most vowels."""

from dataclasses import dataclass

from pytest_dstfuzz.search.protocol import Proposal, Search, SearchTask


@dataclass
class VowelSearch(Search):
    seed: int
    k: int
    name = "vowels"

    def turn(self, task: SearchTask) -> "VowelTurn":
        return VowelTurn(self, task)


class VowelTurn:
    def __init__(self, search: VowelSearch, task: SearchTask) -> None:
        self.search, self.task, self.space = search, task, task.perturber.space

    def propose(self, number: int, draw: int, seen: object) -> Proposal:  # noqa: ARG002 - not used
        rng = self.task.stream(self.search.name, self.search.seed, number, draw)
        made = [self.task.proposal(self.space.sample(rng, self.search.k)) for _ in range(4)]
        return max(made, key=lambda one: sum(map(one.variant.text.count, "aeiou")))
