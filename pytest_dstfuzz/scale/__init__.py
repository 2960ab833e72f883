"""Internal: campaigns that are kept in folders, shared out, swept, and run on Ray."""
