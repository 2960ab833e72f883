"""Internal: the pytest plugin. Every pytest run of an environment loads its module `entry`."""
