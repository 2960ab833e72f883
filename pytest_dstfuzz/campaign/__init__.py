"""Batched execution of a plan of turns: what is asked of the tracker, when, and what came out."""
