"""A word-level operator of one's own: words as people shorten them in messages."""

from pytest_dstfuzz.transformations import operator

SHORT = {"please": ("pls", "plz"), "thanks": ("thx",), "information": ("info",), "people": ("ppl",)}


@operator("word_replace", "replace")
def shorthand(word: str) -> tuple[str, ...]:
    """Shorten a word.

    >>> shorthand("please")
    ('pls', 'plz')
    """
    return SHORT.get(word, ())
