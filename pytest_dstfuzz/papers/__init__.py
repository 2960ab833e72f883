"""Internal: commands for the tables of the thesis and for other measurements."""
