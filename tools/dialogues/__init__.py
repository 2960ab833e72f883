"""Makes the sample dialogues with tools."""
