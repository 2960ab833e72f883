"""Internal: Comparisons of two answers: equality, facts, meaning, a judge, a function."""
