"""Internal: The verdict on a session: limits, baselines, and the statistics of regressions.

Importing this package imports neither numpy nor scipy. Comparing two builds does.
"""
