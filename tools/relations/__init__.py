"""Builds the word lists that relations use. The tools are not in the wheel."""
