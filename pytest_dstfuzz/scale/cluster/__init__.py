"""Internal: Campaigns and training rounds that run in many processes on Ray."""
