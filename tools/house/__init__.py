"""What shows that a rebuild of the package keeps its results, and what it costs to read."""
