"""A Rasa bot as a tracker, through its HTTP API: ``--dst-model=rasa+http://HOST:PORT``."""

from pytest_dstfuzz.trackers.rasa.tracker import RasaTracker, create

__all__ = ["RasaTracker", "create"]
