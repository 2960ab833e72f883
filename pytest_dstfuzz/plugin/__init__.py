"""Internal: the pytest plugin; every pytest run of an environment loads `entry` of it."""
