"""Internal: The six transformations, the action vector, edit rates, validity profiles and locks."""
