"""Internal: Deal or no deal, a negotiation: its data, trained agents, and gradient attacks."""
