"""Builds the documentation: includes, generated reference and gallery. See `pages`."""
