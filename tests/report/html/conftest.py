"""Pages for the browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from html_pages import build

from pytest_dstfuzz.campaign.engine import CampaignEngine, predictor_for
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.dialogue.sampling import sample_turns
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.report.json_report import RunInfo
from pytest_dstfuzz.trackers.adapters import as_tracker

Opener = Callable[..., Any]


class Seen:
    """What a page did besides being shown."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.requests: list[str] = []

    def watch(self, page: Any) -> None:
        """Listen to all that a page could do."""
        page.on("dialog", lambda dialog: (self.messages.append(dialog.message), dialog.dismiss()))
        page.on("console", lambda message: self.messages.append(message.text))
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Opener]:
    """Show a page of HTML, and fail where it complains or asks for anything but itself."""
    seen = Seen()
    contexts = []
    path = tmp_path / "report.html"

    def opener(text: str, width: int = 1280, **options: Any) -> Any:
        path.write_text(text, encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        seen.watch(page)
        page.goto(path.as_uri())
        return page

    yield opener
    for context in contexts:
        context.close()
    assert seen.messages == []
    assert {url for url in seen.requests if not url.startswith("data:")} <= {path.as_uri()}


def track(context: Context) -> dict[str, str]:
    """Count letters: as brittle as can be."""
    return {"hotel-area": ("north", "south", "west")[len(context.user) % 3], "train-day": "friday"}


@pytest.fixture(scope="module")
def campaign_report() -> dict[str, Any]:
    """The report of a real campaign over shipped dialogues."""
    data = load_dialogues("sample", "test")
    settings = Settings.of(turns=100)
    predictor = predictor_for(settings, data, as_tracker(track, normalisation="multiwoz"))
    plan = sample_turns(data, settings.data.turns, settings.variant.seed)
    results = list(CampaignEngine(settings, data, predictor, load_lexicon(), plan=plan).run())
    return build(results, settings=settings, info=RunInfo.of(data))
