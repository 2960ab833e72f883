"""Internal: Samples of a report's violations for human judges, and the judges' verdicts."""
