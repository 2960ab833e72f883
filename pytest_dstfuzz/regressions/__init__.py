"""Memory of violations: a corpus that a team commits, replays, accepts from and retires from."""
