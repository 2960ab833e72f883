"""Internal: metamorphic relations. Each says how the answers to related inputs must be related."""
