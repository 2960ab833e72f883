"""Internal: searches, which choose the edits that turn a user's utterance into variants."""
