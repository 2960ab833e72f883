"""Internal: games between an agent with a goal in a conversation, and its adversaries.

The names in `__all__` are public. Every run of pytest imports this module, so a name loads its
module on first use. PYTEST_DONT_REWRITE: this module has no assert statements.
"""

#: Public name -> the module that defines it.
_HOMES = {
    "DstGame": "fixture",
    "GoalAgent": "game",
    "Game": "game",
    "Scenario": "game",
    "TalkLine": "game",
    "GoalSelection": "game",
    "GameScores": "game",
    "GameReport": "attack",
    "AdversarySide": "playing",
    "TransparentAgent": "game",
    "FluencyModel": "game",
    "ChatGoalAgent": "chat",
    "LearningAgent": "hardening",
    "harden_agent": "hardening",
    "DealGame": "deal",
    "RefundGame": "refund",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib  # noqa: PLC0415 - a run without games loads nothing

    found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
