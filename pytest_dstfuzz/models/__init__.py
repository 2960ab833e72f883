"""Internal: trained trackers and the shipped assistant, with their training and weights."""
