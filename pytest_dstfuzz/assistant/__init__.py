"""The assistant that ships: it calls tools that it never saw, by the words of their schemas."""
