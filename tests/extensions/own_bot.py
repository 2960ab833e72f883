"""A keyword bot, dialogues and a test of a suite, as texts of files."""

BOT = """
import pytest

WORDS = {"north": "hotel-area", "south": "hotel-area", "cheap": "hotel-price"}


def track(context):
    return {WORDS[w]: w for said in context.user_utterances for w in said.split() if w in WORDS}


@pytest.fixture(scope="session")
def dst_model():
    return track
"""
TALKS = """\
{"dialogue_id": "a", "turns": [{"user": "i want a cheap hotel in the north of the town please"}]}
{"dialogue_id": "b", "turns": [{"user": "do you know a cheap place in the south of the city"}, \
{"system": "yes", "user": "is there a nicer one in the north of the city"}]}
"""
TEST = "def test_survives(dst_turn):\n    dst_turn.assert_unchanged()\n"
#: Few variants, in the profile in which a keyword bot stumbles.
OPTIONS = ("--dst-data=talks.jsonl", "--dst-validity=edit-rate", "--dst-variants=3")
