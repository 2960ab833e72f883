"""Metamorphic robustness tests of dialogue systems, as a pytest plugin."""

__version__ = "0.1.0"
