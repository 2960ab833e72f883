"""A transformation of one's own with two operators: how people of another region say it."""

from pytest_dstfuzz.transformations import Transformation, operator, register

DIALECT = register(Transformation("dialect", "word", ("british", "australian")))
BRITISH = {"vacation": ("holiday",), "movie": ("film",), "need": ("require",)}


@operator("dialect", "replace")
def british(word: str) -> tuple[str, ...]:
    """Say it as in Britain.

    >>> british("movie")
    ('film',)
    """
    return BRITISH.get(word, ())


@operator("dialect", "insert")
def australian() -> tuple[str, ...]:
    """Say it as in Australia."""
    return ("mate",)
