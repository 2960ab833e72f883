"""Models behind the Messages API of Anthropic, as trackers, bots and assistants."""
