"""Internal: Metamorphic relations, which say how answers to related inputs must be related."""
