"""Builds the noise models that ship; not in the wheel."""
