"""Internal: Campaigns and training rounds with many processes on Ray."""
