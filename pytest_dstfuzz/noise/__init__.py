"""Internal: Models of human slips: drawing, scoring, and fitting to logs."""
