"""Internal: Weaknesses, which are groups of violations with one cause."""
