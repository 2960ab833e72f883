"""Readers of the layouts in which dialogues are published."""
