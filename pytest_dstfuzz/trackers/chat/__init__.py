"""Chat models behind an OpenAI-compatible endpoint, as trackers (extra ``chat``)."""
