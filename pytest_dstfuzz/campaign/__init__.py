"""Internal: what is asked of the tracker, when, and what came out."""
