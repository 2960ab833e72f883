"""Internal: failed turns, the terminal summary, the JSON report and the HTML page."""
