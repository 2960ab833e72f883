"""A Rasa bot as a tracker, through its HTTP API: ``--dst-model=rasa+http://HOST:PORT``."""
