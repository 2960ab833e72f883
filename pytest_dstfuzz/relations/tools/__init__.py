"""Internal: relations that edit what an assistant is told of its tools."""
