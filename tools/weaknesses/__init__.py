"""How far weaknesses are what people call one fault: violations to group blind, and the score."""
