"""Internal: whether two replies say the same: equality, facts, meaning, a judge, a function."""
