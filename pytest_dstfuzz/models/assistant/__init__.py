"""Internal: the shipped assistant, which calls tools based on the words of their schemas."""
