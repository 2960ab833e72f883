"""Internal: Relations that expect another answer, and the functions that they share."""
