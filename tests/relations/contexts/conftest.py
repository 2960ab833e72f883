from __future__ import annotations

import pytest

from pytest_dstfuzz.dialogue.dialogues import Dialogue
from tests.relations.contexts.harbour import dialogues


@pytest.fixture(scope="session")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> Dialogue:
    return dialogues(tmp_path_factory.mktemp("harbour"))[0]
