"""Figures about tool calls that the research pages have."""
