"""Internal: samples of a report's violations for human judges, and their verdicts."""
