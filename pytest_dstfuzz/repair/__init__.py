"""Internal: repairs of a bot: remedies before it, training data, and adversarial training."""
