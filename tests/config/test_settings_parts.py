"""Settings in parts: the table and the fields are the same, and values are read as options."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from pytest_dstfuzz.config import ADAPTER, KEYS, OPTIONS, Settings, names_of, settings_json
from pytest_dstfuzz.config.parsers import PARTS, mask_command_line
from pytest_dstfuzz.config.settings import settings_of_json
from pytest_dstfuzz.errors import DataError, UserError


def test_every_option_is_a_field_of_its_part_and_every_field_an_option() -> None:
    parts = get_type_hints(Settings)
    assert list(parts) == list(PARTS)
    held = {(part, item.name) for part, kind in parts.items() for item in fields(kind)}
    assert held == {(item.part, item.name) for item in OPTIONS}
    assert len({item.name for item in OPTIONS}) == len(OPTIONS)


def test_scopes_are_consistent() -> None:
    assert set(names_of("written")) <= set(names_of("path"))
    assert set(names_of("decides")) <= set(names_of("test"))
    assert not set(names_of("test")) & set(names_of("session"))
    assert {"tracker", *KEYS} == {*ADAPTER, "checkpoint", "device"}


@pytest.mark.parametrize(
    ("name", "value", "held"),
    [
        ("variants", 3, 3),
        ("variants", "3", 3),
        ("turns", None, None),
        ("turns", "all", None),
        ("edits", "char-drop", ("char_drop",)),
        ("edits", ["word_drop", "char_drop"], ("word_drop", "char_drop")),
        ("edits", "emoji,char-drop", ("word_insert/emoji", "char_drop")),
        ("edits", "repeat", ("word_insert/repeat", "char_insert/repeat")),
        ("edits", "-look-alike,-emoji", ("-word_insert/emoji", "-char_replace/look_alike")),
        ("edits", ["-char_drop/any", "-char_drop"], ("-char_drop",)),
        ("edits", "+texting,-emoji", ("+word_replace/texting", "-word_insert/emoji")),
        ("edits", "+filler,emoji", ("word_insert/filler", "word_insert/emoji")),
        ("edits", (), ()),
        ("domains", (), ()),
        ("max_edit_rate", "20%", 0.2),
        ("shrink", False, False),
        ("prices", (0.15, 0.6), (0.15, 0.6)),
        ("report", Path("a/b.json"), ("a/b.json",)),
        ("report", ["a.json", "b.html"], ("a.json", "b.html")),
        ("max_seconds", None, None),
        ("outcome", "reply", "reply"),
    ],
)
def test_a_value_of_python_is_read_as_the_option_is(name: str, value: Any, held: object) -> None:
    assert Settings.of(**{name: value}).option(name) == held


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"varaints": 3}, "unknown option 'varaints'. Did you mean 'variants'"),
        ({"variants": "many"}, "variants: 'many' must be a whole number"),
        ({"variants": None}, "variants: None has the wrong type"),
        ({"variants": True}, "variants: True has the wrong type"),
        ({"shrink": 1}, "shrink: '1' must be yes or no"),
        ({"variants": 2, "variant": 2}, "there is no variant 2: the variants"),
        ({"outcome": "replies"}, "unknown outcome 'replies'. Did you mean 'reply'"),
        ({"outcome": "state,reply"}, "a run tests one: state, reply, tool-calls"),
        (
            {"compare": "exact"},
            "--dst-compare applies only to bots that reply: add --dst-outcome=reply",
        ),
        ({"outcome": "reply", "cited": "K[0-9]+"}, "add --dst-compare=ids, alone or in a list"),
        ({"outcome": "reply", "compare": ","}, "compare: ',' contains no name"),
        ({"outcome": "reply", "compare": "a, b,a"}, "names 'a' twice"),
        ({"tracker": {"timeout": 0}}, "tracker timeout: '0' must be a number of seconds above 0"),
    ],
)
def test_a_wrong_option_is_one_message(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message.replace(".", r"\.")):
        Settings.of(**options)


def test_keys_of_a_tracker_are_split_into_their_options() -> None:
    made = Settings.of(
        tracker={"timeout": 5, "dead-after": "3", "header": ["X-A: 1", "X-B: $B"], "region": "eu"}
    ).tracker
    assert (made.timeout, made.dead_after) == (5.0, 3)
    assert [str(one) for one in made.header] == ["X-A: ***", "X-B: $B"]
    assert [(one.name, one.value) for one in made.tracker] == [("region", "eu")]
    assert "eu" not in f"{made}"
    again = Settings.of(model="trade").replace_options(tracker=made.tracker)
    assert settings_json(again)["tracker"] == ["region=***"]


def test_settings_of_a_report_are_read() -> None:
    read = settings_of_json({"shrink": False, "gone": 1, "variants": 2})
    assert read == Settings.of(shrink=False, variants=2)
    with pytest.raises(DataError, match="the setting 'variants' has the value 'x'"):
        settings_of_json({"variants": "x"})


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--dst-tracker=timeout=5"], ["--dst-tracker=timeout=5"]),
        (["--dst-tracker", "header=X-Key: secret"], ["--dst-tracker", "header=X-Key: ***"]),
        (["--dst-tracker=header=X-Key: $KEY"], ["--dst-tracker=header=X-Key: $KEY"]),
        (["--tracker", "api-key=secret"], ["--tracker", "api-key=***"]),
        (["-o", "dst_tracker=token=secret\ntimeout=5"], ["-o", "dst_tracker=token=***\ntimeout=5"]),
        (["--dst-tracker", "secret"], ["--dst-tracker", "***"]),
        (["--dst-tracker=token=$TOKEN"], ["--dst-tracker=token=$TOKEN"]),
        (
            ["--dst-compare=judge:openai+http://u:secret@h/v1?key=secret:model=m:calls=9,numbers"],
            ["--dst-compare=judge:openai+http://***@h/v1?key=***:model=m:calls=9,numbers"],
        ),
        (
            ["-o", 'dst_compare=ids,judge:"openai+http://h?a=secret,:b=secret":model=m'],
            ["-o", 'dst_compare=ids,judge:"openai+http://h?a=***":model=m'],
        ),
        (
            ["--compare", "judge:openai+http://h?secret:model=m"],
            ["--compare", "judge:openai+http://h?***:model=m"],
        ),
        (
            ["--dst-relation=frozen:http://h/?a=secret,gold"],
            ["--dst-relation=frozen:http://h/?a=***,gold"],
        ),
        (["--dst-tracker=prompt=http://u:secret@h/x"], ["--dst-tracker=prompt=http://***@h/x"]),
    ],
)
def test_keys_show_no_credentials(words: list[str], shown: list[str]) -> None:
    assert mask_command_line(words) == shown


@pytest.mark.parametrize(
    ("compare", "said"),
    [
        ("judge:openai+http://h/v1:tokn=sk-marker", "unknown key of judge: 'tokn'"),
        ("judge:openai+http://u:marker@h/v1:cals=5", "Did you mean 'calls'"),
        ("judge:openai+http://u:marker=word@h/v1", "an unknown key of judge follows"),
        ("judge:openai+http://h/v1?k=a:marker=b", "an unknown key of judge follows"),
    ],
)
def test_an_unknown_key_is_named_if_it_is_no_part_of_a_secret(compare: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        Settings.of(model="a:b", outcome="reply", compare=compare)
    assert said in str(caught.value)
    assert "marker" not in str(caught.value)


@pytest.mark.parametrize("expression", [".", ".+", r"\w", "^(?!Sorry).+", "x*"])
def test_a_fallback_that_matches_almost_any_reply_is_refused(expression: str) -> None:
    with pytest.raises(UserError, match="almost any reply"):
        Settings.of(fallback=f"Sorry\n{expression}")


def test_fallbacks_are_one_a_line() -> None:
    assert Settings.of(outcome="reply", fallback="I cannot help\n/[Nn]o idea/").reply.fallback == (
        "I cannot help",
        "[Nn]o idea",
    )
