"""Internal: Dialogues, belief states, and the readers that bring them in."""
