"""Internal: Relations that expect a change of the state, and their helpers."""
