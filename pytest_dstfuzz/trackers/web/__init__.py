"""Trackers at an address: the contract over HTTP, its server, and the shared transport."""
