"""Internal: Relations under which the state must change, and how."""
