"""Internal: Repairs of a bot from a report: remedies before the bot, and training data."""
