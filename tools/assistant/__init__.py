"""Trains and measures the assistant that ships."""
