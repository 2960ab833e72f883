"""Internal: Searches: they choose the actions that make variants."""
