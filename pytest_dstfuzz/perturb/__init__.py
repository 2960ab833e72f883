"""Internal: transformations, the action vector, edit rates, validity profiles and locks."""
