"""Internal: The thesis' tables and the measurements of this package, as commands."""
