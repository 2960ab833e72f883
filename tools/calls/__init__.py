"""Makes the figures about tool calls on the research pages."""
