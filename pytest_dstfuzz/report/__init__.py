"""Internal: Failed turns, the terminal summary, the JSON report and the page."""
