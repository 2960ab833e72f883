"""Internal: Remembered violations, which a team commits, replays, accepts and retires."""
