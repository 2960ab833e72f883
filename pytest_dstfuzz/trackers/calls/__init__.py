"""Assistants that call tools: messages and tools in, the next message out."""
