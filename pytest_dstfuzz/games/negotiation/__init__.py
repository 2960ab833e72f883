"""Internal: Deal or no deal: its data, trained agents, and gradient attacks."""
