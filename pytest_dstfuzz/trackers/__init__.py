"""Internal: Systems under test: the tracker protocol, adapters, lookup, checks and accuracy."""
