"""Internal: Relations of whole dialogues: rounds said twice, moved, left out, or asked again."""
