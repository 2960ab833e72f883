"""Internal: What is tested: the tracker protocol, adapters, lookup by name, checks and accuracy."""
