"""Internal: Metamorphic relations: what must hold between two predictions."""
