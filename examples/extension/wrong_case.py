"""A character-level operator of one's own: one letter in the wrong case."""

from pytest_dstfuzz.transformations import Typo, operator


@operator("char_replace", "typo")
def wrong_case(word: str) -> list[Typo]:
    """Type one letter in the other case.

    >>> wrong_case("Hi")
    [Typo(start=0, end=1, choices=('h',)), Typo(start=1, end=2, choices=('I',))]
    """
    return [Typo(place, place + 1, (c.swapcase(),)) for place, c in enumerate(word)]
