"""Internal: Campaigns in result folders, in shards, in sweeps, and on Ray."""
