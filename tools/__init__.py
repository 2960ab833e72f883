"""What makes files that ship with the package; in the repository, not in the wheel."""
