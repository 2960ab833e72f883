"""Internal: the shipped assistant, which finds the tool to call by the words of the schemas."""
