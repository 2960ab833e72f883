"""Simulates a year of CI: three bots, 28 builds of each, and whether the gate stops bad builds."""
