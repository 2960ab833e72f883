"""Internal: Remembered violations. A team commits them, replays, accepts and retires them."""
