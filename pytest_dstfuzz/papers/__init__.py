"""Internal: commands for the tables of the thesis and for measurements of this package."""
