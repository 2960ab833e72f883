"""Builds the word lists that relations use; not in the wheel."""
