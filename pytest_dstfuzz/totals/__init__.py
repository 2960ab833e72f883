"""Internal: the totals of a run, computed once for all reports and the gate."""
