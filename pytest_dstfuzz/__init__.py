"""Metamorphic robustness tests of dialogue systems, as a pytest plugin.

The names in `__all__` are public, and so are the options, ini keys, fixtures and the marker of the
plugin. All other modules are internal and may change in any release. Importing the package loads no
other module. The first use of a public name loads its module (PEP 562). PYTEST_DONT_REWRITE: this
module has no assert statements.
"""

__version__ = "0.1.0"

#: Public name -> the module that defines it, in the groups of the reference.
_HOMES = {
    # Conversations.
    "Turn": "dialogue.dialogues",
    "Dialogue": "dialogue.dialogues",
    "DialogueSet": "dialogue.dialogues",
    "Context": "dialogue.dialogues",
    "Exchange": "dialogue.dialogues",
    "BeliefState": "dialogue.dialogues",
    "Outcome": "dialogue.calls",
    "Tool": "dialogue.calls",
    "Transcript": "dialogue.calls",
    "load_dialogues": "dialogue.load",
    "Reader": "dialogue.readers.source",
    "register_reader": "dialogue.readers.registry",
    # Systems under test.
    "Tracker": "trackers.tracker",
    "StatefulTracker": "trackers.tracker",
    "Prediction": "trackers.tracker",
    "register_tracker": "trackers.registry",
    "register_scheme": "trackers.schemes",
    "TrackerError": "errors",
    # Campaigns from Python.
    "Settings": "config",
    "Campaign": "campaign.campaign",
    "TurnResult": "campaign.results",
    "VariantResult": "campaign.results",
    # Objects that the plugin passes to tests.
    "DstTurn": "plugin.turn",
    "DstReport": "plugin.turn",
    "DstProposer": "plugin.turn",
    # Extensions: searches, relations, comparisons, limits.
    "register_search": "search.registry",
    "Relation": "relations.relation",
    "Verdict": "relations.relation",
    "Scene": "relations.relation",
    "Replacement": "relations.relation",
    "Rewrite": "relations.relation",
    "Delta": "relations.relation",
    "Admissible": "dialogue.dialogues",
    "Inapplicable": "relations.relation",
    "Difference": "dialogue.dialogues",
    "diff_states": "dialogue.dialogues",
    "register_relation": "relations.registry",
    "register_comparison": "comparisons.registry",
    "Limit": "gate.verdict",
    # Errors.
    "DstFuzzError": "errors",
    "UserError": "errors",
    "DataError": "errors",
    # Modules with further public names.
    "lexicon": "",
    "strategies": "",
    "testing": "",
    "transformations": "",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib  # noqa: PLC0415 - an unused plugin loads nothing

    home = _HOMES[name]
    found = importlib.import_module(f"{__name__}.{home or name}")
    value = globals()[name] = getattr(found, name) if home else found
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
