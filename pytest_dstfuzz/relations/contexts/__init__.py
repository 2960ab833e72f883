"""Questions asked after other rounds: sequences, checks of their contexts, MORTAR's relations."""
