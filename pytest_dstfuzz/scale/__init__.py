"""Internal: campaigns in result folders, in parts (shards), in sweeps, and on Ray."""
