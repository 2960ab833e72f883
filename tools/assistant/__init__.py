"""How the assistant that ships was trained and measured."""
