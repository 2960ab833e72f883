"""Internal: what a campaign found, kept in a folder as it comes."""
