"""Measures how well weaknesses agree with what people call one fault."""
