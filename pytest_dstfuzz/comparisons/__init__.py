"""Internal: comparisons of answers by equality, facts, meaning, a judge or a user's function."""
