"""Internal: agents that talk towards a goal, and adversaries that talk them out of it."""
