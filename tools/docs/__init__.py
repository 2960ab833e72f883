"""Builds the documentation: includes, generated reference, gallery; see `pages`."""
