"""Internal: Commands that make the tables of the thesis and other measurements."""
