"""Internal: whether two answers say the same, by equality, facts, meaning, a judge, or a function."""
