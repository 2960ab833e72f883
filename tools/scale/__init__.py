"""Measures what data and runs of any size cost in time and memory."""
