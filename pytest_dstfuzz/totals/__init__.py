"""Internal: The totals of a run, added up once: every report and the gate read them."""
