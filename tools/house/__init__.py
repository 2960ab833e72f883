"""Tools that show whether a rebuild of the package keeps its results, and how large it is."""
