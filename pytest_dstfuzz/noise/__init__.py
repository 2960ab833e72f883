"""Internal: Noise as people make it: a model of slips, drawn from, scored and fitted to logs."""
