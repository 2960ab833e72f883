"""Internal: dialogues, belief states, and readers of dialogue formats."""
