"""Makes files that ship with the package. The tools are in the repository, not in the wheel."""
