"""Internal: models of human slips. They draw and score slips, and are fitted to logs."""
