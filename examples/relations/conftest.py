"""Makes the tracker of this folder known: ``--dst-model=rules --dst-tracker data=PATH``."""

from rule_tracker import RuleTracker

from pytest_dstfuzz import register_tracker

register_tracker("rules", RuleTracker)
