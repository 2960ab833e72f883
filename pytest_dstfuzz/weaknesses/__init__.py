"""Internal: weaknesses, violations with one cause: what to fix, and not how often it failed."""
