"""Internal: Relations that say the same in other words, and leave the state as it is."""
