"""Shows whether a change of the package keeps its results, and how large the package is."""
