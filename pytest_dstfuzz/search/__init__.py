"""Internal: Searches: who chooses the action that makes a variant."""
