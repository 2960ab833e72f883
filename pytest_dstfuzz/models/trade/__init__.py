"""TRADE, a tracker that generates values word by word (arXiv 1905.08743)."""
