"""Internal: remembered violations, which a team commits, replays, accepts and retires."""
