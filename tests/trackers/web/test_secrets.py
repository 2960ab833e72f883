"""Credentials: what shows them, and in which spellings they are found."""

from __future__ import annotations

import copy
import html
import json
import pickle
import time
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.config import (
    MASK,
    Header,
    Settings,
    mask_command_line,
    mask_credentials,
    reveal_credentials,
    settings_json,
)
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.trackers.registry import tracker_for
from pytest_dstfuzz.trackers.web.secrets import Secrets, secrets_of

TOKENS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=6, max_size=30)
SPELLINGS = (
    lambda text: text,
    quote,
    quote_plus,
    lambda text: quote(text, safe=""),
    lambda text: json.dumps({"detail": text}),
    lambda text: repr({"detail": text}),
    html.escape,
    lambda text: html.escape(text).replace("&#x27;", "&#39;").replace("/", "&#x2F;"),
    lambda text: "".join(f"&#{ord(sign)};" for sign in text),
    lambda text: "".join(f"&#x{ord(sign):06X};" for sign in text),
    lambda text: "".join(rf"\x{ord(sign):02x}" for sign in text),
    lambda text: "".join(rf"\u{ord(sign):04X}" for sign in text),
    lambda text: json.dumps({"page": f"<a href='?key={html.escape(quote(text, safe=''))}'>"}),
    lambda text: quote_plus(html.escape(json.dumps(html.escape(text)))),
)


@given(TOKENS)
def test_a_credential_is_found_in_every_spelling(token: str) -> None:
    secrets = secrets_of("http://h", [f"Bearer {token}"])
    for spell in SPELLINGS:
        said = f"[{spell(token)}]"
        assert token not in secrets.redact(said)
        assert MASK in secrets.redact(said)


@given(TOKENS, TOKENS)
def test_the_credentials_of_an_address_are_found(user: str, password: str) -> None:
    pair = f"{quote(user, safe='')}:{quote(password, safe='')}"
    secrets = secrets_of(f"https://{pair}@h/p?key={quote(password, safe='')}", [])
    for spell in SPELLINGS:
        found = secrets.redact(f"{spell(user)} {spell(password)}")
        assert user not in found
        assert password not in found


@given(TOKENS, st.sampled_from(SPELLINGS[3:]), st.sampled_from(SPELLINGS[3:]))
def test_only_the_credential_is_masked(
    token: str, spell: Callable[[str], str], around: Callable[[str], str]
) -> None:
    secrets = Secrets([f"unmistakable-{token}-1234567890"])
    before, after = "é%20&amp;" + around("left !"), around("right ?") + "é&lt;%7E"
    said = f"{before} {spell('A')} unmistakable-{quote(token, safe='')}-1234567890 {after}"
    assert secrets.redact(said) == f"{before} {spell('A')} {MASK} {after}"
    body = json.dumps({"said": html.escape(f"[unmistakable-{token}-1234567890]"), "é": "\\n"})
    assert json.loads(secrets.scrub(body.encode())) == {"said": f"[{MASK}]", "é": "\\n"}


@pytest.mark.parametrize(
    "piece", ["%", "%25", "&", "&amp;", "&#38;", "\\", "\\\\", "abcd", "%61bcd"]
)
def test_the_search_takes_linear_time(piece: str) -> None:
    secrets, took = Secrets(["abcd", "a" * 5_000 + "b", "%%%%%1"]), []
    for length in (20_000, 200_000):
        text = piece * (length // len(piece))
        begin = time.process_time()
        secrets.redact(text)
        took.append(time.process_time() - begin)
    assert took[1] < 40 * took[0] + 0.5


def test_what_stands_around_a_credential_stays() -> None:
    secrets = Secrets(["abcd", "abcdef", "", "1"])
    assert secrets.redact("abcdefg abcd 1 abc") == "***g *** 1 abc"
    assert "abcd" not in repr(secrets)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://h:80/p", "http://h:80/p"),
        ("http://h/@me", "http://h/@me"),
        ("rasa+https://u:pw@h/p", "rasa+https://***@h/p"),
        ("http://u@h", "http://***@h"),
        ("http://u:p@ss/w@h", "http://***@h"),
        ("http://u:p?s#s@h/p", "http://***@h/p"),
        ("http://u:p/ss@h", "http://***@h"),
        ("http://[::1]:80/p?a=b&c=d;e=f", "http://[::1]:80/p?a=***&c=***;e=***"),
        ("http://h?token", "http://h?***"),
        ("http://h?a=b#frag", "http://h?a=***#***"),
        ("package.module:attribute", "package.module:attribute"),
        ("--dst-model=http://u:p@h", "--dst-model=http://***@h"),
    ],
)
def test_an_address_is_shown_without_credentials(address: str, shown: str) -> None:
    assert mask_credentials(address) == shown
    assert mask_credentials(shown) == shown


@pytest.mark.parametrize("between", [",", ";", "|", "/,", "/v1;", "?a=b,", ":80,", ",x="])
@pytest.mark.parametrize("scheme", ["http://", "rasa+https://", "http:/", "//"])
@pytest.mark.parametrize("after", ["", ",http://h3", ",http://user:s3cret@h3"])
def test_each_address_of_one_word_is_masked(between: str, scheme: str, after: str) -> None:
    text = f"http://h1{between}{scheme}user:s3=cret@h2{after}"
    for shown in (mask_credentials(text), str(UserError(f"cannot reach '{text}'."))):
        assert "http://h1" in shown or "***@" in shown
        assert not [one for one in ("user", "s3", "cret") if one in shown]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://h1,http://u:pw@h2", "http://h1,http://***@h2"),
        ("http://u:a,http://b@h", "http://***@h"),
        ("http://h?next=http://h2/secret&b=c", "http://h?next=***&b=***"),
        ("http://h1,http://h2", "http://h1,http://h2"),
    ],
)
def test_an_address_in_another_is_masked_with_it(text: str, shown: str) -> None:
    assert mask_credentials(text) == shown
    assert mask_credentials(shown) == shown


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "no such file: 'http://u:pw@h/v1?key=sk'. Give a path.",
            "'http://***@h/v1?key=***'. Give",
        ),
        ("there is no file http:/u:pw@h/v1?key=sk: write one", "http:/***@h/v1?key=***: write"),
        ("cannot read http:/h/v1?key=sk\\'n: gone", "http:/h/v1?key=***: gone"),
        ("no //u:pw@h, no http//u:pw@h", "no //***@h, no http//***@h"),
        ("see https://h/p, or (https://h/q).", "see https://h/p, or (https://h/q)."),
        ("a/b@c and C:/d@e are files", "a/b@c and C:/d@e are files"),
        ("http://***@h/v1?key=*** is down", "http://***@h/v1?key=*** is down"),
    ],
)
def test_no_message_shows_the_credentials_of_an_address(said: str, shown: str) -> None:
    assert shown in str(UserError(said))
    assert "pw" not in str(UserError(said))


def test_settings_show_no_credentials_and_lose_none() -> None:
    given = Settings.of(
        model="http://me:marker@h?key=marker",
        header=(Header("X-Key", "marker"), Header("X-Team", "Bearer $TEAM")),
    )
    for settings in (given, given.replace_options(seed=3), copy.deepcopy(given)):
        again = pickle.loads(pickle.dumps(settings))  # noqa: S301 - made in this line
        assert reveal_credentials(again.tracker.model or "") == "http://me:marker@h?key=marker"
        assert [header.value for header in again.tracker.header] == ["marker", "Bearer $TEAM"]
        assert "marker" not in f"{again} {again!r} {json.dumps(settings_json(again))}"
    assert settings_json(given)["header"] == ["X-Key: ***", "X-Team: Bearer $TEAM"]
    assert settings_json(given)["model"] == "http://***@h?key=***"


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--dst-tracker=header=X-Key: marker"], ["--dst-tracker=header=X-Key: ***"]),
        (["--dst-tracker", "header=X-Key: marker"], ["--dst-tracker", "header=X-Key: ***"]),
        (["--tracker", "marker"], ["--tracker", "***"]),
        (["-o", "dst_tracker=header=X-Key: marker"], ["-o", "dst_tracker=header=X-Key: ***"]),
        (
            ["-odst_tracker=header=A: marker\nkey=marker"],
            ["-odst_tracker=header=A: ***\nkey=***"],
        ),
        (
            ["--dst-tracker=header=Authorization: Bearer $KEY"],
            ["--dst-tracker=header=Authorization: Bearer $KEY"],
        ),
        (
            ["--dst-tracker=header=Authorization: marker$KEY"],
            ["--dst-tracker=header=Authorization: ***"],
        ),
        (["--dst-model", "https://h/?k=marker"], ["--dst-model", "https://h/?k=***"]),
        (["-k", "a and b=c", "--dst-seed=1"], ["-k", "a and b=c", "--dst-seed=1"]),
    ],
)
def test_a_command_line_is_shown_without_credentials(words: list[str], shown: list[str]) -> None:
    assert mask_command_line(words) == shown


@pytest.mark.parametrize("text", ["marker", "X-Key:", ": marker", "X Key: marker"])
def test_a_header_that_is_none_is_not_repeated(text: str) -> None:
    with pytest.raises(UserError, match="'Name: value'") as caught:
        Header.parse(text)
    assert "marker" not in str(caught.value)


def test_a_credential_of_plus_signs_masks_no_blanks() -> None:
    assert Secrets(["++++"]).redact("a    b") == "a    b"


@pytest.mark.parametrize("password", ["a[hidden]b", "[hidden", "a℀hidden"])
@pytest.mark.parametrize("scheme", ["http", "openai+http", "anthropic+http", "rasa+http"])
def test_an_address_that_cannot_be_split_shows_no_password(scheme: str, password: str) -> None:
    outcome = "reply" if "+" in scheme else "state"
    settings = Settings.of(model=f"{scheme}://bot:{password}@127.0.0.1:9/p", outcome=outcome)
    with pytest.raises(UserError, match="is not an address: in the user") as error:
        tracker_for(settings, DialogueSet("d", "test", ()))
    assert "hidden" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("unknown noise 'http://u:pa hidden@h/p'", "unknown noise 'http://***@h/p'"),
        ("no 'http://u:a hidden b@h/p?k=hidden'. Valid: x", "no 'http://***@h/p?k=***'. Valid: x"),
        ("http://h/p failed: write to a@b", "http://h/p failed: write to a@b"),
    ],
)
def test_a_password_with_a_blank_is_masked_in_a_message(text: str, shown: str) -> None:
    assert str(UserError(text)) == shown
