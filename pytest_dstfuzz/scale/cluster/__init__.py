"""Internal: campaigns and training rounds that run in many processes on Ray."""
