"""Internal: Searches, which choose the actions that make variants."""
