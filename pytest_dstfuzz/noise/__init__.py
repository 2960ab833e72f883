"""Internal: Noise: a model of human slips that can be drawn from, scored and fitted to logs."""
