"""Internal: repairs of a bot based on a report: remedies before the bot, and training data."""
