"""Readers of dialogue formats."""
