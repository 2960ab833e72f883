"""Internal: campaigns, and rounds of a training, by many processes through Ray."""
