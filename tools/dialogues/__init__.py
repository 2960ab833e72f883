"""How the sample dialogues with tools were made."""
