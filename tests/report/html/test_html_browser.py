"""The page in a real browser; skipped, with the reason, where there is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from html_pages import NASTY, build, judgement, nasty_report, repeated

pytest.importorskip("jinja2")

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.report.html.page import html_text
from pytest_dstfuzz.totals.plainest import MOST_ON_PAGE

Opener = Callable[..., Any]
ARTICLE = "#list article"


@pytest.fixture
def page_text(results: list[TurnResult]) -> str:
    """A page of sixty violations, and of a comparison with a baseline."""
    return html_text(repeated(build(results, judgement()), 60))


def count(page: Any) -> str:
    return str(page.inner_text("#count"))


def test_markup_and_script_in_texts_do_nothing(open_page: Opener) -> None:
    page = open_page(html_text(nasty_report()))
    assert page.locator(ARTICLE).count() == len(NASTY)
    for summary in page.locator(f"{ARTICLE} summary").all():
        summary.click()
    assert "owned" not in page.title().split("'")[0]
    assert page.evaluate("document.scripts.length") == 2
    assert page.locator("img, iframe, object, [onload], [onerror], main style").count() == 0
    body = page.inner_text("body")
    for text in NASTY[:-1]:
        assert text in body
    assert "<U+202E> <U+0000> <U+D800>" in body
    links = page.eval_on_selector_all("a", "links => links.map((link) => link.protocol)")
    assert set(links) == {"file:"}


def test_filters_find_and_are_kept_in_the_address(open_page: Opener, page_text: str) -> None:
    page = open_page(page_text)
    assert count(page) == "60 violations, showing 1 to 25"
    page.fill("[name=q]", "t1-r7")
    page.wait_for_selector("#count:has-text('1 of 60 violations')")
    assert page.locator(ARTICLE).count() == 1
    assert "t1-r7" in page.inner_text(f"{ARTICLE} h3")
    page.reload()
    assert count(page).startswith("1 of 60 violations")
    page.select_option("[name=cause]", "context")
    page.wait_for_selector("#empty:visible")
    assert count(page) == "0 of 60 violations"
    page.click("button[type=reset]")
    page.wait_for_selector("#count:has-text('60 violations, showing')")
    for name, value in (("slot", "train-day"), ("domain", "train"), ("size", "50")):
        page.select_option(f"[name={name}]", value)
    page.wait_for_selector("#count:has-text('1 to 50')")
    page.fill("[name=q]", "LEAIVNG ON")  # of the variant, in another case
    page.wait_for_url(lambda url: "LEAIVNG" in url)
    assert count(page) == "60 violations, showing 1 to 50"


def test_a_rate_of_the_heat_map_leads_to_its_violations(open_page: Opener, page_text: str) -> None:
    page = open_page(page_text)
    page.select_option("[name=transformation]", "char_replace")
    page.locator(".heat tbody tr", has_text="day").get_by_role("link").press("Enter")
    assert page.input_value("[name=slot]") == "train-day"
    assert page.input_value("[name=transformation]") == ""
    assert page.evaluate("document.activeElement.id") == "violations-heading"
    assert page.url.endswith("#slot=train-day")


def test_violations_of_a_weakness_are_below_it(open_page: Opener, page_text: str) -> None:
    page = open_page(page_text)
    card = page.locator(".weakness")
    assert not card.locator("details li").first.is_visible()
    card.locator("summary").click()
    card.locator("article ins").first.wait_for()
    assert card.locator("details > ol > li").count() == 5
    card.get_by_role("link", name="All 60 in the list").click()
    assert page.url.endswith("#weakness=slip-in-key-word-value-wrong")
    assert page.input_value("[name=weakness]") == "slip-in-key-word-value-wrong"
    assert count(page) == "60 violations, showing 1 to 25"
    assert page.evaluate("document.activeElement.id") == "violations-heading"


def test_pages_by_keyboard(open_page: Opener, page_text: str) -> None:
    page = open_page(page_text)
    following = page.get_by_role("button", name="Next")
    assert page.get_by_role("button", name="Previous").get_attribute("aria-disabled") == "true"
    following.focus()
    page.keyboard.press("Enter")
    assert count(page) == "60 violations, showing 26 to 50"
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")  # There is no fourth page.
    assert count(page) == "60 violations, showing 51 to 60"
    assert following.get_attribute("aria-disabled") == "true"
    assert page.evaluate("document.activeElement.textContent") == "Next"
    page.fill("#page", "1")
    page.keyboard.press("Tab")
    assert count(page) == "60 violations, showing 1 to 25"
    page.keyboard.press("Shift+Tab")
    page.fill("#page", "99")
    page.keyboard.press("Enter")
    assert page.input_value("#page") == "3"


def test_everything_about_a_violation_by_keyboard(open_page: Opener, page_text: str) -> None:
    page = open_page(page_text)
    first = page.locator(ARTICLE).first
    assert first.locator("dd del").inner_text().endswith("leaving")
    assert first.locator("dd ins").inner_text().endswith("leaivng")
    assert "friday" in first.locator(".changes").inner_text()
    first.locator("summary").focus()
    page.keyboard.press("Enter")
    more = first.locator("details")
    more.locator("table").first.wait_for()
    text = more.inner_text()
    assert "char_replace" in text
    assert "train-departure" in text
    assert "pytest ... --dst-variant=1 -k '[multiwoz21-test-SNG0073-t1-r0]'" in text
    assert "dstfuzz accept multiwoz21-test-SNG0073-t1-r0 --reason '...'" in text
    # The turn before, as the tracker saw it.
    assert more.locator("ins").first.inner_text().endswith("ttrain")


#: The parts of a page, other than the map of slots, that reach over its right edge or that of a
#: region, or whose text is cut off.
_TOO_WIDE = """width => [...document.querySelectorAll("body *")].filter((one) => {
  if (one.closest(".skip, .hidden-text, .heat, svg")) return false;
  return one.getBoundingClientRect().right > width + 1 || one.scrollWidth > one.clientWidth + 1
    && getComputedStyle(one).overflowX !== "visible";
}).filter((one) => !one.querySelector(":scope > .heat")).map((one) => one.outerHTML.slice(0, 90))"""


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_overflows(
    open_page: Opener, results: list[TurnResult], campaign_report: dict[str, Any], width: int
) -> None:
    compared = build(results, judgement())
    compared["run"]["repeat"] = f"pytest --dst-model=bots:{'long_' * 30}name --dst-seed=0"
    for report in (compared, campaign_report):
        page = open_page(html_text(report), width=width)
        for opened in (f"{ARTICLE} summary", ".weakness summary"):
            page.locator(opened).first.click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(_TOO_WIDE, width) == []


@pytest.mark.nightly
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 320])
def test_nothing_serious_for_axe(
    open_page: Opener, results: list[TurnResult], scheme: str, width: int
) -> None:
    axe = pytest.importorskip("axe_playwright_python.base", reason="axe is not installed")
    text = html_text(repeated(build(results, judgement()), 3))
    page = open_page(text, width=width, color_scheme=scheme, bypass_csp=True)
    for opened in (f"{ARTICLE} summary", ".weakness summary"):
        page.locator(opened).first.click()
    page.evaluate(Path(axe.AXE_FILE_PATH).read_text(encoding="utf-8"))
    found = page.evaluate(
        "axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', "
        "'wcag22aa', 'best-practice']})"
    )
    serious = [
        (rule["id"], [node["target"] for node in rule["nodes"]][:3])
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
    ]
    assert serious == []
    assert len(found["passes"]) > 20
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_how_likely_a_violation_is(open_page: Opener, sampled: list[TurnResult]) -> None:
    page = open_page(html_text(build(sampled)))
    said = page.locator(ARTICLE).first.inner_text()
    assert "drawn by the noise model; stands for 20.0 of 1,000" in said
    assert "2.0 of 1,000 user turns" in page.locator(".first").inner_text()


def test_on_paper_and_without_script(open_page: Opener, page_text: str) -> None:
    page = open_page(page_text)
    page.emulate_media(media="print", color_scheme="dark")
    assert not page.locator("#filters").is_visible()
    assert page.locator(ARTICLE).first.is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    plain = open_page(page_text, java_script_enabled=False)
    assert plain.locator(".verdict strong").inner_text().startswith("Failed: outside the limits")
    assert "needs JavaScript" in plain.inner_text("#violations")
    plain.locator(".weakness summary").click()
    assert "multiwoz21-test-SNG0073-t1-r0: 1" in plain.inner_text(".weakness details")


@pytest.mark.nightly
def test_ten_thousand_violations_open_at_once(
    open_page: Opener, campaign_report: dict[str, Any]
) -> None:
    text = html_text(repeated(campaign_report, 10_000))
    assert len(text.encode()) <= 15_000_000
    page = open_page(text)
    page.wait_for_selector("#list[aria-busy=false]")
    assert page.locator(ARTICLE).count() == 25
    page.fill("#page", "9999")
    page.keyboard.press("Enter")
    last = int(page.input_value("#page"))
    # The others are in the report as JSON.
    assert last == MOST_ON_PAGE // 25
    assert page.locator(ARTICLE).count() >= 1
