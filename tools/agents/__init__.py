"""Tools about trained agents."""
