"""Internal: other words for whole turns: found in the data, generated, or frozen in a file."""
