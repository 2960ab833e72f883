"""Internal: deal or no deal: its data, agents trained on it, and attacks by gradient."""
