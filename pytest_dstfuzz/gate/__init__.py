"""Internal: The verdict on a session: limits, baselines, and what tells chance from a regression.

Importing this package imports neither numpy nor scipy; comparing two builds does.
"""
