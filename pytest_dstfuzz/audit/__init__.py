"""Internal: samples of violations for human judges, and the judges' verdicts."""
