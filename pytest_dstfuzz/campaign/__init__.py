"""Internal: the campaign, which calls the tracker and judges its answers."""
