"""Internal: the assistant that ships: it calls tools by the words of their schemas."""
