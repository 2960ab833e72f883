"""What people read about a campaign: failed turns, the terminal summary, the JSON report."""
