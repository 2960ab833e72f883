"""Internal: The data of deal or no deal, trained agents, and gradient attacks."""
